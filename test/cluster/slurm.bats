#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# `ibmr validate` by Slurm on four nodes: see slurm.bash.
# shellcheck disable=SC2154 # run sets stderr
bats_require_minimum_version 1.5.0
load slurm.bash

setup_file() {
	export CLUSTER=$BATS_FILE_TMPDIR
	slurm_start
}

teardown_file() {
	slurm_stop
}

setup() {
	export SLURM_CONF=$CLUSTER/slurm.conf
	answers=$BATS_TEST_TMPDIR
}

# One task a node, with the node's fault; its answer in a file of the node's name.
on_all_nodes() {
	# shellcheck disable=SC2016 # expanded on the node
	run --separate-stderr timeout 90 srun --nodes=4 --ntasks-per-node=1 --kill-on-bad-exit=0 \
		bash -c 'node=$SLURMD_NODENAME
			[ ! -f "$0/faults/$node" ] || . "$0/faults/$node"
			exec "$IBMR" validate --device "${device:-soft0}" --deadline "${deadline:-30s}" \
				--output "$1/$node.json" 2>/dev/null' "$CLUSTER" "$answers"
	echo "status $status: $output $stderr"
}

fault() { # NODE TEXT
	printf '%s\n' "$2" >"$CLUSTER/faults/$1"
}

back_in_service() {
	rm -f "$CLUSTER"/faults/* "$CLUSTER"/*.on
	scontrol update nodename="n[1-4]" state=resume 2>/dev/null || :
	wait_for 30 nodes_are idle 4
}

report() { # JQ-EXPRESSION
	"$IBMR" report "$answers" | tee "$BATS_TEST_TMPDIR/../report.json" | jq -e "$1"
}

@test "four good nodes: srun ends with 0 and the report finds no failure" {
	on_all_nodes
	[ "$status" = 0 ]
	report '.result.nodes == 4 and .result.failures == [] and .result.broken == []'
}

@test "one node with a wrong byte: srun ends with 1, and the report names the node and the cause" {
	fault n2 'export IBMR_SOFT0=break=wrong_byte'
	on_all_nodes
	back_in_service
	[ "$status" = 1 ]
	report '.result.nodes == 4 and ([.result.failures[].nodes[]] | unique == ["n2"])
		and any(.result.failures[]; .what == "soft0 data fail mismatch")'
	"$IBMR" report --format text "$answers" | grep -x '    on 1: n2'
}

@test "one node hangs: its deadline ends it, srun ends with 6, the finished checks are reported" {
	fault n3 'export IBMR_SOFT0=hold=1; deadline=3s'
	on_all_nodes
	back_in_service
	[ "$status" = 6 ]
	report '.result.nodes == 4 and ([.result.failures[].nodes[]] | unique == ["n3"])
		and any(.result.failures[]; .what == "soft0 data timeout timeout")'
	jq -e '.counts.pass >= 1 and .counts.timeout >= 1' "$answers/n3.json"
}

@test "one node without the device: the report names it, and the others pass" {
	fault n4 'unset IBMR_SOFT0; device=mlx5_0'
	on_all_nodes
	back_in_service
	[ "$status" = 1 ]
	report '.result.nodes == 4 and ([.result.failures[].nodes[]] | unique == ["n4"])
		and all(.result.failures[]; .what | endswith(" error no_device"))'
}

@test "prolog: a good node runs the job, and no node is drained" {
	touch "$CLUSTER/prolog.on"
	run -0 --separate-stderr timeout 60 srun --nodes=4 --ntasks-per-node=1 true
	nodes_are idle 4 || wait_for 20 nodes_are idle 4
	back_in_service
}

@test "prolog: a node that fails is drained with the reason, and the job does not run on it" {
	touch "$CLUSTER/prolog.on"
	fault n2 'export IBMR_SOFT0=break=wrong_byte'
	run --separate-stderr timeout 60 sbatch --parsable --nodelist=n2 --output=/dev/null \
		--wrap "touch $CLUSTER/ran"
	[ "$status" = 0 ]
	wait_for 30 node_is n2 'drained ibmr: soft0 data fail mismatch: hex: byte 1: * more)'
	scancel "$output"
	[ ! -e "$CLUSTER/ran" ]
	# the answer is kept for the report
	run -0 "$IBMR" report --format text "$CLUSTER/results/n2.json"
	[[ "$output" == *"failing: soft0 data fail mismatch"* ]]
	back_in_service
}

@test "prolog: a node that hangs is drained by what it hung in" {
	touch "$CLUSTER/prolog.on"
	fault n3 'export IBMR_SOFT0=hold=1; options+=(--deadline 2s)'
	run -0 --separate-stderr timeout 60 sbatch --parsable --nodelist=n3 --output=/dev/null --wrap true
	wait_for 30 node_is n3 'drained ibmr: soft0 data timeout timeout: * more)'
	scancel "$output"
	back_in_service
}

@test "health check: drained while it fails, and back when it passes" {
	fault n3 'export IBMR_SOFT0=break=off_by_one'
	touch "$CLUSTER/health.on"
	wait_for 40 node_is n3 'drained ibmr: soft0 *'
	wait_for 20 nodes_are idle 3
	rm "$CLUSTER/faults/n3"
	wait_for 40 node_is n3 'idle none'
	back_in_service
}

@test "health check: what somebody else drained stays drained, failing or passing" {
	scontrol update nodename=n4 state=drain reason="fan broken, ticket 12"
	fault n4 'export IBMR_SOFT0=break=wrong_byte'
	fault n3 'export IBMR_SOFT0=break=wrong_byte'
	touch "$CLUSTER/health.on"
	wait_for 40 node_is n3 'drained ibmr: *'
	wait_for 40 test -s "$CLUSTER/results/n4.json"
	node_is n4 'drained fan broken, ticket 12'
	# somebody takes over what it drained
	scontrol update nodename=n3 state=drain reason="mine now"
	rm "$CLUSTER"/faults/*
	wait_for 40 not_marked n3
	node_is n3 'drained mine now'
	node_is n4 'drained fan broken, ticket 12'
	back_in_service
}

not_marked() {
	! [ -e "$CLUSTER/results/$1.drained" ]
}

@test "where it cannot keep its answer it says so, and no node is lost for it" {
	printf 'results=/proc/nothing\n' >"$BATS_TEST_TMPDIR/conf"
	export IBMR_NODE_CHECK_CONF=$BATS_TEST_TMPDIR/conf
	run -2 --separate-stderr "$IBMR_BUILD/data/cluster/ibmr-node-check"
	[[ "$stderr" == *"was not checked: cannot write in /proc/nothing"* ]]
	run -0 --separate-stderr "$IBMR_BUILD/data/cluster/ibmr-node-check" --prolog
	printf 'results=%s\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/conf"
	mkdir "$BATS_TEST_TMPDIR/$(uname -n).lock"
	run -2 --separate-stderr "$IBMR_BUILD/data/cluster/ibmr-node-check"
	[[ "$stderr" == *"was not checked: cannot write in "* ]]
	run -2 "$IBMR_BUILD/data/cluster/ibmr-node-check" --prolong
}

@test "health check: a mistake in the settings drains no node" {
	fault n1 'options=(--suite nowhere.json)'
	touch "$CLUSTER/health.on" "$CLUSTER/prolog.on"
	wait_for 40 grep -qs "not checked" "$CLUSTER/slurmd.n1.log"
	run -0 --separate-stderr timeout 60 srun --nodelist=n1 true
	node_is n1 'idle none' || wait_for 20 node_is n1 'idle none'
	back_in_service
}
