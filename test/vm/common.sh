# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts of this folder; sourced, never run.

set -euo pipefail

# Status of a script that cannot do its work because this machine lacks something; its last line on
# stderr is the reason. The number is the one that test runners take for "skipped".
readonly VM_CANNOT=77

# shellcheck disable=SC2034
VM_CACHE=${IBMR_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ibmr-vm}

log() { printf 'vm: %s\n' "$*" >&2; }

die() {
	log "$*"
	exit 1
}

cannot() {
	log "$*"
	exit "$VM_CANNOT"
}
