#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2034,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# What check says of documents is in test/cases; here is what it does.
# In one device mode: it opens no device.
load helpers

@test "the locked memory is set against the limit in force" {
	plan '{"do":"reg","mr":"a","length":"128KiB","access":[]}' '{"do":"reg","mr":"b","length":1,"access":[]}'
	good check plan.json
	holds '.result | .locked_bytes == 135168 and (.locked_limit == null or .locked_limit >= 0)'
	[ "$(id -u)" = 0 ] || skip "the limit can be lowered by root only"
	for limit in 135168:true 135167:false; do
		run --separate-stderr setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
			prlimit --memlock="${limit%:*}:${limit%:*}" "$IBMR" check plan.json
		status_is 0
		holds ".result | .locked_limit == ${limit%:*} and .locked_fits == ${limit#*:}"
	done
}

@test "a signal while the document is still to come ends it by that signal" {
	mkfifo never
	for signal in INT:130 TERM:143 HUP:129; do
		env --default-signal=INT,TERM,HUP "$IBMR" check never >out 2>err &
		pid=$!
		until grep -q 'S (sleeping)' "/proc/$pid/status" 2>/dev/null; do sleep 0.02; done
		sleep 0.1
		kill -"${signal%:*}" "$pid"
		status=0
		wait "$pid" || status=$?
		output=$(cat out) stderr=$(cat err)
		status_is "${signal#*:}"
		holds '.error.code == "interrupted"'
	done
}

@test "no file is made, no device is opened" {
	plan '{"do":"reg","mr":"a","file":"made","map":"shared","create":true,"length":4096,"access":["remote_read"]}' \
		'{"do":"read","mr":"a","to_file":"read"}'
	export IBMR_SOFT0=counters=counters
	ibmr check plan.json
	status_is 0
	holds '.device == null'
	[ ! -e made ]
	[ ! -e read ]
	[ ! -e counters ]
	ibmr run plan.json
	status_is 0
	[ -s made ]
	[ -s read ]
	[ -s counters ]
}

@test "60,000 KLMs in little memory" {
	klms() {
		printf '{"layout":"list","klms":['
		seq -s , "$1" | sed 's/[0-9]*/{"mr":"pool","offset":&,"length":4096}/g'
		printf ']}\n'
	}
	klms 60000 >spec.json
	# of address space, libraries and all; a sanitizer takes terabytes of it
	limit=150000
	[ -z "${IBMR_SANITIZER:-}" ] || limit=unlimited
	run --separate-stderr bash -c 'ulimit -v "$2" && exec "$1" check spec.json --mr pool=1GiB' - "$IBMR" "$limit"
	status_is 0
	holds '.result.mrs[1] | .entries == 60000 and .length == 245760000'
}

@test "a spec of more entries than one key holds, with split and without" {
	jq -n '{layout: "list", split: "auto", klms: [range(70000) | {mr: "a", offset: (. * 16), length: 8}]}' >s.json
	for target in mlx5 soft0; do
		good check --target "$target" --mr a=2MiB s.json
		holds '.result.mrs[1] | .form == "tree" and .keys == 3 and .entries == 70002 and .length == 560000'
	done
	jq 'del(.split)' s.json >one.json
	bad 1 limit check one.json
	holds '.error.message | contains("70000") and contains("65532")'
	bad 4 unsupported check --target rxe s.json
}
