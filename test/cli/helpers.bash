# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Common to all bats files: `load helpers`. IBMR is the program under test; the runner gives it.
bats_require_minimum_version 1.5.0

top=$(cd "${BATS_TEST_DIRNAME}/../.." && pwd)
if [ -z "${IBMR:-}" ]; then
	for candidate in "$top"/build*/src/cli/ibmr; do
		[ -x "$candidate" ] && IBMR=$candidate
	done
fi
: "${IBMR:?no ibmr is built}"

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
	unset IBMR_DEVICE IBMR_SOCKET
	[ -z "${session_socket:-}" ] || export IBMR_SOCKET=$session_socket
	# a program that was not built with the sanitizer may come first
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
}

# session [ARG...]: a session on soft0 for this test or, in setup_file, for all tests of the file. A
# teardown of one's own calls session_end, and so does a teardown_file.
session() {
	export session_socket=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/session.sock
	export IBMR_SOCKET=$session_socket
	"$IBMR" session start --device soft0 --idle-timeout 10m "$@" >/dev/null
}

session_end() {
	[ -z "${IBMR_SOCKET:-}" ] || "$IBMR" session stop >/dev/null 2>&1 || true
}

teardown() {
	[ "${session_socket:-}" != "${BATS_TEST_TMPDIR}/session.sock" ] || session_end
}

# What a test asks of soft0, added to what the runner does.
soft0() {
	export IBMR_SOFT0="${IBMR_SOFT0:+$IBMR_SOFT0,}$1"
}

# Run ibmr: $status, $output (stdout), $stderr.
ibmr() {
	run --separate-stderr "$IBMR" "$@"
}

# runs PID: not so of one that has ended and that its parent, here often a slow init, has not waited for
runs() {
	local state
	state=$(grep '^State:' "/proc/$1/status" 2>/dev/null) && [[ $state != *Z* ]]
}

# plan STEP... -> plan.json, on soft0
plan() {
	local IFS=,
	printf '{"device":"soft0","steps":[%s]}\n' "$*" >plan.json
}

show() {
	printf 'status %s\nstderr: %s\n' "$status" "${stderr:-}" >&2
	jq -c . <<<"$output" 2>/dev/null | cut -c -1500 >&2 || printf 'stdout: %s\n' "${output:0:1500}" >&2
}

status_is() {
	[ "$status" -eq "$1" ] || { show; return 1; }
}

# What holds of every document; a jq costs more than an ibmr, so it is one expression with the rest.
document='length == 1 and (.[0] | .schema == 1 and (.ok | type == "boolean") and
	(.elapsed_us | type == "number" and . >= 0) and has("device") and has("command") and
	(if .ok then has("error") | not else (.error.code | type == "string") and .error.message end))'

# The one document of the last answer fulfils a jq expression.
holds() {
	jq -es "($document) and (.[0] | $1)" >/dev/null <<<"$output" || {
		echo "not so: $1" >&2
		show
		return 1
	}
}

# The last answer is one document that is well but for these lines of it, which stand in it; without jq,
# as most answers of all tests are judged here. What holds of every document, `holds` and test/record say.
says() {
	local text=$'\n'$output$'\n' line
	[[ $output == '{'$'\n'* && $output == *$'\n''}' && ${output#*$'\n''{'$'\n'} == "$output" ]] || return 1
	for line; do
		[[ $text == *$'\n'"$line"[,$'\n']* ]] || return 1
	done
}

# good ARG...: succeeds, with one document that says so
good() {
	ibmr "$@"
	status_is 0 && { says '  "ok": true' || holds .ok; }
}

# bad STATUS CODE ARG...: fails so, with one document that says so
bad() {
	local want_status=$1 want_code=$2
	shift 2
	ibmr "$@"
	status_is "$want_status" && { says '  "ok": false' "    \"code\": \"$want_code\"" ||
		holds "(.ok | not) and .error.code == \"$want_code\""; }
}

# Steps that many tests begin with.
rw='"access":["local_write","remote_write","remote_read"]'
reg_a='{"do":"reg","mr":"a","length":4096,'$rw'}'
create_x='{"do":"create","mr":"x","max_klms":4}'
fill_x='{"do":"fill","mr":"x","layout":"list",'$rw',"klms":[{"mr":"a","offset":16,"length":32},{"mr":"a","offset":1024,"length":32}]}'
