#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# The guest's first process: set up Soft-RoCE, run the one command, power off.

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
stty -F /dev/ttyS1 raw -echo
echo 'ibmr-vm: up' >/dev/ttyS1
exec </dev/console >/dev/console 2>&1
export PATH=/vm/bin:/bin:/sbin HOME=/root TMPDIR=/tmp
umask 022
chmod 1777 /tmp

rxe_up()
{
	modprobe ib_uverbs && modprobe rdma_rxe && modprobe dummy || return
	ip link set lo up
	ip addr add 192.0.2.1/24 dev dummy0 && ip link set dummy0 up || return
	rdma link add rxe0 type rxe netdev dummy0 || return
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ ! -c /dev/infiniband/uverbs0 ] || return 0
		sleep 0.2
	done
	echo "rxe0 has no device node"
	return 1
}

rxe_up || status=125

eval "set -- $(cat /vm/command)"
if [ "$1" = shell ]; then
	setsid cttyhack sh
elif [ -z "$status" ]; then
	exec 3>/dev/ttyS1
	echo 'ibmr-vm: begin' >&3
	# by a pipe, or programs would take the serial port for somebody's terminal
	{
		"$@" 3>&- </dev/null
		echo $? >/run/status
	} | cat >&3
	printf 'ibmr-vm: end %s\n' "$(cat /run/status)" >&3
	exec 3>&-
fi
poweroff -f
