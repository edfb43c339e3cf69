#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each source says its licence in its first three lines.
. "$(dirname "$0")/common.bash"
mapfile -t names < <({
	files '*.c' '*.h' '*.py' '*.map' '*meson.build' meson_options.txt 'man/*.[0-9]' 'completions/*'
	bash_files .
} | sort -u)
awk 'FNR == 1 { if (file && !said) { print file ": no SPDX line"; bad = 1 } file = FILENAME; said = 0 }
	FNR <= 3 && /SPDX-License-Identifier: BSD-2-Clause( \*\/)?$/ { said = 1 }
	END { if (file && !said) { print file ": no SPDX line"; bad = 1 } exit bad }' "${names[@]}"
