# SPDX-License-Identifier: BSD-2-Clause
# A Slurm of four nodes n1 to n4 on this machine, below $CLUSTER and on ports of its own: Debian's
# slurmctld and, for each node, slurmd. Nothing of it outlives slurm_stop.
# shellcheck shell=bash

# Each node's fault, by a file of its name in $CLUSTER/faults that is read as shell text.
write_settings() {
	cat >"$CLUSTER/node-check.conf" <<-EOF
		PATH=$(dirname "$IBMR"):\$PATH
		options=(--device soft0)
		results=$CLUSTER/results
		export IBMR_SOFT0=$IBMR_SOFT0 SLURM_CONF=$SLURM_CONF
		[ ! -f "$CLUSTER/faults/\$node" ] || . "$CLUSTER/faults/\$node"
	EOF
	# Slurm passes on neither arguments nor environment
	local use
	for use in prolog health; do
		cat >"$CLUSTER/$use" <<-EOF
			#!/bin/sh
			IBMR_NODE_CHECK_CONF=$CLUSTER/node-check.conf
			export IBMR_NODE_CHECK_CONF
			[ -f "$CLUSTER/$use.on" ] || exit 0
			exec $IBMR_BUILD/data/cluster/ibmr-node-check$([ "$use" = health ] || echo " --prolog")
		EOF
		chmod +x "$CLUSTER/$use"
	done
}

# The first of so many ports in a row that nobody uses.
free_ports() {
	/usr/bin/python3 - "$1" <<-'EOF'
		import random, socket, sys
		for first in random.sample(range(20000, 32000, 16), 500):
		    held = []
		    try:
		        for port in range(first, first + int(sys.argv[1])):
		            held.append(socket.socket())
		            held[-1].bind(("127.0.0.1", port))
		    except OSError:
		        continue
		    finally:
		        for s in held:
		            s.close()
		    print(first)
		    break
	EOF
}

write_slurm_conf() {
	local host port
	host=$(uname -n)
	port=$(free_ports 5) || return 1
	cat >"$SLURM_CONF" <<-EOF
		ClusterName=ibmr
		SlurmctldHost=$host(127.0.0.1)
		AuthType=auth/none
		CredType=cred/none
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		StateSaveLocation=$CLUSTER/state
		SlurmdSpoolDir=$CLUSTER/spool.%n
		SlurmctldPidFile=$CLUSTER/slurmctld.pid
		SlurmdPidFile=$CLUSTER/slurmd.%n.pid
		SlurmctldLogFile=$CLUSTER/slurmctld.log
		SlurmdLogFile=$CLUSTER/slurmd.%n.log
		SlurmctldPort=$port
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SwitchType=switch/none
		MpiDefault=none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/linear
		MessageTimeout=60
		KillWait=5
		Prolog=$CLUSTER/prolog
		PrologFlags=Alloc
		HealthCheckProgram=$CLUSTER/health
		HealthCheckInterval=2
		HealthCheckNodeState=ANY
		NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 4))] CPUs=1
		PartitionName=rdma Nodes=n[1-4] Default=YES State=UP OverSubscribe=NO
	EOF
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "not in time: $*"
			return 1
		fi
		sleep 0.1
	done
}

nodes_are() { # STATE NUMBER
	[ "$(sinfo --noheader --Node --format=%T | grep -cx "$1")" = "$2" ]
}

# The state and the reason of a node.
node_is() { # NODE PATTERN
	# shellcheck disable=SC2053 # a pattern
	[[ "$(sinfo --noheader --Node --nodes="$1" --format='%T %E')" == $2 ]]
}

slurm_start() {
	local node
	export SLURM_CONF=$CLUSTER/slurm.conf
	mkdir -p "$CLUSTER/state" "$CLUSTER/faults" "$CLUSTER/results"
	write_settings
	write_slurm_conf || return 1
	# no file descriptor of bats may stay open in a daemon
	slurmctld -c 3>&- || return 1
	for node in n1 n2 n3 n4; do
		slurmd -N "$node" 3>&- || return 1
	done
	wait_for 60 nodes_are idle 4 || {
		tail -n 20 "$CLUSTER"/*.log
		return 1
	}
}

slurm_stop() {
	local file pid
	for file in "$CLUSTER"/slurmd.*.pid "$CLUSTER"/slurmctld.pid; do
		[ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null || :
	done
	for file in "$CLUSTER"/slurmd.*.pid "$CLUSTER"/slurmctld.pid; do
		pid=$(cat "$file" 2>/dev/null) || continue
		wait_for 10 not_running "$pid" >/dev/null || kill -KILL "$pid" 2>/dev/null || :
	done
}

not_running() {
	! kill -0 "$1" 2>/dev/null
}
