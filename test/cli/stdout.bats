#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# What is on standard output, and what happens when it cannot be.
load helpers

@test "json is indented by two, with the keys in the contract's order" {
	plan "$reg_a"
	good run plan.json
	[ "$(jq . <<<"$output")" = "$output" ]
	[ "$(jq -r 'keys_unsorted | join(" ")' <<<"$output")" = "schema command ok device elapsed_us steps" ]
	[ "$(jq -r '.steps[0] | keys_unsorted | join(" ")' <<<"$output")" = \
		"do ok skipped expected elapsed_us result" ]
	[ "$(jq -r '.steps[0].result.mr | keys_unsorted | join(" ")' <<<"$output")" = \
		"name kind state lkey rkey base length access on_demand max_klms entries form levels keys relaxed_ordering_asked relaxed_ordering_in_effect odp_pages attach" ]
	bad 1 no_device devices --device nix
	[ "$(jq -r '.error | keys_unsorted | join(" ")' <<<"$output")" = \
		"code cause certain errno sys_errno origin where line column status vendor_err message hint" ]
}

@test "jsonl has one compact line a step, then the summary without steps" {
	plan "$reg_a" "$create_x" '{"do":"dereg","mr":"nix"}' "$fill_x"
	ibmr run plan.json --format jsonl
	status_is 1
	[ "$(wc -l <<<"$output")" -eq 5 ]
	# jq has its own way to write a time
	# shellcheck disable=SC2001
	output=$(sed 's/"elapsed_us":[0-9][0-9.]*/"elapsed_us":0/' <<<"$output")
	[ "$(jq -c . <<<"$output")" = "$output" ]
	jq -es '.[0:4] | map([.do, .ok, .skipped]) == [["reg",true,false],["create",true,false],
		["dereg",false,false],["fill",false,true]]' <<<"$output"
	jq -es '.[4] | .command == "run" and (has("steps") | not) and .error.where == "/steps/2/mr"' <<<"$output"
}

@test "a jsonl line is there when its step has ended" {
	mkfifo in out
	printf '{"device":"soft0","steps":[%s,{"do":"write","mr":"a","file":"in"}]}' "$reg_a" >plan.json
	"$IBMR" run plan.json --format jsonl >out &
	exec 5<out
	read -r line <&5
	jq -e '.do == "reg" and .ok' <<<"$line"
	printf abc >in
	read -r line <&5
	jq -e '.do == "write" and .result.length == 3' <<<"$line"
	wait
}

@test "text is no JSON, and its errors are on stderr" {
	plan "$reg_a" '{"do":"dereg","mr":"nix"}'
	ibmr run plan.json --format text
	status_is 1
	[[ "$output" == *reg*dereg* ]]
	[[ "$stderr" == *no_such_mr* ]]
	ibmr devices --device soft0 --format text
	status_is 0
	[[ "$output" == *soft0* ]]
}

@test "/dev/full fails the command, after its work" {
	plan '{"do":"reg","mr":"f","file":"made","map":"shared","create":true,"length":10,"access":["local_write"],"init":{"byte":65}}'
	for format in json jsonl text; do
		run --separate-stderr bash -c "'$IBMR' run plan.json --format $format >/dev/full"
		status_is 1
		[[ "$stderr" == *"io"*"No space left"* ]]
	done
	[ "$(cat made)" = AAAAAAAAAA ]
	run bash -c "'$IBMR' devices --device soft0 >/dev/full"
	status_is 1
	run bash -c "'$IBMR' bogus >/dev/full"
	status_is 1
	run bash -c "'$IBMR' --help >/dev/full"
	status_is 1
	run bash -c "'$IBMR' --version >/dev/full"
	status_is 1
}

@test "closed stdout fails the command, and no file of the plan gets the answer" {
	plan '{"do":"reg","mr":"a","length":3,'"$rw"',"init":{"hex":"616263"}}' \
		'{"do":"read","mr":"a","to_file":"copy"}'
	run --separate-stderr bash -c "'$IBMR' run plan.json >&-"
	status_is 1
	[[ "$stderr" == *"io"* ]]
	[ "$(cat copy)" = abc ]
	run --separate-stderr bash -c "'$IBMR' run plan.json <&- >&- 2>&-"
	status_is 1
	[ "$(cat copy)" = abc ]
}

@test "closed stdin and stderr do not matter" {
	plan "$reg_a"
	run bash -c "'$IBMR' run plan.json <&- 2>&-"
	status_is 0
	holds true
}

@test "a limit on the size of files is an error and no signal" {
	[ "${IBMR_SANITIZER:-}" != tsan ] || skip "ThreadSanitizer writes a file of its own"
	# bats keeps separate standard errors in a file; what keeps the documents (test/record) writes files
	run env -u LD_PRELOAD bash -c "ulimit -f 0; '$IBMR' devices --device soft0 >answer"
	status_is 1
	[[ "$output" == *"io"*"File too large"* ]]
	run env -u LD_PRELOAD bash -c "ulimit -f 0; '$IBMR' devices --device soft0 --save-profile made 2>/dev/null"
	status_is 1
	holds '.error.code == "io" and .error.sys_errno == "EFBIG"'
	# the limit of a program that is not ours still ends it
	run env -u LD_PRELOAD bash -c "ulimit -f 0; '$IBMR' exec -- dd if=/dev/zero of=made count=1"
	status_is 153
}

@test "a reader that went away fails the command without a signal" {
	plan "$reg_a" "$create_x"
	run --separate-stderr bash -c "{ sleep 0.3; '$IBMR' run plan.json; echo \$? >status; } | true"
	[ "$(cat status)" = 1 ]
	[[ "$stderr" == *"Broken pipe"* ]]
}

@test "jsonl stops when nobody takes the lines" {
	plan "$reg_a" '{"do":"reg","mr":"f","file":"made","map":"shared","create":true,"length":1}'
	run --separate-stderr bash -c "'$IBMR' run plan.json --format jsonl >/dev/full"
	status_is 1
	[ ! -e made ]
}

@test "the answer depends on no locale and no terminal" {
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"write","mr":"x","ramp":7,"length":64}' \
		'{"do":"read","mr":"x"}' '{"do":"verify","mr":"x"}' '{"do":"dereg","mr":"nix"}'
	strip='walk(if type == "object" then del(.elapsed_us, .lkey, .rkey, .base) else . end)'
	ibmr run plan.json
	expected=$(jq "$strip" <<<"$output")
	for locale in C C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8 nonsense; do
		LC_ALL=$locale LANG=$locale TERM=xterm-256color COLUMNS=40 ibmr run plan.json
		[ "$(jq "$strip" <<<"$output")" = "$expected" ]
	done
	# a terminal as standard output
	script -qec "'$IBMR' run plan.json 2>/dev/null" /dev/null </dev/null | tr -d '\r' >typescript || true
	[ "$(jq "$strip" <typescript)" = "$expected" ]
}

@test "times have three decimals at most, and are numbers" {
	plan "$reg_a" "$create_x"
	good run plan.json
	run ! grep -E '"elapsed_us": [0-9]+\.[0-9]{4}' <<<"$output"
	run ! grep -E '"elapsed_us": [^0-9]' <<<"$output"
}
