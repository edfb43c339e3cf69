#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# shellcheck disable=SC2030,SC2031
# bash completion offers what the program's own help lists, and completes as typed.
# In one device mode: no device is given work.

bats_require_minimum_version 1.5.0

setup() {
	: "${IBMR:=ibmr}"
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	# shellcheck source=/dev/null
	. "$top/completions/ibmr.bash"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# What Tab offers after these words, of which the last is being typed; sorted, in one line.
offers() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_ibmr 2>/dev/null
	printf '%s\n' "${COMPREPLY[@]}" | sort -u | xargs
}

# The long options that the help of a command shows.
help_options() {
	"$IBMR" "$@" --help | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u | xargs
}

# Every command but exec, whose options are the program's.
own_options() {
	offers ibmr '' | tr ' ' '\n' | grep -vx exec
}

@test "commands are those of ibmr --help" {
	commands=$("$IBMR" --help | sed -n '/^Commands:/,/^$/s/^  *\([a-z][a-z-]*\).*/\1/p' | sort | xargs)
	[ -n "$commands" ]
	[ "$(offers ibmr '')" = "$commands" ]
}

@test "options of each command are those of its --help" {
	for command in $(own_options); do
		expected=$(help_options "$command")
		[ -n "$expected" ]
		have=$(offers ibmr "$command" -)
		echo "$command: $have; help: $expected"
		[ "$have" = "$expected" ]
	done
}

@test "every option that the help gives a value takes one, and no other" {
	for command in $(own_options); do
		"$IBMR" "$command" --help >help
		grep -oE -- '--[a-z][a-z-]*=' help | tr -d = >valued
		grep -oE -- '--[a-z][a-z-]*( |$)' help | tr -d ' ' >bare
		[ -s valued ] && [ -s bare ]
		while read -r option; do
			_ibmr_takes_value "$option"
		done <valued
		while read -r option; do
			run -1 _ibmr_takes_value "$option"
		done <bare
	done
}

@test "values of options, with a blank and with an equals sign" {
	[ "$(offers ibmr run --format '')" = "json jsonl text" ]
	[ "$(offers ibmr run --format = js)" = "json jsonl" ]
	[ "$(offers ibmr validate --format '')" = "json jsonl junit nagios prometheus tap text" ]
	[ "$(offers ibmr validate --require odp,u)" = odp,umr ]
	[ "$(offers ibmr check --target = '')" = "mlx5 rxe soft0" ]
	[[ "$(offers ibmr --device '')" == *soft0* ]]
	[ "$(offers ibmr --device soft0 ru)" = run ]
}

@test "offered formats and targets are accepted" {
	plan=$top/man/examples/odp-window.json
	for format in $(offers ibmr --format ''); do
		"$IBMR" check --format "$format" "$plan"
	done
	for format in $(offers ibmr validate --format ''); do
		"$IBMR" validate --device soft0 --format "$format" >/dev/null
	done
	for target in $(offers ibmr check --target ''); do
		run --separate-stderr "$IBMR" check --target "$target" "$plan"
		jq -e --arg target "$target" '(.result.target // $target) == $target and .error.code != "usage"' <<<"$output"
	done
}

@test "plans and folders complete, other files do not" {
	mkdir folder
	touch plan.json notes.txt
	[ "$(offers ibmr run '')" = "folder plan.json" ]
	[ "$(offers ibmr check --target mlx5 p)" = plan.json ]
	[ -z "$(offers ibmr devices '')" ]
}

@test "session, and the MRs of the running one" {
	[ "$(offers ibmr session st)" = "start status stop" ]
	[ "$(offers ibmr reg a --access local_write,remote_r)" = local_write,remote_read ]
	[ "$(offers ibmr prefetch a --advice = '')" = "no_fault read write" ]
	export IBMR_SOCKET=$BATS_TEST_TMPDIR/s.sock
	PATH=${IBMR%/*}:$PATH
	[ -z "$(offers ibmr dereg '')" ]
	"$IBMR" session start --device soft0 3>&-
	"$IBMR" reg one --length 4096
	"$IBMR" create two --max-klms 1
	for command in show dereg fill write; do
		[ "$(offers ibmr "$command" '')" = "one two" ]
	done
	[ "$(offers ibmr copy --to t)" = two ]
	[ -z "$(offers ibmr reg '')" ]
	touch spec.json
	[ "$(offers ibmr fill two '')" = spec.json ]
	"$IBMR" session stop
}

@test "exec completes programs, with -- and without" {
	mkdir bin
	printf '#!/bin/sh\n' >bin/program-of-this-test
	chmod +x bin/program-of-this-test
	PATH=$PWD/bin:$PATH
	[ "$(offers ibmr exec -- program-of-)" = program-of-this-test ]
	[ "$(offers ibmr exec program-of-)" = program-of-this-test ]
	[[ "$(offers ibmr exec -)" == *--* ]]
}

@test "the zsh and fish files know the same commands and options" {
	for command in $(own_options); do
		help_options "$command" | tr ' ' '\n'
	done | sort -u >options
	[ -s options ]
	grep -oE -- "--[a-z][a-z-]*" "$top/completions/_ibmr" | sort -u | diff options -
	sed -n 's/^complete .* -l \([a-z-]*\).*/--\1/p' "$top/completions/ibmr.fish" | sort -u | diff options -
	offers ibmr '' | tr ' ' '\n' >commands
	sed -n "s/^\t\t[\"']\([a-z-]*\):.*/\1/p" "$top/completions/_ibmr" | sort | diff commands -
	sed -n 's/^set -l commands //p' "$top/completions/ibmr.fish" | tr ' ' '\n' | diff commands -
}
