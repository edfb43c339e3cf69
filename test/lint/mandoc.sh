#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# mandoc finds nothing, but for manuals of others that this machine does not have; each manual of
# ours that a page refers to is there.
. "$(dirname "$0")/common.bash"
mapfile -t names < <(files 'man/*.[0-9]')
[ ${#names[@]} -gt 0 ]
found=0 status=0
# on standard error are its complaints about the machine's own database of manuals
said=$(mandoc -Tlint -Wstyle "${names[@]}" 2>/dev/null) || status=$?
[ "$status" -lt 5 ] # it could not do its work
if grep -vE 'referenced manual not found|^$' <<<"$said"; then
	found=1
fi
while read -r file name section; do
	if [ ! -f "man/$name.$section" ] && ! grep -qF "'$name'" man/meson.build; then
		printf '%s: refers to %s(%s), which is not there\n' "$file" "$name" "$section"
		found=1
	fi
done < <(grep -HoE '^\.Xr (ibmr|libibmr|soft0)[a-z0-9_-]* [0-9]' "${names[@]}" | sed 's/:\.Xr / /' | sort -u)
exit $found
