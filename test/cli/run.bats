#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# A plan: where it comes from, its steps, what they expect, and the end of them.
load helpers

@test "the plan of the contract" {
	cat >plan.json <<-'END'
	{ "schema": 1, "device": "soft0",
	  "steps": [
	    { "do": "reg",    "mr": "grid", "length": "32KiB", "access": ["local_write", "remote_write", "remote_read"], "init": { "ramp": 0 } },
	    { "do": "reg",    "mr": "lazy", "length": "1GiB", "access": ["local_write", "on_demand"] },
	    { "do": "create", "mr": "col", "max_klms": 4 },
	    { "do": "fill",   "mr": "col", "layout": "repeat", "count": 64, "access": ["local_write", "remote_write", "remote_read"],
	      "blocks": [ { "mr": "grid", "offset": 8, "length": 8, "stride": 512 } ] },
	    { "do": "prefetch", "mr": "lazy", "length": "16MiB", "advice": "write" },
	    { "do": "write",  "mr": "col", "hex": "00112233" },
	    { "do": "read",   "mr": "col", "length": 4, "expect": { "hex": "00112233" } },
	    { "do": "read",   "mr": "col", "offset": 512, "length": 1, "expect": { "error": "range" } },
	    { "do": "verify", "mr": "col" },
	    { "do": "dereg",  "mr": "grid", "expect": { "error": "in_use" } } ] }
	END
	good run plan.json
	holds '.device == {"name":"soft0","software":true} and (.steps | length == 10)'
	holds '[.steps[].expected] == [null,null,null,null,null,null,true,true,null,true]'
	holds '[.steps[].ok] == [true,true,true,true,true,true,true,false,true,false]'
	holds '.steps[3].result.mr | .state == "filled" and .length == 512 and .entries == 2 and .base == "0x0" and
		.form == "inline" and .max_klms == 4 and .kind == "indirect" and .lkey == .rkey'
	holds '.steps[4].result | .pages == 4096 and .cpu_resident_after == 4096 and (.ranges | length == 1)'
	holds '.steps[8].result | .bytes == 512 and .segments == 64 and .restored and .not_checked == []'
}

@test "a plan from standard input, a FIFO, and a file named with a dash" {
	plan "$reg_a"
	run --separate-stderr bash -c "'$IBMR' run - <plan.json"
	status_is 0 && holds .ok
	run --separate-stderr bash -c "cat plan.json | '$IBMR' run -"
	status_is 0 && holds .ok
	mkfifo fifo
	cat plan.json >fifo &
	good run fifo
	cp plan.json ./-
	ibmr run ./- </dev/null
	status_is 0
	cp plan.json ./--odd
	good run -- --odd
}

@test "a large plan crosses the re-execution whole" {
	{
		printf '{"device":"soft0","steps":[%s' "$reg_a"
		for i in $(seq 3000); do
			printf ',{"do":"write","mr":"a","offset":%d,"hex":"%02x"}' $((i % 4096)) $((i % 256))
		done
		printf ']}'
	} >plan.json
	run --separate-stderr bash -c "cat plan.json | '$IBMR' run -"
	status_is 0
	holds '.steps | length == 3001'
}

@test "a plan that cannot be read is io" {
	bad 1 io run nosuch.json
	holds '.error.sys_errno == "ENOENT"'
	bad 1 io run .
	holds '.error.sys_errno == "EISDIR"'
	bad 1 io run /dev/null/x
	bad 1 io run ""
	if [ "$(id -u)" != 0 ]; then
		touch secret && chmod 0 secret
		bad 1 io run secret
	fi
}

@test "what is wrong with the form is told before any step" {
	printf '' >plan.json
	bad 2 spec_syntax run plan.json
	echo '{"steps":[{"do":"reg","mr":"a","length":1}' >plan.json
	bad 2 spec_syntax run plan.json
	holds '(has("steps") | not) and .error.line == 2 and .error.column == 1 and .device == null'
	plan "$reg_a" '{"do":"reg","mr":"b","length":1,"length":2}'
	bad 2 spec_duplicate run plan.json
	plan "$reg_a" '{"do":"reg","mr":"b","lenght":1}'
	bad 2 spec_unknown_member run plan.json
	holds '.error.where == "/steps/1/lenght" and (.error.hint | contains("length"))'
	plan "$reg_a" '{"do":"create","mr":"b"}'
	bad 2 spec_missing run plan.json
	holds '.error.where == "/steps/1"'
	plan "$reg_a" '{"do":"create","mr":"b","max_klms":1.5}'
	bad 2 spec_type run plan.json
	holds '.error.where == "/steps/1/max_klms"'
	plan "$reg_a" '{"do":"create","mr":"b","max_klms":0}'
	bad 2 spec_value run plan.json
	holds '(has("steps") | not)'
}

@test "a lone fill spec is no plan" {
	echo '{"layout":"list","access":[],"klms":[{"mr":"a"}]}' >spec.json
	bad 2 spec_missing run spec.json
	holds '.error.hint | contains("check")'
}

@test "after an unexpected step the rest is skipped" {
	plan "$reg_a" '{"do":"dereg","mr":"b"}' "$create_x" '{"do":"dereg","mr":"a","expect":{"error":"in_use"}}'
	bad 1 no_such_mr run plan.json
	holds '[.steps[] | [.ok, .skipped, .expected]] ==
		[[true,false,null],[false,false,null],[false,true,null],[false,true,null]]'
	holds '.steps[2] | .elapsed_us == null and (has("result") | not) and (has("error") | not)'
	holds '.error.where == "/steps/1/mr" and .steps[1].error.where == "/mr"'
	holds '(.error | del(.where)) == (.steps[1].error | del(.where))'
}

@test "--keep-going runs them all and tells the first" {
	plan "$reg_a" '{"do":"dereg","mr":"b"}' '{"do":"read","mr":"a","offset":5000}' "$create_x"
	bad 1 no_such_mr run plan.json --keep-going
	holds '[.steps[].ok] == [true,false,false,true] and ([.steps[].skipped] | any | not)'
	holds '.error.where == "/steps/1/mr" and .steps[2].error.code == "range"'
}

@test "expect: an error that came, did not come, and another one" {
	plan "$reg_a" '{"do":"dereg","mr":"b","expect":{"error":"no_such_mr"}}'
	good run plan.json
	holds '.steps[1] | .ok == false and .expected and .error.code == "no_such_mr"'
	plan "$reg_a" '{"do":"dereg","mr":"a","expect":{"error":"in_use"}}'
	bad 3 mismatch run plan.json
	holds '.steps[1] | .ok and .expected == false and has("result")'
	holds '.error.where == "/steps/1/expect/error" and (.error.message | contains("in_use"))'
	plan "$reg_a" '{"do":"dereg","mr":"b","expect":{"error":"in_use"}}'
	bad 3 mismatch run plan.json
	holds '.steps[1] | .ok == false and .expected == false and .error.code == "no_such_mr"'
	holds '.error.message | contains("in_use") and contains("no_such_mr")'
	plan "$reg_a" '{"do":"dereg","mr":"b","expect":{"mr":"b"}}'
	bad 3 mismatch run plan.json
}

@test "expect: members of the result" {
	plan '{"do":"reg","mr":"a","length":4096,"access":["local_write","remote_write","remote_read","remote_atomic"],
			"expect":{"mr":{"length":4096,"kind":"direct","max_klms":null,
			"access":["local_write","remote_write","remote_read","remote_atomic"]}}}' \
		'{"do":"write","mr":"a","hex":"CafE","expect":{"offset":0,"length":2}}' \
		'{"do":"read","mr":"a","length":2,"expect":{"hex":"CAFE","crc32":"0x2fcb4cbc","file":null}}' \
		'{"do":"fetch_add","mr":"a","offset":8,"add":5,"expect":{"old":"0x0"}}' \
		'{"do":"fetch_add","mr":"a","offset":8,"add":1,"expect":{"old":"0x5"}}'
	crc=$(printf '\xca\xfe' | gzip -c | tail -c 8 | od -An -tx4 -N4 | tr -d ' ')
	sed -i "s/0x2fcb4cbc/0x$crc/" plan.json
	good run plan.json
	plan "${reg_a%\}},\"expect\":{\"mr\":{\"length\":4095}}}"
	bad 3 mismatch run plan.json
	holds '.error.where == "/steps/0/expect/mr/length" and (.error.message | contains("4095") and contains("4096"))'
	plan "${reg_a%\}},\"expect\":{\"mr\":{\"access\":[\"local_write\"]}}}"
	bad 3 mismatch run plan.json
	plan "$reg_a" '{"do":"read","mr":"a","length":2,"expect":{"hex":"000001"}}'
	bad 3 mismatch run plan.json
	holds '.error.message | contains("3") and contains("2")'
	plan "$reg_a" '{"do":"read","mr":"a","length":2,"expect":{"hex":"0001"}}'
	bad 3 mismatch run plan.json
	holds '.error.message | contains("byte 1")'
}

@test "expect: hex longer than what is shown compares all bytes" {
	hex=$(head -c 5000 /dev/zero | od -An -v -tx1 | tr -d ' \n')
	plan '{"do":"reg","mr":"a","length":5000,'"$rw"'}' '{"do":"read","mr":"a","expect":{"hex":"'"$hex"'"}}'
	good run plan.json
	holds '.steps[1].result.hex == null'
	plan '{"do":"reg","mr":"a","length":5000,'"$rw"'}' '{"do":"read","mr":"a","expect":{"hex":"'"${hex%00}01"'"}}'
	bad 3 mismatch run plan.json
	holds '.error.message | contains("byte 4999")'
	plan '{"do":"reg","mr":"a","length":5000,'"$rw"'}' '{"do":"read","mr":"a","expect":{"hex":"00"}}'
	bad 3 mismatch run plan.json
}

@test "everything is released in dependency order, whatever order it was made in" {
	soft0 "counters=$PWD/counters"
	plan '{"do":"create","mr":"z","max_klms":2}' '{"do":"create","mr":"y","max_klms":2}' "$reg_a" \
		'{"do":"create","mr":"b","max_klms":2}' \
		'{"do":"fill","mr":"b","layout":"list",'"$rw"',"klms":[{"mr":"a"}]}' \
		'{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"b"}]}' \
		'{"do":"fill","mr":"z","layout":"list",'"$rw"',"klms":[{"mr":"y"}]}'
	good run plan.json
	[ "$(grep -Ec '^live\.(mr|mkey|qp|cq|pd|context) 0$' counters)" -ge 5 ]
	run grep -E '^live\.[a-z]+ [^0]' counters
	status_is 1
}

@test "a release that the device refuses once is asked for again; twice is an error" {
	plan "$reg_a"
	soft0 fail=dereg_mr:1:EBUSY
	good run plan.json
	soft0 fail=dereg_mr:1:EBUSY,fail=dereg_mr:2:EBUSY
	# what the device keeps is not ours to free
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 ibmr run plan.json
	holds true
	status_is 1
	holds '.steps[0].ok and (.ok | not)'
}

@test "ten thousand MRs stay quick" {
	jq -nc '{device:"soft0",steps:[range(10000) | {do:"create",mr:"m\(.)",max_klms:1}]}' >plan.json
	start=$(date +%s%N)
	good run plan.json --timeout 30s
	[ $((($(date +%s%N) - start) / 1000000000)) -lt 20 ]
	holds '.steps | length == 10000'
}

@test "names are kept byte by byte" {
	plan '{"do":"reg","mr":"größe µ","length":1}' '{"do":"dereg","mr":"größe µ"}' \
		'{"do":"reg","mr":"a b","length":1,"expect":{"mr":{"name":"a b"}}}' \
		'{"do":"dereg","mr":"A B","expect":{"error":"no_such_mr"}}'
	good run plan.json
	holds '.steps[0].result.mr.name == "größe µ"'
}

@test "a device that is pulled out is told as that by each step, and everything is let go of" {
	export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$top/test/sweep/leaks-of-others"
	soft0 "gone=reg_mr:2,counters=$PWD/counters"
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"reg","mr":"b","length":4096}' \
		'{"do":"read","mr":"x","length":8}' '{"do":"invalidate","mr":"x"}' \
		'{"do":"read","mr":"a","offset":5000,"length":8}' '{"do":"dereg","mr":"a"}'
	bad 1 no_device run --keep-going plan.json
	holds '.error.cause == "device_gone" and .error.message == "device soft0 is gone: it was pulled out, or failed" and
		[.steps[].error | .code, .cause] == [null, null, null, null, null, null,
			"no_device", "device_gone", "no_device", "device_gone", "no_device", "device_gone",
			"range", null, null, null]'
	grep -qx 'live.context 0' counters
}
