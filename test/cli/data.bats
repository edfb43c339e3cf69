#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# Bytes: where they come from and go to.
load helpers

crc() { # of standard input
	gzip -c | tail -c 8 | od -An -tx4 -N4 | tr -d ' '
}

@test "show tells what became of an on-demand MR's pages" {
	session
	good reg lazy --length 64KiB --access local_write,remote_read,on_demand
	holds '.result.mr.odp_pages == {faults: 0, prefetched: 0, invalidations: 0}'
	good prefetch lazy --length 16KiB --advice write
	good read lazy --offset 20KiB --length 1
	good show lazy
	holds '.result.mr.odp_pages == {faults: 1, prefetched: 4, invalidations: 0}'
	good reg plain --length 4096
	holds '.result.mr.odp_pages == null'
}

@test "init: ramp, byte, hex, file" {
	printf 'from a file' >data
	plan '{"do":"reg","mr":"r","length":300,'"$rw"',"init":{"ramp":250}}' \
		'{"do":"read","mr":"r","length":8,"expect":{"hex":"fafbfcfdfeff0001"}}' \
		'{"do":"read","mr":"r","offset":296,"expect":{"hex":"22232425"}}' \
		'{"do":"reg","mr":"b","length":3,'"$rw"',"init":{"byte":255}}' '{"do":"read","mr":"b","expect":{"hex":"ffffff"}}' \
		'{"do":"reg","mr":"h","length":4,'"$rw"',"init":{"hex":"A1b2"}}' '{"do":"read","mr":"h","expect":{"hex":"a1b20000"}}' \
		'{"do":"reg","mr":"f","length":12,'"$rw"',"init":{"file":"data"}}' \
		'{"do":"read","mr":"f","expect":{"hex":"'"$(od -An -v -tx1 data | tr -d ' \n')"'00"}}'
	good run plan.json
}

@test "a large ramp has no seam" {
	plan '{"do":"reg","mr":"r","length":3000001,'"$rw"',"init":{"ramp":5}}' '{"do":"read","mr":"r","to_file":"out"}' \
		'{"do":"write","mr":"r","ramp":9,"length":2500000}' '{"do":"read","mr":"r","length":2500000,"to_file":"out2"}'
	good run plan.json
	python3 - <<-'END'
	assert open("out", "rb").read() == bytes((5 + k) % 256 for k in range(3000001))
	assert open("out2", "rb").read() == bytes((9 + k) % 256 for k in range(2500000))
	END
}

@test "crc32 is the IEEE one, of all bytes" {
	head -c 2097155 /dev/urandom >data
	plan '{"do":"reg","mr":"a","length":2097155,'"$rw"'}' '{"do":"write","mr":"a","file":"data"}' '{"do":"read","mr":"a"}' \
		'{"do":"copy","to":"a","from":"a"}'
	good run plan.json
	holds "[.steps[1,2,3].result.crc32] | unique == [\"0x$(crc <data)\"]"
	holds '.steps[2].result | .hex == null and .length == 2097155'
}

@test "hex is given up to 4096 bytes" {
	plan '{"do":"reg","mr":"a","length":4097,'"$rw"',"init":{"ramp":0}}' '{"do":"read","mr":"a","length":4096}' '{"do":"read","mr":"a"}'
	good run plan.json
	holds '(.steps[1].result.hex | length == 8192) and .steps[2].result.hex == null'
}

@test "write from a file, a pipe, a byte" {
	printf abcdef >data
	mkfifo pipe
	printf 'through a pipe' >pipe &
	plan "$reg_a" '{"do":"write","mr":"a","file":"data","offset":2}' '{"do":"read","mr":"a","length":9,"expect":{"hex":"000061626364656600"}}' \
		'{"do":"write","mr":"a","file":"pipe"}' '{"do":"write","mr":"a","byte":7,"length":2,"offset":1}' \
		'{"do":"read","mr":"a","length":4,"expect":{"hex":"7407076f"}}'
	good run plan.json
	holds '.steps[1].result == {"mr":"a","offset":2,"length":6,"crc32":"0x4b8e39ef"} and .steps[3].result.length == 14'
	# one that never ends is too long at some time
	plan "$reg_a" '{"do":"reg","mr":"b","length":10,"init":{"file":"/dev/zero"},"expect":{"error":"range"}}'
	good run plan.json
}

@test "read to a file; one that is refused leaves the file alone" {
	printf before >out
	plan '{"do":"reg","mr":"a","length":5,'"$rw"',"init":{"hex":"68656c6c6f"}}' '{"do":"read","mr":"a","length":6,"to_file":"out","expect":{"error":"range"}}'
	good run plan.json
	[ "$(cat out)" = before ]
	plan '{"do":"reg","mr":"a","length":5,'"$rw"',"init":{"hex":"68656c6c6f"}}' '{"do":"read","mr":"a","to_file":"out"}'
	good run plan.json
	[ "$(cat out)" = hello ]
	holds '.steps[1].result | .file == "out" and .hex == "68656c6c6f"'
}

@test "file names may begin with \$TMPDIR" {
	mkdir elsewhere
	printf xyz >elsewhere/in
	plan "$reg_a" '{"do":"write","mr":"a","file":"$TMPDIR/in"}' '{"do":"read","mr":"a","length":3,"to_file":"$TMPDIR/out"}' \
		'{"do":"reg","mr":"f","file":"$TMPDIR/map","map":"shared","create":true,"length":2,"access":["local_write"],"init":{"byte":65}}'
	TMPDIR=$PWD/elsewhere good run plan.json
	[ "$(cat elsewhere/out)" = xyz ] && [ "$(cat elsewhere/map)" = AA ]
	holds '.steps[2].result.file == "$TMPDIR/out"'
	# only there, and only as a word of its own
	plan "$reg_a" '{"do":"write","mr":"a","file":"x/$TMPDIR/in"}'
	bad 1 io run plan.json
	plan "$reg_a" '{"do":"write","mr":"a","file":"$TMPDIRS"}'
	bad 1 io run plan.json
}

@test "a shared map reaches the file, a private one does not" {
	printf 0123456789 >shared
	printf 0123456789 >private
	plan '{"do":"reg","mr":"s","file":"shared","map":"shared","file_offset":2,"length":5,'"$rw"'}' \
		'{"do":"reg","mr":"p","file":"private","map":"private",'"$rw"'}' \
		'{"do":"read","mr":"s","expect":{"hex":"3233343536"}}' \
		'{"do":"write","mr":"s","hex":"41","offset":4}' '{"do":"write","mr":"p","hex":"41"}' \
		'{"do":"read","mr":"p","length":2,"expect":{"hex":"4131"}}'
	good run plan.json
	[ "$(cat shared)" = 012345A789 ] && [ "$(cat private)" = 0123456789 ]
}

@test "create makes a file or lengthens it" {
	printf ab >short
	plan '{"do":"reg","mr":"n","file":"new","map":"shared","create":true,"length":6,'"$rw"'}' \
		'{"do":"reg","mr":"s","file":"short","map":"shared","create":true,"length":4,'"$rw"'}' '{"do":"write","mr":"s","hex":"64","offset":3}'
	good run plan.json
	[ "$(stat -c %s new)" = 6 ]
	[ "$(od -An -tx1 short)" = " 61 62 00 64" ]
}

@test "copy, also onto itself" {
	plan '{"do":"reg","mr":"a","length":"3MiB",'"$rw"',"init":{"ramp":0}}' "$create_x" \
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":100,"length":50},{"mr":"a","offset":0,"length":50}]}' \
		'{"do":"reg","mr":"b","length":200,'"$rw"'}' \
		'{"do":"copy","to":"b","to_offset":1,"from":"x","from_offset":49,"length":3}' '{"do":"read","mr":"b","length":5,"expect":{"hex":"0095000100"}}' \
		'{"do":"copy","to":"a","to_offset":1,"from":"a","length":"2MiB"}' \
		'{"do":"read","mr":"a","offset":1048570,"length":16,"expect":{"hex":"f9fafbfcfdfeff000102030405060708"}}' \
		'{"do":"copy","to":"a","from":"a","from_offset":1}' '{"do":"read","mr":"a","length":3,"expect":{"hex":"000102"}}'
	good run plan.json
	holds '.steps[4].result | .to == "b" and .from == "x" and .length == 3 and .to_offset == 1 and .from_offset == 49'
}

@test "shared memory: the same bytes in two MRs, and its name goes with its maker" {
	local name=s$$ id
	id=$(id -u).$name
	local share='{"do":"reg","mr":"'"$name"'","length":4096,"access":["local_write","remote_write","remote_read","shared_user_read","shared_group_read"],"init":{"ramp":0},"expect":{"mr":{"attach":"'"$id"'"}}}'
	plan "$share" '{"do":"reg","mr":"b","attach":"'"$id"'",'"$rw"',"expect":{"mr":{"length":4096,"attach":"'"$id"'"}}}' \
		'{"do":"write","mr":"b","offset":5,"hex":"ff"}' '{"do":"read","mr":"'"$name"'","offset":4,"length":3,"expect":{"hex":"04ff06"}}' \
		"$create_x" '{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"b","length":16},{"mr":"'"$name"'","offset":8,"length":16}]}' \
		'{"do":"verify","mr":"x","expect":{"bytes":32,"restored":true,"not_checked":[]}}' \
		'{"do":"dereg","mr":"x"}' '{"do":"dereg","mr":"'"$name"'"}' '{"do":"read","mr":"b","offset":5,"length":1,"expect":{"hex":"ff"}}' \
		'{"do":"reg","mr":"c","attach":"'"$id"'","expect":{"error":"io"}}'
	good check plan.json
	good run plan.json
	[ ! -e "/dev/shm/ibmr-$id" ]
}

@test "shared memory between a session and a run" {
	local name=t$$ id
	id=$(id -u).$name
	session
	good reg "$name" --length 64KiB --access local_write,remote_read,shared_user_read
	holds ".result.mr.attach == \"$id\""
	[ "$(stat -c %a "/dev/shm/ibmr-$id")" = 400 ]
	bad 1 io reg "again" --attach "$id.none"
	plan '{"do":"reg","mr":"in","attach":"'"$id"'","access":["remote_read"]}' '{"do":"read","mr":"in","length":2,"expect":{"hex":"0000"}}' \
		'{"do":"reg","mr":"'"$name"'","length":1,"access":["shared_user_read"],"expect":{"error":"io"}}'
	good run plan.json
	good dereg "$name"
	[ ! -e "/dev/shm/ibmr-$id" ]
}

@test "atomics" {
	plan '{"do":"reg","mr":"a","length":64,"access":["local_write","remote_write","remote_read","remote_atomic"]}' \
		'{"do":"fetch_add","mr":"a","offset":8,"add":"0xffffffffffffffff","expect":{"old":"0x0"}}' \
		'{"do":"fetch_add","mr":"a","offset":8,"add":2,"expect":{"old":"0xffffffffffffffff"}}' \
		'{"do":"compare_swap","mr":"a","offset":8,"compare":1,"swap":"0x1122334455667788","expect":{"old":"0x1"}}' \
		'{"do":"compare_swap","mr":"a","offset":8,"compare":1,"swap":0,"expect":{"old":"0x1122334455667788"}}' \
		'{"do":"read","mr":"a","offset":8,"length":8,"expect":{"hex":"8877665544332211"}}' \
		'{"do":"fetch_add","mr":"a","offset":4,"add":1,"expect":{"error":"range"}}' \
		'{"do":"fetch_add","mr":"a","offset":60,"add":1,"expect":{"error":"range"}}'
	good run plan.json
}

@test "small transfers through an indirect MR, around the sizes that a completion could carry" {
	steps=('{"do":"reg","mr":"a","length":4096,'"$rw"',"init":{"ramp":0}}' "$create_x"
		'{"do":"fill","mr":"x","layout":"list",'"$rw"',"klms":[{"mr":"a","offset":1,"length":100},{"mr":"a","offset":201,"length":100}]}')
	for n in 1 2 15 16 17 31 32 33 63 64 65 127 128 129 200; do
		steps+=('{"do":"write","mr":"x","ramp":'"$n"',"length":'"$n"'}' '{"do":"read","mr":"x","length":'"$n"',"expect":{"hex":"'"$(
			for ((k = 0; k < n; k++)); do printf %02x $(((n + k) % 256)); done)"'"}}')
	done
	plan "${steps[@]}"
	good run plan.json
}

@test "prefetch tells pages before and after" {
	plan '{"do":"reg","mr":"l","length":"1MiB","access":["local_write","on_demand"]}' \
		'{"do":"prefetch","mr":"l","offset":4096,"length":8192}' \
		'{"do":"prefetch","ranges":[{"mr":"l","length":4096},{"mr":"l","offset":"512KiB"}],"advice":"write","flush":false}' \
		'{"do":"prefetch","mr":"l","advice":"no_fault"}'
	good run plan.json
	holds '.steps[1].result | .advice == "read" and .flush and .bytes == 8192 and .pages == 2 and (.ranges | length == 1)'
	holds '.steps[2].result | .advice == "write" and (.flush | not) and (.ranges | length == 2) and .ranges[1].length == 524288'
	holds '.steps[3].result | .advice == "no_fault" and .bytes == 1048576'
	[ "$(jq -r '.steps[1].result | keys_unsorted | join(" ")' <<<"$output")" = "advice flush bytes page_size source pages cpu_resident_before cpu_resident_after device_mapped_before device_mapped_after ranges" ]
}
