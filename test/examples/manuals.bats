#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The manual pages list what the source has, no more and no less, and each of their examples runs
# and prints what the page shows. $IBMR_BUILD is a build folder.
# In one device mode: it is about what is written.

bats_require_minimum_version 1.5.0

setup() {
	: "${IBMR:=ibmr}"
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export TMPDIR=$BATS_TEST_TMPDIR
	unset IBMR_DEVICE IBMR_SOCKET
}

list() {
	/usr/bin/python3 "$BATS_TEST_DIRNAME/manuals.py" "$@"
}

# Both lists are the same, and not empty.
same() {
	list "$1" >"$BATS_TEST_TMPDIR/left"
	list "$2" >"$BATS_TEST_TMPDIR/right"
	grep -q . "$BATS_TEST_TMPDIR/left"
	diff -u "$BATS_TEST_TMPDIR/left" "$BATS_TEST_TMPDIR/right"
}

# Run each example of a page in a copy of the examples' folder and compare what it prints.
run_examples() {
	cp -r "$top/man/examples" "$BATS_TEST_TMPDIR/folder"
	cd "$BATS_TEST_TMPDIR/folder" || return 1
	list commands "$1" >../commands
	[ -s ../commands ]
	while IFS= read -r -d '' command && IFS= read -r -d '' expected; do
		printf '%s' "$expected" >../expected
		bash -c "$command" >../printed || [[ $command == *'; echo $?' ]]
		diff -u ../expected ../printed || {
			echo "prints something else: $command"
			return 1
		}
	done <../commands
}

@test "ibmr-result(5) has every code" {
	same page_codes source_codes
}

@test "ibmr-result(5) has every cause" {
	same page_causes source_causes
}

@test "ibmr-spec(5) has every access word" {
	same page_access source_access
}

@test "libibmr(3) has every function and error, and a page by each name" {
	same page_functions source_functions
	same synopsis_functions source_functions
	same build_functions source_functions
	same page_library_codes source_library_codes
}

@test "soft0(7) has every word of IBMR_SOFT0" {
	same page_soft0 source_soft0
	same page_breaks source_breaks
}

@test "the examples of ibmr(1) run as shown" {
	run_examples ibmr.1
}

@test "the examples of ibmr-run(1) run as shown" {
	run_examples ibmr-run.1
}

@test "the examples of ibmr-check(1) run as shown" {
	run_examples ibmr-check.1
}

@test "the examples of ibmr-devices(1) run as shown" {
	run_examples ibmr-devices.1
}

@test "the examples of ibmr-doctor(1) run as shown" {
	run_examples ibmr-doctor.1
}

@test "ibmr-doctor(1) has every finding" {
	same page_findings source_findings
}

@test "the examples of ibmr-exec(1) run as shown" {
	run_examples ibmr-exec.1
}

@test "the examples of ibmr-session(1) run as shown" {
	run_examples ibmr-session.1
}

@test "the examples of the commands on MRs run as shown" {
	for page in reg create fill dereg prefetch write fetch-add show; do
		rm -rf "$BATS_TEST_TMPDIR/folder"
		run_examples "ibmr-$page.1"
	done
}

@test "the examples of ibmr-spec(5) run as shown" {
	run_examples ibmr-spec.5
}

@test "the examples of ibmr-result(5) run as shown" {
	run_examples ibmr-result.5
}

@test "the examples of soft0(7) run as shown" {
	run_examples soft0.7
}

@test "the program of libibmr(3) compiles and runs as shown" {
	[ -n "$IBMR_BUILD" ] || skip "IBMR_BUILD is not set"
	[ -z "${IBMR_SANITIZER:-}" ] || skip "a program under ibmr exec has no sanitizer"
	export PKG_CONFIG_PATH=$IBMR_BUILD/meson-uninstalled LD_LIBRARY_PATH=$IBMR_BUILD/src/lib
	mkdir "$BATS_TEST_TMPDIR/c" && cd "$BATS_TEST_TMPDIR/c"
	list program >scatter.c
	list commands libibmr.3 >../commands
	[ -s ../commands ]
	while IFS= read -r -d '' command && IFS= read -r -d '' expected; do
		printf '%s' "$expected" >../expected
		bash -c "${command/#cc /cc -Wall -Wextra -Werror }" >../printed
		diff -u ../expected ../printed
	done <../commands
}
