# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Taken in by the checks of this folder. A check prints what it finds and exits non-zero for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Files that the project owns, by git pattern; new ones that are not added yet as well.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r name; do
		[ ! -f "$name" ] || printf '%s\n' "$name"
	done
}

# Scripts of bash, by their first line or their name; takes git patterns as files does.
bash_files() {
	files "$@" | while IFS= read -r name; do
		case $name in
		*.bash | *.sh | *.bats) printf '%s\n' "$name" ;;
		*.*) ;;
		*)
			if head -n 1 -- "$name" 2>/dev/null | tr -d '\0' | grep -qE '^#!.*\b(ba)?sh$'; then
				printf '%s\n' "$name"
			fi
			;;
		esac
	done
}

cores() {
	nproc
}
