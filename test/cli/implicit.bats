#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154 # helpers.bash has the common ones
# An MR of the whole address space: offsets in it are the addresses of other MRs.
load helpers

rights=local_write,remote_write,remote_read,remote_atomic

base_of() {
	good reg "$1" --length 64KiB --access "$2"
	base=$(jq -r .result.mr.base <<<"$output")
}

@test "it reaches the memory of other MRs by their addresses" {
	session
	base_of a $rights
	good reg all --length all --access $rights,on_demand
	good write all --offset "$base" --hex 0102030405060708
	good read a --length 4
	holds '.result.hex == "01020304"'
	good fetch-add all --offset "$base" --add 1
	holds '.result.old == "0x807060504030201"'
	good copy --from all --from-offset "$base" --to a --to-offset 4096 --length 8
	good read a --offset 4096 --length 8
	holds '.result.hex == "0202030405060708"'
}

@test "what belongs to no other MR is not written" {
	session
	base_of a $rights
	good reg all --length all --access $rights,on_demand
	bad 1 range write all --offset "$((base + 65535))" --hex 0102
	bad 1 range write all --offset "$((base - 1))" --hex 0102 --unchecked
	bad 1 range fetch-add all --offset 8 --add 1
	bad 1 range copy --from a --to all --to-offset 4096 --length 8
	good dereg a
	bad 1 range write all --offset "$base" --hex 01
}

@test "pages of another MR are prefetched through it" {
	session
	base_of lazy local_write,on_demand
	good reg all --length all --access $rights,on_demand
	good prefetch all --offset "$base" --length 16KiB --advice write --expect-resident
	holds '.result | .pages == 4 and .cpu_resident_before == 0 and .cpu_resident_after == 4 and .device_mapped_after == null'
}

@test "it is a member of an indirect MR where another MR has memory" {
	session
	base_of a $rights
	good reg all --length all --access $rights,on_demand
	good create x --max-klms 1
	fill() {
		printf '{"layout":"list","access":["local_write","remote_write","remote_read"],"klms":[{"mr":"all","offset":%s,"length":16}]}' "$1" >spec.json
	}
	fill "$((base + 64))"
	good fill x spec.json
	good write x --hex 0a0b
	good read a --offset 64 --length 2
	holds '.result.hex == "0a0b"'
	bad 4 unsupported verify x
	fill 4096
	bad 1 range fill x spec.json
	holds '.error.where == "/klms/0"'
}
