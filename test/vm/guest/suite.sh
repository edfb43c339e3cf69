#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash source-path=SCRIPTDIR
# The tests of ibmr over a kernel's Soft-RoCE, run inside the guest; prints TAP.
# Usage: suite.sh true|false    whether this userland's rxe provider has ibv_advise_mr

# shellcheck source=tap.sh
. /vm/tap.sh
# shellcheck source=causes.sh
. /vm/causes.sh

ADVISE=${1:?}
PLANS=/vm/plans
cd /tmp || exit 1

# as_user LIMIT COMMAND...: as an ordinary user who may lock that much memory, in KiB
# shellcheck disable=SC2016,SC2317 # called through check
as_user()
{
	(ulimit -l "$1" && shift && exec su -m -s /bin/sh -- user -c 'exec "$@"' sh "$@")
}

# plan STEP...: a plan of these steps in plan.json
plan()
{
	local IFS=,

	echo "{ \"steps\": [ $* ] }" >plan.json
}

devices()
{
	check "rxe0 opens and says what it can do" 0 '
		.result.devices[] | select(.name == "rxe0") |
		.usable and .software == false and .driver == "rxe" and .error == null and
		.odp.supported and .odp.implicit == false and (.odp.rc | index("read") != null) and
		.atomics and .umr.supported == false and (.ports | length == 1)' ibmr devices
	check "whether it prefetches is told as it is, or not known" 0 '
		.result.devices[] | select(.name == "rxe0") | .prefetch |
		. == null or . == '"$ADVISE" ibmr devices
	check "soft0 stands after it" 0 '[.result.devices[].name] == ["rxe0", "soft0"]' ibmr devices
	check "--device narrows the list" 0 '[.result.devices[].name] == ["rxe0"]' \
		ibmr devices --device rxe0
	check "a device that is not there is no_device" 1 '.error.code == "no_device"' \
		ibmr devices --device rxe1
	check "without --device a plan takes the first active one" 0 '
		.device == { name: "rxe0", software: false }' ibmr run $PLANS/data.json
}

data()
{
	local device example

	for device in rxe0 soft0; do
		rm -f mapped
		check "$device: register, write, read, atomics and verify" 0 .ok \
			ibmr run $PLANS/data.json --device $device
		printf '\300\377\356' >want
		dd if=mapped bs=1 skip=4100 count=3 of=got 2>/dev/null
		cmp -s want got
		result $? "$device: what was written through a shared mapping is in the file"
		check "$device: on-demand memory is faulted in by the device's accesses" 0 .ok \
			ibmr run $PLANS/on-demand.json --device $device
	done
	for example in /vm/examples/*.json; do
		! jq -e 'any(.steps[]; .do == "create")' "$example" >/dev/null || continue
		$ADVISE || ! jq -e 'any(.steps[]; .do == "prefetch")' "$example" >/dev/null || continue
		check "check --target rxe lets ${example##*/} pass" 0 .ok ibmr check "$example" --target rxe
		check "the example ${example##*/}, which needs no indirect MR" 0 .ok \
			ibmr run "$example" --device rxe0
	done
	on_demand_copy
}

# Kernels up to 7.3 at least copy to and from the start of an on-demand page, whatever the offset (only
# atomics land where they should): verify must find it, and find nothing once they are right.
on_demand_copy()
{
	cat >plan.json <<-'EOF'
		{ "steps": [
		  { "do": "reg", "mr": "m", "length": "64KiB",
		    "access": ["local_write", "remote_write", "remote_read", "remote_atomic", "on_demand"] },
		  { "do": "write", "mr": "m", "offset": 8, "hex": "0102030405060708" },
		  { "do": "fetch_add", "mr": "m", "offset": 8, "add": 0 },
		  { "do": "verify", "mr": "m" } ] }
	EOF
	check "soft0: verify finds on-demand memory in order" 0 '
		.steps[2].result.old == "0x807060504030201"' ibmr run plan.json --device soft0
	ibmr run plan.json --device rxe0 >copy.json 2>/dev/null
	if jq -e '.steps[2].result.old == "0x807060504030201"' copy.json >/dev/null; then
		check "rxe0: verify finds on-demand memory in order" 0 .ok cat copy.json
	else
		check "rxe0: verify finds that this kernel misplaces on-demand copies" 0 '
			.error | .code == "mismatch" and .where == "/steps/3"' cat copy.json
	fi
}

mistakes()
{
	local device step

	for device in rxe0 soft0; do
		check_steps "$device" $PLANS/mistakes.json \
			ibmr run $PLANS/mistakes.json --device $device --keep-going
	done
	# what the device itself refuses, and that the requester is told why
	for step in '"do": "read", "mr": "a", "offset": 4096, "length": 1' \
		'"do": "write", "mr": "a", "offset": 4095, "hex": "0102"' \
		'"do": "read", "mr": "b", "length": 1' '"do": "write", "mr": "b", "hex": "01"'; do
		plan '{ "do": "reg", "mr": "a", "length": 4096,
			"access": ["local_write", "remote_write", "remote_read"] }' \
			'{ "do": "reg", "mr": "b", "length": 4096, "access": ["local_write"] }' \
			"{ $step, \"unchecked\": true }"
		for device in rxe0 soft0; do
			check "$device: refuses $step" 1 '
				.error | .code == "completion" and .status == "IBV_WC_REM_ACCESS_ERR"' \
				ibmr run plan.json --device $device
		done
	done
}

indirect()
{
	local plan

	plan '{ "do": "create", "mr": "i", "max_klms": 4 }'
	check "create on rxe0 is unsupported, with the reason" 4 '
		.error | .code == "unsupported" and .cause != null and .where == "/steps/0" and
		(.message | length > 20)' ibmr run plan.json --device rxe0
	check "so says check --target rxe before" 4 '.error.code == "unsupported"' \
		ibmr check plan.json --target rxe
	for plan in data on-demand prefetch mistakes; do
		check "check --target rxe agrees with what $plan.json comes to" 0 .ok \
			ibmr check $PLANS/$plan.json --target rxe
	done
	check "an example with indirect MRs is unsupported on rxe0" 4 '.error.code == "unsupported"' \
		ibmr run /vm/examples/halo-faces.json --device rxe0
}

# The suites that come with ibmr: what needs UMR is skipped with the reason, and the rest passes, but
# for what on_demand_copy knows of this kernel, which is a check of its own and must not pass.
suites()
{
	local suite misplaced=fail

	! jq -e '.steps[2].result.old == "0x807060504030201"' copy.json >/dev/null || misplaced=pass
	sysctl -q -w vm.nr_hugepages=4
	for suite in quick full; do
		check "rxe0: the $suite suite skips what needs UMR, and the rest passes" 0 '
			(.counts | .fail + .timeout + .error == 0 and .pass >= 8) and
			all(.devices[0].checks[]; if .name == "on-demand-offset" then .state == "skip" and .error == null
				elif any(.needs[]; . == "umr" or . == "implicit")
				or ('"$ADVISE"' | not) and .needs == ["odp", "prefetch"]
				then .state == "skip" and (.error.message | length > 10)
				else .state == "pass" end) and
			(.devices[0] | .reported.umr == false and .proved.umr == null and .proved.odp)' \
			ibmr validate --device rxe0 --suite $suite --timeout 1m --deadline 4m --skip on-demand-offset
		ibmr validate --device rxe0 --suite $suite --timeout 1m --deadline 4m >whole.json 2>/dev/null
		check "rxe0: the $suite suite finds whether on-demand copies are misplaced" 0 '
			([.devices[0].checks[] | select(.state == "fail" or .state == "error") | .name]
				== (if "'$misplaced'" == "fail" then ["on-demand-offset"] else [] end)) and
			.devices[0].proved.odp == ("'$misplaced'" == "pass")' cat whole.json
	done
	sysctl -q -w vm.nr_hugepages=0
	check "rxe0: --require umr makes its skips failures" 1 '
		.devices[0].missing == ["umr"] and .error.code == "unsupported"' \
		ibmr validate --device rxe0 --require umr --timeout 1m --skip on-demand-offset
}

prefetch()
{
	check "soft0: resident pages before and after a prefetch" 0 .ok \
		ibmr run $PLANS/prefetch.json --device soft0
	plan '{ "do": "reg", "mr": "m", "length": "8MiB", "access": ["local_write", "on_demand"] }' \
		'{ "do": "prefetch", "mr": "m", "length": "4MiB", "advice": "no_fault" }'
	if ! $ADVISE; then
		check "rxe0: prefetch without ibv_advise_mr in the library is unsupported" 4 '
			.error | .code == "unsupported" and .sys_errno == "EOPNOTSUPP" and
			.origin == "ibv_advise_mr" and .cause == "advise_mr"' ibmr run plan.json --device rxe0
		return
	fi
	check "rxe0: resident pages before and after a prefetch" 0 .ok \
		ibmr run $PLANS/prefetch.json --device rxe0
	plan '{ "do": "reg", "mr": "m", "length": "8MiB", "access": ["remote_read", "on_demand"] }' \
		'{ "do": "prefetch", "mr": "m", "advice": "read" }'
	check "rxe0: an MR without local_write is not prefetched, with the reason" 4 '
		.error | .code == "unsupported" and .cause == "needs_local_write" and .certain and
		.sys_errno == "EINVAL" and .origin == "ibv_advise_mr"' ibmr run plan.json --device rxe0
	check "soft0: one is" 0 .ok ibmr run plan.json --device soft0
	plan '{ "do": "reg", "mr": "m", "length": "8MiB", "access": ["local_write", "on_demand"] }' \
		'{ "do": "prefetch", "mr": "m", "length": "4MiB", "advice": "no_fault" }'
	check "rxe0: advice no_fault faults nothing in" 0 '
		.steps[1].result | .advice == "no_fault" and .cpu_resident_after == 0' \
		ibmr run plan.json --device rxe0
	check "rxe0: an ordinary user sees the same residency" 0 .ok \
		as_user 8192 ibmr run $PLANS/prefetch.json --device rxe0
}

memlock()
{
	local lazy='{ "do": "reg", "mr": "l", "length": "1MiB", "access": ["local_write", "on_demand"] }'

	plan '{ "do": "reg", "mr": "m", "length": "1MiB", "access": ["local_write"] }'
	check "1 MiB over a locked-memory limit of 64 KiB is memlock" 1 '
		.error | .code == "memlock" and .errno == "ENOMEM" and .sys_errno == "ENOMEM" and
		.origin == "ibv_reg_mr" and (.message | test("65536")) and (.message | test("1048576")) and
		.hint != null' as_user 64 ibmr run plan.json --device rxe0
	check "with a limit of 0 as well" 1 '.error | .code == "memlock" and .sys_errno != null' \
		as_user 0 ibmr run plan.json --device rxe0
	check "without a limit it registers" 0 .ok as_user unlimited ibmr run plan.json --device rxe0
	check "CAP_IPC_LOCK makes the limit no matter" 0 .ok \
		sh -c 'ulimit -l 64; exec ibmr run plan.json --device rxe0'
	plan "$lazy"
	check "on demand it needs no locked memory" 0 .ok as_user 64 ibmr run plan.json --device rxe0
	plan '{ "do": "reg", "mr": "a", "length": 32769, "access": [] }' \
		'{ "do": "reg", "mr": "b", "length": 28672, "access": [] }' \
		'{ "do": "reg", "mr": "c", "length": 1, "access": [] }'
	check "MRs add up, in whole pages" 1 '
		([.steps[].ok] == [true, true, false]) and .error.code == "memlock" and
		.error.where == "/steps/2"' as_user 64 ibmr run plan.json --device rxe0
	# soft0 counts as the kernel does
	check "soft0 agrees when asked to enforce the limit" 1 '
		([.steps[].ok] == [true, true, false]) and .error.code == "memlock"' \
		as_user 64 env IBMR_SOFT0=memlock=1 ibmr run plan.json --device soft0
}

# Memory that anonymous pages are not: huge pages, many mappings, more than there is.
memory()
{
	local i steps='' device

	plan '{ "do": "reg", "mr": "h", "hugepages": "2MiB", "length": "4MiB",
		"access": ["local_write", "remote_write", "remote_read"], "init": { "ramp": 9 } }' \
		'{ "do": "read", "mr": "h", "offset": "2MiB", "length": 2, "expect": { "hex": "090a" } }' \
		'{ "do": "verify", "mr": "h", "expect": { "bytes": 4194304 } }'
	sysctl -q -w vm.nr_hugepages=4
	for device in rxe0 soft0; do
		check "$device: memory in huge pages" 0 .ok ibmr run plan.json --device $device
	done
	sysctl -q -w vm.nr_hugepages=0

	# each a mapping of its own: the same bytes of a file do not join
	dd if=/dev/zero of=page bs=4096 count=1 2>/dev/null
	for i in $(seq 200); do
		steps="$steps${steps:+,}{ \"do\": \"reg\", \"mr\": \"m$i\", \"file\": \"page\", \"map\": \"private\",
			\"access\": [] }"
	done
	plan "$steps"
	check "200 MRs of one process" 0 .ok ibmr run plan.json --device rxe0
	sysctl -q -w vm.max_map_count=150
	# whose mapping is the one too many, the MR's or the allocator's, is chance
	check "more mappings than vm.max_map_count is no_memory" 1 '
		.error | .code == "no_memory" and .sys_errno == "ENOMEM" and
		(.cause == "map_count" or .origin == "malloc")' ibmr run plan.json --device rxe0
	sysctl -q -w vm.max_map_count=65530

	plan '{ "do": "reg", "mr": "m", "length": "64TiB", "access": [] }'
	check "more memory than there is is no_memory" 1 '.error.code == "no_memory"' \
		ibmr run plan.json --device rxe0
	! $ADVISE || large_prefetch
}

# One SGE of ibv_advise_mr carries less than 4 GiB.
large_prefetch()
{
	sysctl -q -w vm.overcommit_memory=1
	plan '{ "do": "reg", "mr": "m", "length": "5GiB", "access": ["local_write", "on_demand"] }' \
		'{ "do": "prefetch", "mr": "m", "advice": "no_fault",
			"expect": { "bytes": 5368709120, "pages": 1310720, "cpu_resident_after": 0 } }' \
		'{ "do": "prefetch", "mr": "m", "offset": "4607MiB", "length": "2MiB", "advice": "write",
			"expect": { "pages": 512, "cpu_resident_after": 512 } }'
	check "rxe0: prefetch over a range of more than 4 GiB" 0 .ok ibmr run plan.json --device rxe0
	sysctl -q -w vm.overcommit_memory=0
}

# What the kernel still holds once nothing of ours runs.
leftovers()
{
	cat >plan.json <<-'EOF'
		{ "steps": [ { "do": "reg", "mr": "m", "length": 4096, "access": ["local_write", "remote_read"] },
		  { "do": "read", "mr": "m" }, { "do": "read", "mr": "n" } ] }
	EOF
	check "a plan that fails is left" 1 '.error.code == "no_such_mr"' \
		ibmr run plan.json --device rxe0
	rdma resource show mr >left
	rdma resource show qp link rxe0 | grep -v -e ' type GSI' -e ' type SMI' >>left
	[ ! -s left ]
	result $? "no MR and no queue pair is left in the kernel" || sed 's/^/# /' left
}

permission()
{
	plan '{ "do": "reg", "mr": "m", "length": 4096, "access": [] }'
	chmod 600 /dev/infiniband/uverbs0
	check "a device node that may not be opened is no_permission" 1 '
		.error | .code == "no_permission" and .sys_errno == "EACCES" and
		(.message + .hint | test("/dev/infiniband"))' as_user 64 ibmr run plan.json --device rxe0
	check "devices tells it and goes on" 0 '
		.result.devices | .[0].usable == false and .[0].error.code == "no_permission" and
		.[1].usable' as_user 64 ibmr devices
	chmod 666 /dev/infiniband/uverbs0
	mv /dev/infiniband/uverbs0 /dev/infiniband/away
	check "a device without its node is no_device" 1 '.error.code == "no_device"' \
		ibmr run plan.json --device rxe0
	mv /dev/infiniband/away /dev/infiniband/uverbs0
	check "and with it again it works" 0 .ok ibmr run plan.json --device rxe0
}

devices
data
mistakes
indirect
suites
prefetch
memlock
memory
permission
proof
causes
doctor
leftovers
finish
