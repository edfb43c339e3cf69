#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Boot the VM and run one command in it:
#   boot.sh [--userland newer|host] [--build DIR] [--timeout SECONDS] (--shell | -- COMMAND [ARG...])
#   boot.sh --check        only see that this machine has, or can get, what it takes
#
# The guest is an initramfs packed here: busybox, the modules of Soft-RoCE, the executables and
# libraries of a meson build folder at their own paths (so it finds its parts as it does here), and
# the userland's rdma-core: the newer one that fetch.sh got, or this machine's. The command has rxe0
# before it and /vm/bin in PATH; its standard output and exit status become this script's, and its
# standard error, with the kernel's messages, goes to stderr. Status 124: it did not end in time;
# 125: the guest died; 77: this machine lacks something, named on stderr.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LIB=usr/lib/x86_64-linux-gnu
MODULES=(ib_uverbs rdma_rxe dummy)
KERNEL=$VM_CACHE/kernel
TOOLS=$VM_CACHE/tools

usage() { die "usage: boot.sh [--userland newer|host] [--build DIR] [--timeout S] (--shell | -- CMD...)"; }

kmod_as()
{
	(
		export LD_LIBRARY_PATH=$TOOLS/$LIB:$TOOLS/lib/x86_64-linux-gnu
		exec -a "$1" "$TOOLS/bin/kmod" "${@:2}"
	)
}

# The modules and what they need, unpacked, with an index of their own.
pack_modules()
{
	local version line from to

	version=$(ls "$KERNEL/usr/lib/modules")
	kmod_as modprobe -d "$KERNEL/usr" -S "$version" --show-depends -a "${MODULES[@]}" |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
		while read -r line; do
			from=$(realpath "$line")
			to=$ROOT/usr/${from#"$KERNEL/usr/"}
			mkdir -p "$(dirname "$to")"
			case $from in
			*.xz) xz -dc "$from" >"${to%.xz}" ;;
			*) cp "$from" "$to" ;;
			esac
		done
	cp "$KERNEL/usr/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} \
		"$ROOT/usr/lib/modules/$version/" 2>/dev/null || true
	kmod_as depmod --basedir "$ROOT/usr" "$version"
}

# The libraries FILE loads, as the guest's loader will choose them.
libraries_of()
{
	local loader=/lib64/ld-linux-x86-64.so.2 path=$TOOLS/$LIB:$TOOLS/lib/x86_64-linux-gnu

	if [ -n "$NEWER" ]; then
		loader=$NEWER/usr/lib64/ld-linux-x86-64.so.2
		path=$NEWER/$LIB:$path
	fi
	"$loader" --library-path "$path" --list "$1" | awk '$2 == "=>" { print $3 }'
}

# pack_elf FILE [PATH]: FILE at PATH in the guest, with its libraries: those of the build at their own
# paths, the rest in the one system folder.
pack_elf()
{
	local file=$1 to=$ROOT/${2:-$1} libs lib

	libs=$(libraries_of "$file") || die "the libraries of $file do not resolve"
	mkdir -p "$(dirname "$to")"
	cp -L "$file" "$to"
	for lib in $libs; do
		[ "$lib" != not ] || die "$file needs a library that is not here"
		if [ -n "$BUILD" ] && [[ $lib == "$BUILD"/* ]]; then continue; fi
		[ ! -e "$ROOT/$LIB/${lib##*/}" ] || continue
		# under its own name too, which tells the version
		file=$(realpath "$lib")
		cp "$file" "$ROOT/$LIB/"
		[ "${file##*/}" = "${lib##*/}" ] || ln -s "${file##*/}" "$ROOT/$LIB/${lib##*/}"
	done
}

pack_userland()
{
	local from=$NEWER provider

	cp "${from:+$from/usr}/lib64/ld-linux-x86-64.so.2" "$ROOT/usr/lib64/"
	for provider in "$from/$LIB"/libibverbs/librxe-*.so; do
		pack_elf "$provider" "$LIB/libibverbs/${provider##*/}"
	done
	mkdir "$ROOT/etc/libibverbs.d"
	cp "$from/etc/libibverbs.d/rxe.driver" "$ROOT/etc/libibverbs.d/"
	pack_elf "$from/usr/bin/ibv_devinfo" vm/bin/ibv_devinfo
	pack_elf "$TOOLS/usr/bin/rdma" vm/bin/rdma
	pack_elf "$TOOLS/usr/bin/jq" vm/bin/jq
}

# Every executable and shared library of the build folder's src/, and softdev's sysfs tree.
pack_build()
{
	local file provider

	[ -x "$BUILD/src/cli/ibmr" ] || die "$BUILD has no src/cli/ibmr: build it first"
	while read -r file; do
		pack_elf "$file"
	done < <(find "$BUILD/src" "$BUILD/test/vm" -name '*.p' -prune -o \
		-type f \( -perm -u+x -o -name '*.so*' \) -print)
	while read -r file; do
		cp -a "$file" "$ROOT/$file"
	done < <(find "$BUILD/src" \( -type l -name '*.so*' \) -o -path "$BUILD/src/softdev/sysfs")
	# the build brings libmlx5; loaded as a provider it must be that same file, not a second copy
	cp "$NEWER/etc/libibverbs.d/mlx5.driver" "$ROOT/etc/libibverbs.d/"
	provider=$(echo "$NEWER/$LIB"/libibverbs/libmlx5-*.so)
	ln -s ../libmlx5.so.1 "$ROOT/$LIB/libibverbs/${provider##*/}"
	mkdir -p "$ROOT$BUILD/data"
	cp -r "$BUILD/data/suites" "$ROOT$BUILD/data/"
	ln -s "$BUILD/src/cli/ibmr" "$ROOT/vm/bin/ibmr"
	[ ! -x "$BUILD/test/vm/conditions" ] || ln -s "$BUILD/test/vm/conditions" "$ROOT/vm/bin/conditions"
}

pack()
{
	local top=$HERE/../.. dir

	mkdir -p "$ROOT"/{usr/bin,usr/sbin,usr/lib64,"$LIB"/libibverbs,proc,sys,dev,run,tmp,etc,root,vm/bin}
	for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$ROOT/$dir"; done
	cp "$TOOLS/bin/busybox" "$ROOT/usr/bin/"
	printf 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n' >"$ROOT/etc/passwd"
	printf 'root:x:0:\nuser:x:1000:\n' >"$ROOT/etc/group"
	pack_modules
	pack_userland
	[ -z "$BUILD" ] || pack_build
	cp "$HERE"/guest/*.sh "$ROOT/vm/"
	[ ! -d "$HERE/plans" ] || cp -r "$HERE/plans" "$ROOT/vm/"
	[ ! -d "$top/man/examples" ] || cp -r "$top/man/examples" "$ROOT/vm/"
	printf '%s\n' "${COMMAND[*]@Q}" >"$ROOT/vm/command"
	ln -s vm/init.sh "$ROOT/init"
	(cd "$ROOT" && find . -print0 | "$TOOLS/bin/cpio" --quiet --null -o -H newc -R 0:0) \
		>"$WORK/initramfs"
}

# boot ACCELERATOR CPU: become the guest, from power-on to power-off. Serial port 1 is the kernel's
# console, port 2 carries the command's output between two framing lines. One processor: with two,
# emulated side by side, one now and then runs an instruction that the kernel has just patched, and
# the boot ends in an "Oops: int3". The timer is not checked: on a busy machine an emulated one comes
# too late for that, and the kernel panics.
boot()
{
	local vmlinuz console=(-serial "file:$WORK/console")

	vmlinuz=$(find "$KERNEL" -name 'vmlinuz*' | head -n 1)
	[ "${COMMAND[0]}" != shell ] || console=(-serial mon:stdio)
	exec timeout --foreground --kill-after=5 "$TIMEOUT" qemu-system-x86_64 \
		-accel "$1" -cpu "$2" -smp 1 -m 1024 -display none -monitor none -nic none -no-reboot \
		-nodefaults "${console[@]}" -serial "file:$WORK/result" \
		-kernel "$vmlinuz" -initrd "$WORK/initramfs" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"
}

# Has the guest's first process spoken?
is_up() { grep -qs '^ibmr-vm: up$' "$WORK/result"; }

# KVM is there and yet unusable in many a nested machine, where the guest may stand still without a
# word: it counts only once the guest has spoken, and gets KVM_PATIENCE seconds for that.
KVM_PATIENCE=10

run_kvm()
{
	local guest i

	exec 3<&0
	boot kvm host <&3 3<&- &
	guest=$!
	for ((i = 0; i < KVM_PATIENCE * 10; i++)); do
		if is_up || ! kill -0 "$guest" 2>/dev/null; then break; fi
		sleep 0.1
	done
	is_up || kill "$guest" 2>/dev/null
	wait "$guest"
}

run()
{
	local status=0

	if [ -w /dev/kvm ] && [ "${IBMR_VM_ACCEL:-kvm}" = kvm ]; then
		run_kvm || status=$?
		if is_up; then return "$status"; fi
		log "KVM does not carry the guest here (status $status), emulating"
		status=0
	fi
	(boot tcg max) || status=$?
	return "$status"
}

report()
{
	local status=$1

	cat "$WORK/console" >&2
	sed -e '0,/^ibmr-vm: begin$/d' -e '/^ibmr-vm: end /,$d' "$WORK/result"
	[ "$status" != 124 ] || { log "no end within $TIMEOUT s"; exit 124; }
	status=$(sed -n 's/^ibmr-vm: end \([0-9]*\)$/\1/p' "$WORK/result")
	[ -n "$status" ] || { log "the guest died before the command ended"; exit 125; }
	exit "$status"
}

main()
{
	local userland=newer status=0

	BUILD='' TIMEOUT=${IBMR_VM_TIMEOUT:-400} COMMAND=()
	while [ $# -gt 0 ]; do
		case $1 in
		--userland) userland=${2:?} && shift ;;
		--build) BUILD=$(realpath "${2:?}") && shift ;;
		--timeout) TIMEOUT=${2:?} && shift ;;
		--check) COMMAND=(check) ;;
		--shell) COMMAND=(shell) TIMEOUT=0 ;;
		--) shift && COMMAND=("$@") && break ;;
		*) usage ;;
		esac
		shift
	done
	[ ${#COMMAND[@]} -gt 0 ] || usage
	case $userland in
	newer) NEWER=$VM_CACHE/userland ;;
	host) NEWER='' ;;
	*) usage ;;
	esac

	[ "$(uname -m)" = x86_64 ] || cannot "the VM is for x86_64 machines"
	command -v qemu-system-x86_64 >/dev/null ||
		cannot "there is no qemu-system-x86_64 (package qemu-system-x86)"
	"$HERE/fetch.sh" >/dev/null
	[ "${COMMAND[0]}" != check ] || exit 0

	WORK=$(mktemp -d)
	ROOT=$WORK/root
	trap 'rm -rf "$WORK"' EXIT
	pack
	run || status=$?
	[ "${COMMAND[0]}" != shell ] || exit 0
	report "$status"
}

main "$@"
