# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Common to all bats files: `load helpers`. IBMR is the program under test; the runner gives it.
top=$(cd "${BATS_TEST_DIRNAME}/../.." && pwd)
if [ -z "${IBMR:-}" ]; then
	for candidate in "$top"/build*/src/cli/ibmr; do
		[ -x "$candidate" ] && IBMR=$candidate
	done
fi
: "${IBMR:?no ibmr is built}"
# shellcheck source=../../data/bats/ibmr.bash
. "$top/data/bats/ibmr.bash"

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
	unset IBMR_DEVICE IBMR_SOCKET
	[ -z "${session_socket:-}" ] || export IBMR_SOCKET=$session_socket
	# a program that was not built with the sanitizer may come first
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
}

# session [ARG...]: on soft0. A teardown of one's own calls session_end, and so does a teardown_file.
session() {
	ibmr_session --device soft0 --idle-timeout 10m "$@"
	export session_socket=$IBMR_SOCKET
}

session_end() {
	ibmr_session_end
}

teardown() {
	[ "${session_socket:-}" != "${BATS_TEST_TMPDIR}/session.sock" ] || session_end
}

# What a test asks of soft0, added to what the runner does.
soft0() {
	export IBMR_SOFT0="${IBMR_SOFT0:+$IBMR_SOFT0,}$1"
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

# What is shipped for the bats files of others, by short names.
ibmr() { ibmr_run "$@"; }
show() { ibmr_show; }
status_is() { ibmr_status "$@"; }
holds() { ibmr_holds "$@"; }
good() { ibmr_ok "$@"; }
bad() { ibmr_fails "$@"; }

# Steps that many tests begin with.
rw='"access":["local_write","remote_write","remote_read"]'
reg_a='{"do":"reg","mr":"a","length":4096,'$rw'}'
create_x='{"do":"create","mr":"x","max_klms":4}'
fill_x='{"do":"fill","mr":"x","layout":"list",'$rw',"klms":[{"mr":"a","offset":16,"length":32},{"mr":"a","offset":1024,"length":32}]}'
