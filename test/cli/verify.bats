#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# verify: what it proves, that it leaves no trace, and that it notices a device that is wrong.
load helpers

ramp_a='{"do":"reg","mr":"a","length":8192,'$rw',"init":{"ramp":3}}'
untouched='{"do":"read","mr":"a","to_file":"after"}'
before='{"do":"read","mr":"a","to_file":"before"}'

verified() { # STEP...: fill x somehow; then verify
	plan "$ramp_a" "$create_x" "$@" "$before" '{"do":"verify","mr":"x"}' "$untouched"
	good run plan.json
	cmp before after
	holds '.steps[-2].result | .restored and .not_checked == [] and .refusals == 2'
}

counts() {
	holds ".steps[-2].result | [.bytes, .segments, .neighbours] == [$1]"
}

@test "a list" {
	verified '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":16,"length":32},{"mr":"a","offset":1024,"length":7}]}'
	counts '39,2,208'
	[ "$(jq -r '.steps[-2].result | keys_unsorted | join(" ")' <<<"$output")" = "mr bytes segments neighbours refusals restored not_checked" ]
}

@test "a repeat" {
	verified '{"do":"fill","mr":"x","layout":"repeat","count":100,'"$rw"',"blocks":[{"mr":"a","offset":8,"length":5,"stride":40},{"mr":"a","offset":4100,"length":3,"stride":8}]}'
	holds '.steps[-2].result | .bytes == 800 and .segments == 200'
}

@test "nesting: repeats of lists, and lists of parts of repeats" {
	verified '{"do":"create","mr":"y","max_klms":3}' '{"do":"create","mr":"z","max_klms":3}' \
		'{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":5,"length":3},{"mr":"a","offset":64,"length":60},{"mr":"a","offset":300,"length":700}]}' \
		'{"do":"fill","mr":"z","layout":"repeat","count":20,'"$rw"',"blocks":[{"mr":"y","offset":1,"length":9,"stride":33},{"mr":"a","offset":4096,"length":11,"stride":100}]}' \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"z","offset":15,"length":300},{"mr":"a","offset":8000,"length":10}]}'
	holds '.steps[-2].result.bytes == 310'
}

@test "entries that touch and entries out of order" {
	verified '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":200,"length":100},{"mr":"a","offset":100,"length":100},{"mr":"a","offset":310,"length":90}]}'
	# below 64, between 20 (10 bytes), above 64
	counts '290,3,138'
}

@test "entries that overlap go segment by segment" {
	verified '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":200,"length":100},{"mr":"a","offset":250,"length":100}]}'
	holds '.steps[-2].result | .bytes == 200 and .segments == 2'
	verified '{"do":"fill","mr":"x","layout":"repeat","count":50,'"$rw"',"blocks":[{"mr":"a","offset":200,"length":10,"stride":0}]}'
	holds '.steps[-2].result | .bytes == 500 and .segments == 50'
	verified '{"do":"fill","mr":"x","layout":"repeat","count":50,'"$rw"',"blocks":[{"mr":"a","offset":200,"length":10,"stride":3}]}'
}

@test "two MRs over one shared file overlap too" {
	head -c 8192 /dev/urandom >file
	cp file copy
	plan '{"do":"reg","mr":"a","file":"file","map":"shared",'"$rw"'}' '{"do":"reg","mr":"b","file":"file","map":"shared","file_offset":1000,"length":5000,'"$rw"'}' "$create_x" \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":1100,"length":100},{"mr":"b","offset":150,"length":100}]}' '{"do":"verify","mr":"x"}'
	good run plan.json
	holds '.steps[-1].result | .bytes == 200 and .restored'
	cmp file copy
}

@test "a direct MR" {
	plan "$ramp_a" "$before" '{"do":"verify","mr":"a"}' "$untouched"
	good run plan.json
	cmp before after
	counts '8192,1,0'
}

@test "a base other than 0, and the highest" {
	for base in 1 0x7f0000000001 0xffffffffffffffc0; do
		verified '{"do":"fill","mr":"x","layout":"list","base":"'"$base"'",'"$rw"',"klms":[{"mr":"a","offset":16,"length":32},{"mr":"a","offset":1024,"length":31}]}'
	done
}

@test "more than one window" {
	plan '{"do":"reg","mr":"a","length":"5MiB",'"$rw"',"init":{"ramp":9}}' '{"do":"create","mr":"x","max_klms":4}' \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":"3MiB","length":1500001},{"mr":"a","offset":7,"length":1500003}]}' \
		"$before" '{"do":"verify","mr":"x"}' "$untouched"
	good run plan.json
	cmp before after
	counts '3000004,2,199'
}

@test "many small segments" {
	plan '{"do":"reg","mr":"a","length":"1MiB",'"$rw"',"init":{"ramp":9}}' "$create_x" \
		'{"do":"fill","mr":"x","layout":"repeat","count":20000,'"$rw"',"blocks":[{"mr":"a","offset":3,"length":7,"stride":50}]}' \
		"$before" '{"do":"verify","mr":"x"}' "$untouched"
	good run plan.json
	cmp before after
	holds '.steps[-2].result | .bytes == 140000 and .segments == 20000'
}

@test "without remote_write or remote_read it says what it left out" {
	fill='{"do":"fill","mr":"x","layout":"list","klms":[{"mr":"a","offset":16,"length":32}],"access":'
	verify='{"do":"verify","mr":"x"}'
	plan "$ramp_a" "$create_x" "$fill"'["local_write","remote_read"]}' "$verify"
	good run plan.json
	holds '.steps[-1].result | .not_checked == ["write"] and .bytes == 32 and .refusals == 3'
	plan "$ramp_a" "$create_x" "$fill"'["local_write","remote_write"]}' "$verify"
	good run plan.json
	holds '.steps[-1].result | .not_checked == ["read"] and .bytes == 32 and .refusals == 3'
	plan "$ramp_a" "$create_x" "$fill"'["local_write"]}' "$verify"
	good run plan.json
	holds '.steps[-1].result | .not_checked == ["write","read","ends"] and .bytes == 0 and .neighbours == 0 and .refusals == 2'
}

@test "on-demand memory" {
	plan '{"do":"reg","mr":"a","length":"1MiB","access":["local_write","remote_write","remote_read","on_demand"]}' "$create_x" \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":4000,"length":5000},{"mr":"a","offset":100000,"length":50000}]}' '{"do":"verify","mr":"x"}'
	good run plan.json
	holds '.steps[-1].result.bytes == 55000'
}

@test "a file that may only be read is compared as it is" {
	head -c 5000 /dev/urandom >file
	cp file copy
	chmod 444 file
	plan '{"do":"reg","mr":"f","file":"file","map":"shared","access":["remote_read"]}' '{"do":"verify","mr":"f"}'
	good run plan.json
	holds '.steps[-1].result | .bytes == 5000 and (.not_checked | contains(["write"]))'
	cmp file copy
}

@test "after a refill it is the new layout that holds, also below another MR" {
	plan "$ramp_a" "$create_x" "$fill_x" '{"do":"create","mr":"y","max_klms":2}' '{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"x","offset":20,"length":30}]}' \
		'{"do":"verify","mr":"y"}' '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":3000,"length":64}]}' '{"do":"verify","mr":"x"}' '{"do":"verify","mr":"y"}'
	good run plan.json
	holds '.steps[5].result.segments == 2 and .steps[8].result.segments == 1'
}

noticed() { # DEFECT CAUSE
	soft0 "break=$1"
	plan "$ramp_a" "$create_x" "$fill_x" '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":4000,"length":32},{"mr":"a","offset":2048,"length":32}]}' \
		'{"do":"verify","mr":"x"}'
	bad 3 mismatch run plan.json
	holds ".error.cause == \"$2\" and .error.where == \"/steps/4\""
}

@test "it notices a wrong byte" { noticed wrong_byte write; }
@test "it notices a layout that is stale" { noticed stale_layout write; }
@test "it notices an end that is off by one" { noticed off_by_one not_refused; }

@test "it notices rights that are not checked" {
	soft0 break=no_rights
	plan "$ramp_a" "$create_x" '{"do":"fill","mr":"x","layout":"list","access":["local_write","remote_read"],"klms":[{"mr":"a","length":40}]}' '{"do":"verify","mr":"x"}'
	bad 3 mismatch run plan.json
	holds '.error.cause == "not_refused"'
}

@test "it notices a completion that is lost" {
	soft0 break=lost_completion
	plan "$ramp_a" "$create_x" "$fill_x" '{"do":"verify","mr":"x"}'
	bad 6 timeout run plan.json --timeout 300ms
}
