# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Prefetch with proof, the causes of what the environment makes fail, and what doctor says of it; sourced
# by the guest's suite.

# Memory of every kind, by a program of the library; its rows are the table of conditions.
proof()
{
	local lazy='"access": ["local_write", "remote_read", "on_demand"]' device

	fold "rxe0" conditions rxe0 "$ADVISE"
	fold "soft0" ibmr exec -- conditions soft0 true
	sysctl -q -w vm.nr_hugepages=4
	dd if=/dev/zero of=backing bs=4096 count=64 2>/dev/null
	for device in rxe0 soft0; do
		if [ $device = rxe0 ] && ! $ADVISE; then continue; fi
		plan "{ \"do\": \"reg\", \"mr\": \"f\", \"file\": \"backing\", \"map\": \"shared\", $lazy }" \
			'{ "do": "prefetch", "mr": "f", "advice": "write", "expect_resident": true,
				"expect": { "source": "pagemap", "pages": 64, "cpu_resident_before": 0 } }'
		check "$device: prefetch of a file" 0 .ok ibmr run plan.json --device $device
		plan "{ \"do\": \"reg\", \"mr\": \"h\", \"hugepages\": \"2MiB\", \"length\": \"4MiB\", $lazy }" \
			'{ "do": "prefetch", "mr": "h", "advice": "write", "expect_resident": true,
				"expect": { "pages": 1024, "cpu_resident_before": 0 } }'
		check "$device: prefetch of huge pages" 0 .ok ibmr run plan.json --device $device
		plan "{ \"do\": \"reg\", \"mr\": \"m\", \"length\": \"1MiB\", $lazy }" \
			'{ "do": "prefetch", "mr": "m", "length": "64KiB", "advice": "write" }' \
			'{ "do": "prefetch", "mr": "m", "advice": "no_fault", "expect_resident": true }'
		check "$device: less than was expected to be resident is a mismatch" 3 '
			.error | .code == "mismatch" and .cause == "not_resident" and
			(.message | test("16 of the 256"))' ibmr run plan.json --device $device
	done
	! $ADVISE || first_touch
	# a kernel as new as the guest's needs no fork protection, which soft0 does not tell
	plan '{ "do": "reg", "mr": "h", "hugepages": "2MiB", "length": 4096, "access": ["local_write"] }'
	check "soft0: part of a huge page under fork protection" 4 '
		.error | .code == "unsupported" and .cause == "hugepage_fork" and .certain and
		.sys_errno == "EINVAL"' env RDMAV_FORK_SAFE=1 ibmr run plan.json --device soft0
	check "rxe0: and without" 0 .ok ibmr run plan.json --device rxe0
	sysctl -q -w vm.nr_hugepages=0
	plan '{ "do": "reg", "mr": "all", "length": "all", "access": ["on_demand"] }'
	check "rxe0: the whole address space as one MR is unsupported" 4 '
		.error | .code == "unsupported" and .cause == "odp_implicit" and .certain' \
		ibmr run plan.json --device rxe0
	check "soft0: it is not" 0 .ok ibmr run plan.json --device soft0
}

# Why one prefetches: the time of a read that has to fault its pages in, and of one that has not.
first_touch()
{
	local lazy='"length": "4MiB", "access": ["local_write", "remote_read", "on_demand"]'

	plan "{ \"do\": \"reg\", \"mr\": \"a\", $lazy }" "{ \"do\": \"reg\", \"mr\": \"b\", $lazy }" \
		'{ "do": "read", "mr": "a", "length": 1 }' \
		'{ "do": "prefetch", "mr": "b", "advice": "write", "expect_resident": true }' \
		'{ "do": "read", "mr": "a" }' '{ "do": "read", "mr": "b" }'
	check "rxe0: reading with and without a prefetch" 0 .ok ibmr run plan.json --device rxe0
	jq -r '.steps | map(.elapsed_us) | "# rxe0: 4 MiB of untouched memory are read in \(.[4]) us, after a prefetch in \(.[5]) us"' "$OUT"
}

causes()
{
	plan '{ "do": "reg", "mr": "m", "length": "1MiB", "access": ["local_write"] }'
	check "the locked-memory limit is a certain cause" 1 '
		.error | .cause == "rlimit_memlock" and .certain and
		(.message | test("CAP_IPC_LOCK is not effective"))' \
		as_user 64 ibmr run plan.json --device rxe0
	# where such a namespace can be had at all
	if as_user 64 unshare -r true 2>/dev/null; then
		check "CAP_IPC_LOCK in a user namespace does not count, and that is told" 1 '
			.error | .cause == "rlimit_memlock" and .certain and
			(.message | test("user namespace"))' as_user 64 unshare -r ibmr run plan.json --device rxe0
	fi
	plan '{ "do": "reg", "mr": "h", "hugepages": "2MiB", "length": "4MiB", "access": ["local_write"] }'
	check "no huge pages: how many are needed and free" 1 '
		.error | .code == "no_memory" and .cause == "huge_pages" and .certain and
		(.message | test("2 huge pages .* 0 are free"))' ibmr run plan.json --device rxe0
	plan '{ "do": "reg", "mr": "m", "length": 4096, "access": [] }'
	chmod 600 /dev/infiniband/uverbs0
	check "a denied node" 1 '.error | .cause == "node_denied" and .certain' \
		as_user 64 ibmr run plan.json --device rxe0
	chmod 666 /dev/infiniband/uverbs0
	mv /dev/infiniband/uverbs0 /dev/infiniband/away
	check "a missing node" 1 '
		.error | .code == "no_device" and .cause == "no_node" and .certain and .hint != null' \
		ibmr run plan.json --device rxe0
	mv /dev/infiniband/away /dev/infiniband/uverbs0
	mv /etc/libibverbs.d/rxe.driver /etc/away
	check "a missing provider library" 1 '
		.error | .code == "no_device" and .cause == "no_provider" and
		(.hint | test("ibverbs-providers"))' ibmr run plan.json --device rxe0
	mv /etc/away /etc/libibverbs.d/rxe.driver
}

# found CODE SEVERITY COMMAND...: doctor, run so, has the finding.
found()
{
	local code="$1" severity="$2"

	shift 2
	check "doctor finds $code" 0 "
		.result.findings[] | select(.code == \"$code\") | .severity == \"$severity\"" "$@"
}

doctor()
{
	check "doctor: rxe0 opens, and nothing keeps it from working" 0 '
		.result | (.devices | map(.name) == ["rxe0"]) and
		(.devices[0] | .usable and .driver == "rxe" and .active_port and .odp.supported and
			.node == "/dev/infiniband/uverbs0" and .umr == false) and
		([.findings[] | select(.severity == "error")] == [])' ibmr doctor
	check "doctor: the version of rdma-core, and whether it passes advice on" 0 "
		.result | (.libraries[0].version | test(\"^[0-9]+\\\\.[0-9]+\$\")) and
		((.bugs[] | select(.id == \"rxe_no_advise\") | .present) != $ADVISE)" ibmr doctor
	found no_umr info ibmr doctor
	found rxe_on_demand_copies warning ibmr doctor
	found memlock_limited warning as_user 64 ibmr doctor
	found memlock_none error as_user 0 ibmr doctor
	chmod 600 /dev/infiniband/uverbs0
	found node_denied error as_user 64 ibmr doctor
	chmod 666 /dev/infiniband/uverbs0
	mv /dev/infiniband/uverbs0 /dev/infiniband/away
	found no_node error ibmr doctor
	mv /dev/infiniband/away /dev/infiniband/uverbs0
	mv /etc/libibverbs.d/rxe.driver /etc/away
	found no_provider error ibmr doctor
	mv /etc/away /etc/libibverbs.d/rxe.driver
	ip link set dummy0 down
	found no_active_port error ibmr doctor
	ip link set dummy0 up
	rdma resource show mr >left
	[ ! -s left ]
	result $? "doctor leaves nothing in the kernel"
	ibmr doctor --format text >doctor.txt
	grep -q '^device rxe0: rxe, port active' doctor.txt
	result $? "doctor: text for eyes" || sed 's/^/# /' doctor.txt
}
