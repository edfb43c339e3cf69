#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Commands and options: --help = manual pages = completions.
. "$(dirname "$0")/common.bash"
ibmr=${IBMR:?}
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
found=0

same() { # TEXT FILE, TEXT FILE
	if ! diff -u --label "$1" "$2" --label "$3" "$4"; then
		found=1
	fi
}
options_of() { # of a help text on standard input
	grep -oE '^ +(-[A-Za-z?], )?--[a-z][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u
}
documented() { # FILE...: each option that has an entry of its own
	sed -n 's/^\.It Fl Fl \([a-z0-9-]*\).*/--\1/p' "$@" | sort -u
}

"$ibmr" --help | options_of >"$lists/global"
[ -s "$lists/global" ]
documented man/ibmr.1 >"$lists/ibmr.1"
same 'ibmr --help' "$lists/global" 'ibmr(1)' "$lists/ibmr.1"

# A command has a page, and a page a command; what a page says of a global option is extra.
for page in man/ibmr-*.1; do
	command=${page#man/ibmr-}
	command=${command%.1}
	if ! "$ibmr" "$command" --help >"$lists/help" 2>/dev/null; then
		printf '%s: there is no such command\n' "$page"
		found=1
		continue
	fi
	options_of <"$lists/help" | comm -23 - "$lists/global" >"$lists/own"
	documented "$page" | comm -23 - "$lists/global" >"$lists/page"
	same "ibmr $command --help" "$lists/own" "$page" "$lists/page"
	for completion in completions/ibmr.bash completions/_ibmr completions/ibmr.fish; do
		while read -r option; do
			if ! grep -qE -- "(--|-l )${option#--}\b" "$completion"; then
				printf '%s: no %s of %s\n' "$completion" "$option" "$command"
				found=1
			fi
		done < <(cat "$lists/own" "$lists/global")
		if ! grep -qw -- "$command" "$completion"; then
			printf '%s: no %s\n' "$completion" "$command"
			found=1
		fi
	done
done
exit $found
