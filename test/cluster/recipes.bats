#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2030,SC2031 # text for other shells; a test is a subshell
# What is shipped for NHC, Ansible and Kubernetes. Ansible is Debian's; of NHC, which Debian has not, the
# test has only what its driver does with a check; of the Job the form is checked, and its command run.
bats_require_minimum_version 1.5.0

recipes=$BATS_TEST_DIRNAME/../../data/cluster

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	unset IBMR_DEVICE IBMR_SOCKET SLURMD_NODENAME
	good=${IBMR_SOFT0:-mode=sync}
}

# nhc LINE: a line of nhc.conf as NHC's driver carries it out: no file name is expanded, and die has the
# node marked through a second reading of its words.
nhc() {
	run --separate-stderr timeout 60 bash -c '
		set -f
		mark() { printf "%s|" "$@" >marked; }
		log() { echo "log: $*"; }
		die() {
			local status=$1
			shift
			eval mark "node" "'\''$*'\''"
			exit "$status"
		}
		TIMEOUT=${2:-30}
		. "$0"
		eval "$1"
	' "$IBMR_BUILD/data/cluster/ibmr.nhc" "$@"
}

@test "NHC: a good node is passed without a word" {
	nhc 'check_ibmr --device soft0'
	[ "$status" = 0 ]
	[ -z "$output$stderr" ]
	[ ! -e marked ]
}

@test "NHC: a node that fails is marked with the cause, quotes in it or not" {
	export IBMR_SOFT0=$good,break=wrong_byte
	nhc 'check_ibmr --device soft0'
	[ "$status" = 1 ]
	[ -z "$output$stderr" ]
	[[ "$(<marked)" == "node|check_ibmr:  soft0 "*" fail mismatch: "*"|" ]]
	[[ "$(<marked)" != *"|"*"|"*"|"* ]]
	# a name of which a shell that reads it again would make two commands
	IBMR_SOFT0=$good nhc 'check_ibmr --device "a; touch here"'
	[ "$status" = 1 ]
	[ -e marked ]
	[ ! -e here ]
	[[ "$(<marked)" == "node|check_ibmr:  "* ]]
	[[ "$(<marked)" != *"|"*"|"*"|"* ]]
}

@test "NHC: a node that hangs is marked before NHC's own time is up" {
	export IBMR_SOFT0=$good,hold=1
	local start=$SECONDS
	nhc 'check_ibmr --device soft0' 7
	[ $((SECONDS - start)) -lt 7 ]
	[ "$status" = 1 ]
	[[ "$(<marked)" == "node|check_ibmr:  soft0 "*" timeout "*"|" ]]
}

@test "NHC: a mistake of the settings marks no node, and is in the log" {
	nhc 'check_ibmr --require nonsense'
	[ "$status" = 0 ]
	[[ "$output" == "log: check_ibmr:  not checked: "*" 2" ]]
	[ ! -e marked ]
	IBMR=/nowhere/ibmr nhc 'check_ibmr'
	[ "$status" = 0 ]
	[[ "$output" == "log: check_ibmr:  not checked: "*" 127" ]]
	[ ! -e marked ]
}

@test "Ansible: every answer is kept, and the node that fails has failed with the cause" {
	cat >broken <<-END
		#!/bin/sh
		IBMR_SOFT0=$good,break=wrong_byte exec "$IBMR" "\$@"
	END
	chmod +x broken
	cat >inventory <<-END
		[all]
		n1 ansible_connection=local ibmr=$IBMR
		n2 ansible_connection=local ibmr=$PWD/broken
		[all:vars]
		ibmr_options="--device soft0"
		ansible_python_interpreter=/usr/bin/python3
	END
	export HOME=$PWD ANSIBLE_LOCAL_TEMP=$PWD/ansible ANSIBLE_NOCOLOR=1
	run timeout 120 ansible-playbook -i inventory "$recipes/ansible.yml"
	echo "$output"
	[ "$status" = 2 ]
	[[ "$output" == *"fatal: [n2]: FAILED!"*'"status 1: '* ]]
	[[ "$output" != *"fatal: [n1"* ]]
	"$IBMR" report answers | jq -e '.result.nodes == 2 and .result.broken == []
		and ([.result.failures[].nodes[]] | unique == ["n2"])'
}

@test "Kubernetes: the Job has the form that its API asks for" {
	/usr/bin/python3 "$BATS_TEST_DIRNAME/kubernetes.py" "$recipes/kubernetes-job.yaml"
}

@test "Kubernetes: the container's command leaves nothing but the answer in the log" {
	local node command
	mapfile -d '' -t command < <(/usr/bin/python3 "$BATS_TEST_DIRNAME/kubernetes.py" --command \
		"$recipes/kubernetes-job.yaml")
	[ "${#command[@]}" -gt 4 ]
	# what differs here: the device, and where a container's last words go
	command=("${command[@]/#--all/--device=soft0}")
	command=("${command[@]//\/dev\/termination-log/last-words}")
	for node in n1 n2; do
		[ "$node" = n1 ] || export IBMR_SOFT0=$good,break=wrong_byte
		SLURMD_NODENAME=$node PATH=$(dirname "$IBMR"):$PATH run "${command[@]}"
		[ "$node:$status" = n1:0 ] || [ "$node:$status" = n2:1 ]
		printf '%s\n' "$output" >>log
		grep -q '^ibmr validate: soft0: ' last-words
	done
	"$IBMR" report - <log | jq -e '.result.nodes == 2 and .result.broken == []
		and ([.result.failures[].nodes[]] | unique == ["n2"])'
}
