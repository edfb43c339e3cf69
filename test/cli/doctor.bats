#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # jq and inner shells in single quotes; helpers.bash has the common ones
# What doctor says of this machine, and of machines that lack something.
# In one device mode: a device is asked what it can do, and given no work.
load helpers

# Run ibmr where a mount changed what the machine has: in_mounts COMMANDS ARG... What keeps documents
# (test/record) wants /proc, and a folder that a chroot has not.
in_mounts() {
	local commands=$1
	shift
	unshare --mount --map-root-user true 2>/dev/null || skip "no mount namespace can be had here"
	run --separate-stderr env -u LD_PRELOAD unshare --mount --map-root-user sh -c "$commands"' && exec "$0" "$@"' "$IBMR" "$@"
}

found() {
	holds "[.result.findings[].code] | index(\"$1\")"
}

@test "doctor answers in one document, with all members" {
	good doctor
	[ "$(jq -r '.result | keys_unsorted | join(" ")' <<<"$output")" = \
		"worst findings system devices libraries providers bugs limits huge_pages soft0" ]
	holds '.device == null and .command == "doctor" and (.result | .system.sysfs and .system.proc and .soft0.installed and
		(.libraries | map(.name) == ["libibverbs", "libmlx5"]) and (.providers | index("mlx5")) and (.bugs | length > 5) and
		(.findings | map(.severity) | . == (map({error: 0, warning: 1, info: 2}[.]) | sort | map(["error", "warning", "info"][.]))) and
		.worst == ([.findings[].severity] | .[0]))'
}

@test "the version of rdma-core is that of the package" {
	version=$(dpkg-query -W -f '${Version}' libibverbs1 2>/dev/null) || skip "no Debian package tells"
	good doctor
	[ "$(jq -r '.result.libraries[0].version' <<<"$output")" = "${version%%-*}" ]
	# fixed in 61: older ones have it, and it is avoided
	holds ".result.bugs[] | select(.id == \"mlx5_list_total\") | .avoided and .present == (${version%%.*} < 61)"
}

@test "soft0 is healthy, and is asked where it is" {
	good doctor --device soft0
	holds '.result.devices | length == 1 and (.[0] | .name == "soft0" and .usable and .error == null and .active_port and
		.odp.supported and .umr and .driver == "mlx5" and .node == "/dev/infiniband/uverbs0")'
	IBMR_DEVICE=soft0 good doctor
	holds '.result.devices[0].name == "soft0"'
}

@test "nothing is registered, nor tried" {
	soft0 "counters=$PWD/counters"
	good doctor --device soft0
	[ -s counters ]
	run grep -E '^cmd\.(reg_mr|create_qp|create_cq|advise_mr|devx_obj_create) [1-9]' counters
	[ "$status" -eq 1 ]
	grep -E '^cmd\.alloc_pd 1' counters
}

@test "what a device lacks is told" {
	soft0 odp=0,umr=0
	good doctor --device soft0
	found no_odp
	found no_umr
	holds '.result.devices[0] | .odp.supported == false and .umr == false'
}

@test "a device that does not open is told with its error" {
	soft0 "$(printf "fail=get_context:%d:EACCES\n" 1 2 3 4 5 6 | paste -sd,)"
	good doctor --device soft0
	holds '.result.worst == "error" and (.result.devices[0] | .usable == false and .error.code == "no_permission" and .umr == null)'
	found node_denied
}

@test "a device that is not there is told" {
	good doctor --device nix
	holds '.result.devices == [] and .result.worst == "error"'
	found no_device
}

@test "the limit of locked memory is told to who has not the capability" {
	[ "$(id -u)" = 0 ] || skip "the limit can be lowered by root only"
	run --separate-stderr setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock prlimit --memlock=65536:65536 "$IBMR" doctor
	status_is 0
	found memlock_limited
	holds '.result.limits | .memlock.soft == 65536 and .ipc_lock == false'
	run --separate-stderr setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock prlimit --memlock=0:0 "$IBMR" doctor
	found memlock_none
	holds '.result.worst == "error"'
}

@test "without /sys it says so and goes on" {
	in_mounts 'mount -t tmpfs none /sys' doctor
	status_is 0
	found no_sysfs
	found no_rdma
	holds '.result.system.sysfs == false and .result.huge_pages == []'
}

@test "without /proc it says so and goes on" {
	[ -z "${IBMR_SANITIZER:-}" ] || skip "a sanitizer needs /proc"
	in_mounts 'mount -t tmpfs none /proc' doctor
	status_is 0
	found no_proc
	holds '.result.system.proc == false and (.result.limits | .ipc_lock == null and .memlock.pinned == null and .max_map_count == null)'
}

@test "without a configuration of providers it says so" {
	[ -d /etc/libibverbs.d ] || skip "there is no /etc/libibverbs.d to hide"
	in_mounts 'mount -t tmpfs none /etc/libibverbs.d' doctor
	status_is 0
	found no_providers
}

@test "it runs in a chroot that has nothing but it" {
	[ "$(id -u)" = 0 ] || skip "chroot takes root"
	[ -z "${IBMR_SANITIZER:-}" ] || skip "a sanitizer needs /proc"
	mkdir root
	ldd "$IBMR" | grep -oE '/[^ ]+' | while read -r library; do
		mkdir -p "root/$(dirname "$library")"
		cp -L "$library" "root/$library"
	done
	cp "$IBMR" root/ibmr
	run --separate-stderr env -u LD_PRELOAD chroot root /ibmr doctor
	status_is 0
	holds '.result | .devices == [] and (.system | .sysfs == false and .proc == false) and .soft0.installed == false'
	found no_providers
	found no_soft0
}

@test "text is for eyes" {
	ibmr doctor --device soft0 --format text
	status_is 0
	[[ $output == kernel\ *"device soft0: mlx5, port active"* ]]
	ibmr doctor --device nix --format text
	[[ $output == *"error no_device: no device is named 'nix'"* ]]
}
