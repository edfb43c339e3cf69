#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
load helpers

# in_background ARG...: started with default signals, its answer into out; $pid. Once this returns,
# the child is the shell's no more, which would take a signal in its own way.
in_background() {
	env --default-signal=INT,TERM,HUP "$IBMR" "$@" >out 2>err &
	pid=$!
	while [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = bash ]; do :; done
}

# Its exit status; it is our child, so not by `run`.
ended() {
	status=0
	wait "$pid" || status=$?
	output=$(cat out)
	stderr=$(cat err)
}

# A plan that waits for bytes of a FIFO, in the middle.
waiting_plan() {
	mkfifo never
	plan "$reg_a" '{"do":"reg","mr":"f","file":"kept","map":"shared","create":true,"length":4096,'"$rw"'}' \
		"$create_x" "$fill_x" '{"do":"write","mr":"a","file":"never"}' '{"do":"verify","mr":"x"}'
}

reached() { # COUNT: so many steps have ended
	for _ in $(seq 200); do
		[ "$(wc -l <out)" -ge "$1" ] && return
		sleep 0.02
	done
	return 1
}

for_signal() { # NAME NUMBER
	waiting_plan
	in_background run plan.json --format jsonl
	reached 4
	kill -"$1" "$pid"
	ended
	status_is $((128 + $2))
	tail -n 1 out | jq -e '.ok == false and .error.code == "interrupted" and .error.where == "/steps/4"'
	jq -es '.[4].error.code == "interrupted" and .[5].skipped' out
}

@test "SIGINT: the answer is printed, 130" { for_signal INT 2; }
@test "SIGTERM: the answer is printed, 143" { for_signal TERM 15; }
@test "SIGHUP: the answer is printed, 129" { for_signal HUP 1; }

@test "after a signal everything is released" {
	soft0 "counters=$PWD/counters"
	waiting_plan
	in_background run plan.json --format jsonl
	reached 4
	kill -TERM "$pid"
	ended
	status_is 143
	run grep -E '^live\.[a-z]+ [^0]' counters
	status_is 1
	grep -q '^pinned_bytes 0$' counters
}

@test "a second signal changes nothing" {
	waiting_plan
	in_background run plan.json --format jsonl
	reached 4
	kill -TERM "$pid"
	kill -INT "$pid" 2>/dev/null || true
	kill -TERM "$pid" 2>/dev/null || true
	ended
	[ "$status" -eq 143 ] || [ "$status" -eq 130 ]
	tail -n 1 out | jq -e '.error.code == "interrupted"'
}

@test "a signal before the device is opened: while the plan is read" {
	mkfifo plan
	in_background run plan
	sleep 0.3
	kill -INT "$pid"
	ended
	status_is 130
	jq -e '.error.code == "interrupted" and .device == null' out
}

@test "a signal while standard input is read" {
	mkfifo stdin
	sleep 5 >stdin 3>&- &
	sleeper=$!
	env --default-signal=INT,TERM,HUP "$IBMR" run - <stdin >out 2>err &
	pid=$!
	sleep 0.3
	kill -TERM "$pid"
	ended
	kill "$sleeper"
	status_is 143
	jq -e '.error.code == "interrupted"' out
}

@test "a signal at any moment gives one whole answer" {
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"verify","mr":"x"}'
	for delay in 0.001 0.004 0.008 0.012 0.016 0.02 0.03 0.04; do
		in_background run plan.json
		sleep "$delay"
		kill -TERM "$pid" 2>/dev/null || true
		ended
		# before main nobody can print anything: then the signal itself is the status
		if [ -s out ]; then
			jq -es 'length == 1' out
			jq -e '.ok or .error.code == "interrupted"' out
		else
			status_is 143
		fi
	done
}

@test "verify puts every byte back when it is interrupted" {
	head -c 8388608 /dev/urandom >data
	cp data before
	plan '{"do":"reg","mr":"a","file":"data","map":"shared",'"$rw"'}' \
		'{"do":"create","mr":"x","max_klms":4}' \
		'{"do":"fill","mr":"x","layout":"repeat","count":131072,'"$rw"',"blocks":[{"mr":"a","offset":0,"length":32,"stride":64}]}' \
		'{"do":"verify","mr":"x"}' '{"do":"verify","mr":"x"}' '{"do":"verify","mr":"x"}' \
		'{"do":"verify","mr":"x"}' '{"do":"verify","mr":"x"}' '{"do":"verify","mr":"x"}'
	in_background run plan.json --format jsonl
	reached 3
	sleep 0.1
	kill -INT "$pid"
	ended
	status_is 130
	cmp data before
}

@test "a signal that was ignored at the start stays ignored" {
	plan "$reg_a" "$create_x"
	mkfifo plan
	(trap '' HUP; exec "$IBMR" run plan >out 2>err) &
	pid=$!
	sleep 0.3
	kill -HUP "$pid"
	cat plan.json >plan
	ended
	status_is 0
}

@test "the deadline of the command" {
	mkfifo plan never
	bad 6 timeout run plan --deadline 100ms
	holds '.error.cause == "deadline"'
	plan "$reg_a" '{"do":"write","mr":"a","file":"never"}' "$create_x"
	bad 6 timeout run plan.json --deadline 200ms
	holds '.error.where == "/steps/1" and .steps[2].skipped'
	holds '.elapsed_us < 5e6'
}

@test "--keep-going does not go on after a signal" {
	waiting_plan
	in_background run plan.json --format jsonl --keep-going
	reached 4
	kill -TERM "$pid"
	ended
	status_is 143
	jq -es '.[5].skipped' out
}
