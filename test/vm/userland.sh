#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Run a command on this machine over a newer rdma-core: userland.sh [--tap] [--] COMMAND [ARG...]
#
# Its libraries and its C library are laid over /usr in a mount namespace of the command's own, so
# paths, tools and built programs are the machine's and nothing outside the command sees a change.
# No root is needed: without it the command runs as root of a user namespace. Exit status: the
# command's; 77 when the libraries or the namespace can't be had, with the reason on stderr, and with
# --tap a skip of all tests in place of that.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [ "${1:-}" = --tap ]; then
	shift
	status=0
	why=$("${BASH_SOURCE[0]}" true 2>&1) || status=$?
	if [ "$status" = "$VM_CANNOT" ]; then
		echo "1..0 # SKIP ${why##*vm: }"
		exit 0
	fi
fi
[ "${1:-}" != -- ] || shift
[ $# -gt 0 ] || die "usage: userland.sh [--] COMMAND [ARG...]"

root=$("$(dirname "${BASH_SOURCE[0]}")/fetch.sh" --userland-only)
case $root in *[,:\\]*) die "overlayfs takes no ',', ':' or '\\' in a path: $root" ;; esac

namespace=(unshare --mount)
[ "$(id -u)" = 0 ] || namespace+=(--map-root-user)
layer="lowerdir=$root/usr:/usr"

"${namespace[@]}" mount -t overlay -o "$layer" overlay /usr 2>/dev/null ||
	cannot "no mount namespace with an overlay over /usr can be had here"
# shellcheck disable=SC2016
exec "${namespace[@]}" sh -c 'mount -t overlay -o "$1" overlay /usr && shift && exec "$@"' sh \
	"$layer" "$@"
