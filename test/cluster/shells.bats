#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# `ibmr validate` by ClusterShell and pdsh, on four names of this machine by their workers that run
# a command here for each.
bats_require_minimum_version 1.5.0

setup() {
	export answers=$BATS_TEST_TMPDIR/answers
	mkdir "$answers"
	# what a node would run; its first argument is the node's name, which has a fault when asked for
	cat >"$BATS_TEST_TMPDIR/on-node" <<-'EOF'
		#!/bin/sh
		export SLURMD_NODENAME=$1
		shift
		[ "$SLURMD_NODENAME" != "${FAULTY:-}" ] || export IBMR_SOFT0=break=wrong_byte
		exec "$IBMR" validate --device soft0 "$@" 2>"$answers/$SLURMD_NODENAME.steps"
	EOF
	chmod +x "$BATS_TEST_TMPDIR/on-node"
	PATH=$BATS_TEST_TMPDIR:$PATH
}

@test "clush -b: equal nodes fold into one block" {
	run -0 --separate-stderr timeout 60 clush -R exec -w 'n[1-4]' -S -b on-node %h --format text
	[ "$(grep -c '^soft0 (software): ' <<<"$output")" = 1 ]
	grep -x 'n\[1-4\] (4)' <<<"$output"
}

@test "clush -S: the highest status, and the node that differs stands by itself" {
	FAULTY=n3 run -1 --separate-stderr timeout 60 clush -R exec -w 'n[1-4]' -S -b on-node %h --format text
	grep -x 'n\[1-2,4\] (3)' <<<"$output"
	grep -x 'n3' <<<"$output"
	grep -x '  FAIL     data  mismatch: .*' <<<"$output"
}

@test "clush: an answer a node, and the report over them" {
	FAULTY=n3 run -1 timeout 60 clush -R exec -w 'n[1-4]' -S on-node %h --output "$answers/%h.json"
	rm "$answers"/*.steps
	run -0 --separate-stderr "$IBMR" report --format text "$answers"
	grep -x '4 nodes' <<<"$output"
	grep -x '    on 1: n3' <<<"$output"
}

@test "pdsh -S: the highest status; dshbak -c folds equal nodes" {
	run -0 timeout 60 bash -o pipefail -c "pdsh -R exec -S -w 'n[1-4]' on-node %h --format text | dshbak -c"
	grep -x 'n\[1-4\]' <<<"$output"
	[ "$(grep -c '^soft0 (software): ' <<<"$output")" = 1 ]
	FAULTY=n3 run -1 timeout 60 pdsh -R exec -S -w 'n[1-4]' on-node %h --format text
}

@test "pdsh: answers of a line, sorted by the names before them, go to the report" {
	FAULTY=n3 run -0 timeout 60 bash -c "pdsh -R exec -w 'n[1-4]' on-node %h --format jsonl |
		sort -s -t : -k 1,1 | sed 's/^[^:]*: //' >$answers/all.jsonl"
	rm "$answers"/*.steps
	run -0 --separate-stderr "$IBMR" report --format text "$answers"
	echo "$output"
	grep -x '4 nodes' <<<"$output"
	grep -x '    on 1: n3' <<<"$output"
}
