#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# The table of error codes: each alone, with its status, and expected in the middle of a plan. The codes of
# usage and form are in usage.bats, run.bats and the cases.
load helpers

reg_plain='{"do":"reg","mr":"plain","length":4096,"access":["local_write"]}'
reg_lazy='{"do":"reg","mr":"lazy","length":65536,"access":["local_write","remote_write","remote_read","on_demand"]}'

# row STATUS CODE STEP [STEP BEFORE...]: STEP ends so, as the last of a plan and expected in its middle
row() {
	local want=$1 code=$2 step=$3
	shift 3
	plan "$@" "$step"
	ibmr run plan.json
	status_is "$want" && holds "(.ok | not) and .error.code == \"$code\" and
		(.error.where | startswith(\"/steps/$#\")) and
		(.steps[-1] | .ok == false and .error.code == \"$code\")"
	plan "$@" "${step%\}},\"expect\":{\"error\":\"$code\"}}" '{"do":"reg","mr":"after","length":1}'
	ibmr run plan.json
	status_is 0 && holds ".ok and .steps[-2].expected and .steps[-1].ok"
}

# Of the last row's error.
tells() {
	holds ".steps[-2].error | $1"
}

@test "no_device" {
	plan "$reg_a"
	bad 1 no_device run plan.json --device mlx5_77
	holds '.device == null and (has("steps") | not) and .error.hint'
	bad 1 no_device devices --device mlx5_77
}

@test "no_device without a name has the hint --device soft0" {
	echo "{\"steps\":[$reg_a]}" >plan.json
	bad 1 no_device run plan.json
	holds '.error.hint | contains("--device soft0")'
}

@test "no_permission" {
	plan "$reg_a"
	soft0 "$(printf "fail=get_context:%d:EACCES\n" 1 2 3 4 5 6 | paste -sd,)"
	bad 1 no_permission run plan.json
}

@test "unsupported: no UMR" {
	soft0 umr=0
	row 4 unsupported "$create_x" "$reg_a"
	tells '.cause'
}

@test "unsupported: no on-demand paging" {
	soft0 odp=0
	row 4 unsupported "$reg_lazy"
}

@test "unsupported: no prefetch" {
	soft0 advise=0
	row 4 unsupported '{"do":"prefetch","mr":"lazy"}' "$reg_lazy"
}

@test "unsupported: no atomics" {
	soft0 atomics=0
	row 4 unsupported '{"do":"fetch_add","mr":"a","add":1}' \
		'{"do":"reg","mr":"a","length":64,"access":["local_write","remote_atomic"]}'
}

@test "unsupported: repeat over on-demand memory" {
	row 4 unsupported '{"do":"fill","mr":"x","layout":"repeat","count":2,'"$rw"',"blocks":[{"mr":"lazy","length":8,"stride":16}]}' \
		"$reg_lazy" "$create_x"
}

@test "no_such_mr, wherever a name stands" {
	row 1 no_such_mr '{"do":"dereg","mr":"aa"}' "$reg_a"
	tells '.errno == "ENOENT"'
	tells '.where == "/mr" and (.hint | contains("'"'a'"'"))'
	row 1 no_such_mr '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a"},{"mr":"b"}]}' "$reg_a" "$create_x"
	tells '.where == "/klms/1/mr"'
	row 1 no_such_mr '{"do":"fill","mr":"x","layout":"repeat","count":1,'"$rw"',"blocks":[{"mr":"b","length":1,"stride":1}]}' "$create_x"
	tells '.where == "/blocks/0/mr"'
	row 1 no_such_mr '{"do":"prefetch","ranges":[{"mr":"lazy"},{"mr":"b"}]}' "$reg_lazy"
	tells '.where == "/ranges/1/mr"'
	row 1 no_such_mr '{"do":"copy","to":"b","from":"a"}' "$reg_a"
	tells '.where == "/to"'
	row 1 no_such_mr '{"do":"copy","to":"a","from":"b"}' "$reg_a"
	tells '.where == "/from"'
	for step in '{"do":"read","mr":"b"}' '{"do":"write","mr":"b","hex":"00"}' '{"do":"verify","mr":"b"}' \
		'{"do":"invalidate","mr":"b"}' '{"do":"fetch_add","mr":"b","add":1}'; do
		plan "$reg_a" "$step"
		bad 1 no_such_mr run plan.json
	done
}

@test "exists" {
	row 1 exists "$reg_a" "$reg_a"
	tells '.errno == "EEXIST"'
	row 1 exists '{"do":"create","mr":"a","max_klms":1}' "$reg_a"
	row 1 exists '{"do":"reg","mr":"x","length":1}' "$create_x"
}

@test "state" {
	row 1 state '{"do":"read","mr":"x","length":1}' "$create_x"
	tells '.errno == "EINVAL"'
	row 1 state '{"do":"write","mr":"x","hex":"00"}' "$create_x"
	row 1 state '{"do":"verify","mr":"x"}' "$create_x"
	row 1 state '{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"x","length":1}]}' \
		"$create_x" '{"do":"create","mr":"y","max_klms":1}'
	row 1 state '{"do":"read","mr":"x","length":1}' "$reg_a" "$create_x" "$fill_x" '{"do":"invalidate","mr":"x"}'
	row 1 state '{"do":"copy","to":"a","from":"x","length":1}' "$reg_a" "$create_x"
	row 1 state '{"do":"fetch_add","mr":"x","add":1}' "$create_x"
}

@test "in_use" {
	row 1 in_use '{"do":"dereg","mr":"a"}' "$reg_a" "$create_x" "$fill_x"
	tells '.errno == "EBUSY"'
	tells '.message | contains("x")'
	row 1 in_use '{"do":"invalidate","mr":"x"}' "$reg_a" "$create_x" "$fill_x" '{"do":"create","mr":"y","max_klms":1}' \
		'{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"x"}]}'
	row 1 in_use '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","length":8}]}' "$reg_a" "$create_x" "$fill_x" \
		'{"do":"create","mr":"y","max_klms":1}' '{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"x"}]}'
}

@test "nesting" {
	row 1 nesting '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"x","length":8}]}' "$reg_a" "$create_x" "$fill_x"
	row 1 nesting '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"y"}]}' "$reg_a" "$create_x" "$fill_x" \
		'{"do":"create","mr":"y","max_klms":1}' '{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"x"}]}'
	soft0 max_depth=1
	row 1 nesting '{"do":"fill","mr":"y","layout":"list",'"$rw"',"klms":[{"mr":"x"}]}' "$reg_a" "$create_x" "$fill_x" \
		'{"do":"create","mr":"y","max_klms":1}'
}

@test "range" {
	for step in '{"do":"read","mr":"a","offset":4096,"length":1}' '{"do":"read","mr":"a","length":4097}' \
		'{"do":"read","mr":"a","offset":4096}' '{"do":"write","mr":"a","offset":4095,"hex":"0000"}' \
		'{"do":"write","mr":"a","offset":"0xffffffffffffffff","hex":"0000"}' \
		'{"do":"write","mr":"a","length":"1TiB","byte":0}' '{"do":"read","mr":"a","length":"1TiB"}' \
		'{"do":"copy","to":"a","to_offset":1,"from":"a"}' '{"do":"copy","to":"a","from":"a","from_offset":4096}' \
		'{"do":"copy","to":"a","from":"a","length":"1TiB"}' '{"do":"copy","to":"a","from":"a","to_offset":"0xfffffffffffffff0"}'; do
		row 1 range "$step" "$reg_a"
		tells '.errno == "EFAULT"'
	done
	row 1 range '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a"},{"mr":"a","offset":4095,"length":2}]}' "$reg_a" "$create_x"
	tells '.where == "/klms/1"'
	row 1 range '{"do":"fill","mr":"x","layout":"repeat","count":3,'"$rw"',"blocks":[{"mr":"a","length":8,"stride":2048}]}' "$reg_a" "$create_x"
	tells '.where == "/blocks/0"'
	row 1 range '{"do":"fill","mr":"x","layout":"list",'"$rw"',"base":"0xffffffffffffffff","klms":[{"mr":"a"}]}' "$reg_a" "$create_x"
	row 1 range '{"do":"prefetch","mr":"lazy","offset":65536,"length":1}' "$reg_lazy"
	row 1 range '{"do":"prefetch","ranges":[{"mr":"lazy"},{"mr":"lazy","offset":65535,"length":2}]}' "$reg_lazy"
	tells '.where == "/ranges/1"'
	row 1 range '{"do":"reg","mr":"c","length":2,"init":{"hex":"000000"}}'
	tells '.where == "/init"'
}

@test "limit" {
	row 1 limit '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a"},{"mr":"a"},{"mr":"a"}]}' "$reg_a" '{"do":"create","mr":"x","max_klms":2}'
	tells '.message | contains("3") and contains("2")'
	row 1 limit '{"do":"create","mr":"x","max_klms":65533}'
	row 1 limit '{"do":"fill","mr":"x","layout":"repeat","count":1,'"$rw"',"blocks":[{"mr":"a","length":65536,"stride":8}]}' \
		'{"do":"reg","mr":"a","length":"1MiB",'"$rw"'}' "$create_x"
	row 1 limit '{"do":"fill","mr":"x","layout":"repeat","count":1,'"$rw"',"blocks":[{"mr":"a","length":8,"stride":65536}]}' \
		'{"do":"reg","mr":"a","length":"1MiB",'"$rw"'}' "$create_x"
	soft0 max_mr_size=8192
	row 1 limit '{"do":"reg","mr":"a","length":8193}'
	tells '.message | contains("8193") and contains("8192")'
}

@test "access" {
	row 1 access '{"do":"read","mr":"plain","length":1}' "$reg_plain"
	tells '.errno == "EACCES"'
	tells '(.message + .hint) | contains("remote_read")'
	row 1 access '{"do":"write","mr":"plain","hex":"00"}' "$reg_plain"
	row 1 access '{"do":"fetch_add","mr":"a","add":1}' "$reg_a"
	row 1 access '{"do":"reg","mr":"c","length":1,"access":["remote_write"]}'
	row 1 access '{"do":"fill","mr":"x","layout":"list","access":["local_write","relaxed_ordering"],"klms":[{"mr":"a"}]}' "$reg_a" "$create_x"
	row 1 access '{"do":"fill","mr":"x","layout":"list","access":["local_write","shared_user_read"],"klms":[{"mr":"a"}]}' "$reg_a" "$create_x"
	row 1 access '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a"},{"mr":"plain"}]}' "$reg_a" "$reg_plain" "$create_x"
	tells '.where == "/klms/1"'
	row 1 access '{"do":"prefetch","mr":"ro","advice":"write"}' '{"do":"reg","mr":"ro","length":4096,"access":["on_demand"]}'
	row 1 access '{"do":"reg","mr":"y","attach":"0.none","access":["shared_user_read"]}'
	row 1 access '{"do":"reg","mr":"y","file":"f","access":["shared_user_read"]}'
	row 1 access '{"do":"reg","mr":"y","length":9,"hugepages":"2MiB","access":["shared_user_read"]}'
	row 1 io '{"do":"reg","mr":"y","attach":"0.none"}'
	tells '.sys_errno == "ENOENT" and .origin == "shm_open"'
	row 1 limit '{"do":"reg","mr":"'"$(printf '%064d' 0)"'","length":9,"access":["shared_user_read"]}'
}

@test "not_on_demand" {
	row 1 not_on_demand '{"do":"prefetch","mr":"a"}' "$reg_a"
	tells '.errno == "EINVAL"'
	row 1 not_on_demand '{"do":"prefetch","ranges":[{"mr":"lazy"},{"mr":"a"}]}' "$reg_lazy" "$reg_a"
	tells '.where == "/ranges/1"'
}

@test "memlock" {
	soft0 memlock=1
	ulimit -S -l 64
	row 1 memlock '{"do":"reg","mr":"c","length":"1MiB"}'
	tells '.errno == "ENOMEM"'
	row 1 memlock '{"do":"reg","mr":"c","length":"40KiB"}' '{"do":"reg","mr":"b","length":"40KiB"}'
}

@test "no_memory" {
	row 1 no_memory '{"do":"reg","mr":"c","length":"0x7fffffffffff0000"}'
	tells '.origin'
}

@test "bad_address" {
	soft0 fail=reg_mr:1:EFAULT
	plan "$reg_a"
	bad 1 bad_address run plan.json
}

@test "key_table" {
	plan "$reg_a"
	soft0 fail=reg_mr:1:EAGAIN
	bad 1 key_table run plan.json
	holds '.error.sys_errno == "EAGAIN" and .error.origin == "ibv_reg_mr"'
}

@test "completion: the device's own refusals, and work goes on" {
	row 1 completion '{"do":"read","mr":"a","offset":4096,"length":1,"unchecked":true}' "$reg_a"
	tells '.errno == "EIO"'
	tells '.status == "IBV_WC_REM_ACCESS_ERR" and (.vendor_err | type == "number")'
	row 1 completion '{"do":"write","mr":"a","offset":4095,"hex":"0000","unchecked":true}' "$reg_a"
	row 1 completion '{"do":"write","mr":"plain","hex":"00","unchecked":true}' "$reg_plain"
	row 1 completion '{"do":"read","mr":"plain","length":1,"unchecked":true}' "$reg_plain"
	row 1 completion '{"do":"read","mr":"x","offset":64,"length":1,"unchecked":true}' "$reg_a" "$create_x" "$fill_x"
	row 1 completion '{"do":"read","mr":"x","length":1,"unchecked":true}' "$create_x"
	plan "$reg_a" '{"do":"write","mr":"a","hex":"42"}' '{"do":"read","mr":"a","offset":4096,"length":1,"unchecked":true,"expect":{"error":"completion"}}' \
		'{"do":"read","mr":"a","length":1,"expect":{"hex":"42"}}' "$create_x" "$fill_x" '{"do":"verify","mr":"x"}'
	good run plan.json
}

@test "timeout" {
	soft0 hold=1
	plan "$reg_a" '{"do":"write","mr":"a","hex":"00"}'
	bad 6 timeout run plan.json --timeout 100ms
	holds '.error.where == "/steps/1" and .elapsed_us < 5e6'
	plan "$reg_a" "$create_x" "${fill_x%\}},\"expect\":{\"error\":\"timeout\"}}" '{"do":"read","mr":"x","length":1,"expect":{"error":"state"}}' \
		'{"do":"dereg","mr":"x"}' '{"do":"dereg","mr":"a"}'
	good run plan.json --timeout 100ms
}

@test "timeout: a FIFO without a peer" {
	mkfifo never
	for step in '{"do":"write","mr":"a","file":"never"}' '{"do":"read","mr":"a","to_file":"never"}' \
		'{"do":"reg","mr":"b","length":8,"init":{"file":"never"}}'; do
		plan "$reg_a" "$step" "$create_x"
		bad 6 timeout run plan.json --timeout 100ms
		holds '.error.where == "/steps/1" and .elapsed_us > 1e5 and .elapsed_us < 5e6 and .steps[2].skipped'
		plan "$reg_a" "${step%\}},\"expect\":{\"error\":\"timeout\"}}" "$create_x"
		good run plan.json --timeout 100ms
	done
}

@test "timeout: a FIFO whose writer says nothing, and whose reader takes nothing" {
	mkfifo quiet
	sleep 5 <>quiet >/dev/null 3>&- &
	sleeper=$!
	plan '{"do":"reg","mr":"a","length":"1MiB",'"$rw"'}' '{"do":"write","mr":"a","file":"quiet"}' "$create_x"
	bad 6 timeout run plan.json --timeout 100ms
	plan '{"do":"reg","mr":"a","length":"1MiB",'"$rw"'}' '{"do":"read","mr":"a","to_file":"quiet"}' "$create_x"
	bad 6 timeout run plan.json --timeout 100ms
	kill "$sleeper"
}

@test "a peer that comes later is waited for" {
	mkfifo in out
	plan "$reg_a" '{"do":"write","mr":"a","file":"in"}' '{"do":"read","mr":"a","length":5,"to_file":"out"}'
	(sleep 0.3; printf hello >in; sleep 0.3; cat out >copy) 3>&- &
	good run plan.json
	wait
	[ "$(cat copy)" = hello ]
}

@test "mismatch" {
	plan "$reg_a" '{"do":"read","mr":"a","length":1,"expect":{"hex":"01"}}' "$create_x"
	bad 3 mismatch run plan.json
	holds '.steps[1].ok and .steps[1].expected == false and .steps[2].skipped'
}

@test "io" {
	row 1 io '{"do":"reg","mr":"f","file":"nosuch"}'
	row 1 io '{"do":"write","mr":"a","file":"nosuch"}' "$reg_a"
	row 1 io '{"do":"write","mr":"a","file":"."}' "$reg_a"
	row 1 io '{"do":"read","mr":"a","to_file":"nosuch/file"}' "$reg_a"
	row 1 io '{"do":"read","mr":"a","to_file":"/dev/full"}' "$reg_a"
	row 1 io '{"do":"reg","mr":"b","length":8,"init":{"file":"nosuch"}}'
	touch empty
	row 1 io '{"do":"write","mr":"a","file":"empty"}' "$reg_a"
	tells '.cause == "empty_file"'
}

@test "a failed step leaves the object as it was" {
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"write","mr":"x","ramp":0,"length":64}' \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a"},{"mr":"nix"}],"expect":{"error":"no_such_mr"}}' \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":4096,"length":1}],"expect":{"error":"range"}}' \
		'{"do":"read","mr":"x","offset":30,"length":4,"expect":{"hex":"1e1f2021"}}' '{"do":"verify","mr":"x"}' \
		'{"do":"reg","mr":"b","length":2,"init":{"hex":"000000"},"expect":{"error":"range"}}' '{"do":"reg","mr":"b","length":2}'
	good run plan.json
}
