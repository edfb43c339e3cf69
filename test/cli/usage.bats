#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# In one device mode: it is about the command line.
load helpers

@test "no command is a usage error with a document" {
	bad 2 usage
	holds '.command == null and .device == null'
	[ -n "$stderr" ]
}

@test "an unknown command names the nearest" {
	bad 2 usage rum plan.json
	holds '.error.message == "unknown command '"'rum'"'" and (.error.hint | contains("run"))'
	holds '.command == null'
}

@test "commands are not abbreviated" {
	bad 2 usage dev
}

@test "an unknown option names the nearest, on either side of the command" {
	bad 2 usage --devise soft0 devices
	holds '.error.hint | contains("--device")'
	bad 2 usage run --keepgoing x
	holds '.error.hint | contains("--keep-going")'
	holds '.command == "run"'
}

@test "options are not abbreviated" {
	bad 2 usage devices --dev soft0
	holds '.error.hint | contains("--device")'
	bad 2 usage run --keep x
	bad 2 usage --form json devices
}

@test "an option of another command is unknown" {
	bad 2 usage devices --keep-going
	bad 2 usage --keep-going run x
}

@test "an option without its value" {
	bad 2 usage devices --device
	bad 2 usage run x --timeout
	bad 2 usage devices --device ""
}

@test "a value where none belongs" {
	bad 2 usage run --keep-going=yes x
	bad 2 usage --help=run
}

@test "short options are unknown" {
	bad 2 usage -d soft0 devices
	bad 2 usage devices -?
}

@test "missing and superfluous arguments" {
	bad 2 usage run
	holds '.error.hint | contains("PLAN")'
	bad 2 usage run a.json b.json
	bad 2 usage devices soft0
	bad 2 usage check
	bad 2 usage exec
	bad 2 usage exec --
}

@test "durations" {
	plan "$reg_a"
	for right in 10s 5m 2h 4294967295ms; do
		good run plan.json --timeout "$right" --deadline="$right"
	done
	for wrong in 0s 0ms 5 s ms 1.5s -1s 1S 01s '1 s' 1d 4294967296ms 1194h 99999999999999999999ms ''; do
		ibmr run plan.json --timeout "$wrong"
		status_is 2
		ibmr run plan.json --deadline="$wrong"
		status_is 2
	done
	holds true
}

@test "port and gid index" {
	plan "$reg_a" '{"do":"write","mr":"a","hex":"00"}'
	good run plan.json --port 1 --gid-index 0
	for wrong in 0 256 x '' -1 01; do
		bad 2 usage run plan.json --port "$wrong"
	done
	for wrong in 65536 x '' -1; do
		bad 2 usage run plan.json --gid-index "$wrong"
	done
}

@test "options stand before or after the command, by = or by a word" {
	for args in "--device soft0 devices" "devices --device soft0" "--device=soft0 devices" \
		"--format json devices --device=soft0" "devices --device soft0 --format=json"; do
		# shellcheck disable=SC2086
		good $args
		holds '.result.devices | length == 1 and .[0].name == "soft0"'
	done
}

@test "the last of an option given twice counts" {
	good devices --device nix --device soft0
}

@test "the format asked for is that of a usage error too" {
	ibmr --format jsonl run
	status_is 2
	[ "$(wc -l <<<"$output")" -eq 1 ]
	holds true
	ibmr --bogus --format jsonl run
	status_is 2
	[ "$(wc -l <<<"$output")" -eq 1 ]
	ibmr run --format text
	status_is 2
	[ -z "$output" ]
	[[ "$stderr" == *usage* ]]
	bad 2 usage devices --format xml
	bad 2 usage devices --format JSON
}

@test "help and version print no document" {
	ibmr --help
	status_is 0
	[[ "$output" == *"run"*"check"*"exec"* ]]
	for command in devices run check exec; do
		ibmr "$command" --help
		status_is 0
		[[ "$output" == "Usage: ibmr $command"* ]]
		run ! jq -e . <<<"$output"
	done
	ibmr --version
	status_is 0
	[[ "$output" =~ ^ibmr\ [0-9]+\.[0-9]+ ]]
}

@test "help wins over missing arguments, and does nothing" {
	ibmr run --help nosuch.json more
	status_is 0
}

@test "bytes that are not UTF-8 in arguments still give a document" {
	bad 2 usage $'\xff\xfe'
	bad 2 usage $'--\xff'
	bad 1 io run $'no\xffsuch'
	bad 1 no_device devices --device $'\xc3'
}

@test "POSIXLY_CORRECT changes nothing" {
	plan "$reg_a"
	POSIXLY_CORRECT=1 good run plan.json --format json
}
