# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # run sets status, output and stderr
# For bats files of 1.5 or later that test with ibmr: `load /usr/share/ibmr/bats/ibmr`; see ibmr-bats(7).
# IBMR is the program, `ibmr` when it is not set. What fails shows what it looked at.
bats_require_minimum_version 1.5.0
: "${IBMR:=ibmr}"

# ibmr_run ARG...: $status, $output (the answer), $stderr
ibmr_run() {
	run --separate-stderr "$IBMR" "$@"
}

ibmr_show() {
	printf 'status %s\nstderr: %s\n' "$status" "${stderr:-}" >&2
	jq -c . <<<"$output" 2>/dev/null | cut -c -1500 >&2 || printf 'stdout: %s\n' "${output:0:1500}" >&2
}

# ibmr_status NUMBER: so the last command ended
ibmr_status() {
	[ "$status" -eq "$1" ] || { ibmr_show; return 1; }
}

# What holds of every document; a jq costs more than an ibmr, so it is one expression with the rest.
ibmr_document='length == 1 and (.[0] | .schema == 1 and (.ok | type == "boolean") and
	(.elapsed_us | type == "number" and . >= 0) and has("device") and has("command") and
	(if .ok then has("error") | not else (.error.code | type == "string") and .error.message end))'

# ibmr_holds JQ: the last answer is one document of ibmr's that fulfils the expression
ibmr_holds() {
	jq -es "($ibmr_document) and (.[0] | $1)" >/dev/null <<<"$output" || {
		echo "not so: $1" >&2
		ibmr_show
		return 1
	}
}

# The last answer is one document that is well but for these lines of it, which stand in it: quicker than
# ibmr_holds, which says what holds of every document. Not of a long one: bash looks at it too often.
ibmr_says() {
	[ ${#output} -lt 100000 ] || return 1
	local text=$'\n'$output$'\n' line
	[[ $output == '{'$'\n'* && $output == *$'\n''}' && $output != *$'\n''{'$'\n'* ]] || return 1
	for line; do
		[[ $text == *$'\n'"$line"[,$'\n']* ]] || return 1
	done
}

# ibmr_ok ARG...: succeeds, and says so
ibmr_ok() {
	ibmr_run "$@"
	ibmr_status 0 && { ibmr_says '  "ok": true' || ibmr_holds .ok; }
}

# ibmr_fails STATUS CODE ARG...: fails so, and says so
ibmr_fails() {
	local want_status=$1 want_code=$2
	shift 2
	ibmr_run "$@"
	ibmr_status "$want_status" && { ibmr_says '  "ok": false' "    \"code\": \"$want_code\"" ||
		ibmr_holds "(.ok | not) and .error.code == \"$want_code\""; }
}

# ibmr_validate ARG...: every check passes or is skipped; the test is skipped when nothing could be checked
ibmr_validate() {
	ibmr_run validate --format json "$@"
	[ "$status" -ne 4 ] || skip "$(jq -r '[.devices[].checks[].error.message] | unique | join("; ")' <<<"$output")"
	[ "$status" -eq 0 ] || {
		jq -r '.devices[]? | .name as $device | .checks[] | select(.state != "pass" and .state != "skip") |
			"\($device) \(.name): \(.state): \(.error.message)"' >&2 <<<"$output"
		[ "$(jq '.devices | length' <<<"$output" 2>/dev/null || echo 0)" -gt 0 ] || ibmr_show
		return 1
	}
}

# ibmr_session ARG...: a session for this test or, in setup_file, for all tests of the file; it ends by
# ibmr_session_end, in teardown or teardown_file.
ibmr_session() {
	export IBMR_SOCKET=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/session.sock
	"$IBMR" session start "$@" >/dev/null
}

ibmr_session_end() {
	[ -z "${IBMR_SOCKET:-}" ] || "$IBMR" session stop >/dev/null 2>&1 || true
}
