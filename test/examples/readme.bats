#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The README's example runs and prints what is shown.
# In one device mode: it is about what is written.

bats_require_minimum_version 1.5.0

@test "the README's example prints what it shows" {
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	unset IBMR_DEVICE
	cd "$BATS_TEST_TMPDIR" || return 1
	# shellcheck disable=SC2016 # backquotes of Markdown
	sed -n '/^```json$/,/^```$/p' "$top/README.md" | sed '1d;$d' >column.json
	[ -s column.json ]
	# shellcheck disable=SC2016
	sed -n '/^```console$/,/^```$/p' "$top/README.md" | grep -v '^```' >console
	run grep -c '^\$ ' console
	[ "$output" -ge 2 ]
	while IFS= read -r line; do
		case $line in
		'$ '*)
			printf '%s\n' "$line"
			bash -c "${line#\$ }" 2>&1 || true
			;;
		esac
	done <console >printed
	diff -u console printed
}

@test "files that the README names are there" {
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	[ -x "$top/dev" ]
	"$top/dev" help | grep -q '^ *demo '
	while read -r path; do
		echo "$path"
		[ -e "$top/$path" ]
	done < <(grep -oE '\b(man|data|src)/[a-z0-9/._-]*[a-z0-9]' "$top/README.md" | grep -v '^src/cli' | sort -u)
}
