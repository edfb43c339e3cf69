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

# Scripts of bash, by their name or their first line; takes git patterns as files does.
bash_files() {
	files "$@" | grep -E '\.(bash|sh|bats|nhc\.in)$' || true
	files "$@" | grep -E '(^|/)[^/.]+(\.in)?$' | xargs -r awk 'FNR == 1 && /^#!.*(ba)?sh$/ { print FILENAME } FNR > 1 { nextfile }'
}

cores() {
	nproc
}
