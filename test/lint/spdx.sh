#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each source says its licence in its first three lines.
. "$(dirname "$0")/common.bash"
found=0
while IFS= read -r name; do
	if ! head -n 3 -- "$name" | grep -q 'SPDX-License-Identifier: BSD-2-Clause$\|SPDX-License-Identifier: BSD-2-Clause \*/$'; then
		printf '%s: no SPDX line\n' "$name"
		found=1
	fi
done < <({
	files '*.c' '*.h' '*.py' '*.map' '*meson.build' meson_options.txt 'man/*.[0-9]' 'completions/*'
	bash_files .
} | sort -u)
exit $found
