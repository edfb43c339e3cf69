#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# libibmr: exported symbols = version map = public headers = manual pages. soft0.h likewise.
. "$(dirname "$0")/common.bash"
build=${IBMR_BUILD:?}
found=0
same() { # WHAT A, WHAT B: two sorted lists in files
	if ! diff -u --label "$1" "$2" --label "$3" "$4"; then
		found=1
	fi
}
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

exported() {
	nm -D --defined-only --without-symbol-versions "$1" | awk '$2 ~ /[TDBRVW]/ { print $3 }' | sort -u
}
declared() { # MACRO HEADER: names of the functions that the header marks
	gcc -E -P -x c "-D_GNU_SOURCE" -Isrc/lib "$2" | tr '\n' ' ' | tr ';' '\n' |
		sed -n 's/.*__attribute__((visibility("default")))[^(]*[ *]\('"$1"'[a-z0-9_]*\)(.*/\1/p' | sort -u
}

exported "$build/src/lib/libibmr.so" >"$lists/so"
declared ibmr_ src/lib/ibmr.h >"$lists/header"
declared 'ib[mv]r\{0,1\}_exp_' src/lib/infiniband/verbs_exp.h >"$lists/exp"
sort -u "$lists/header" "$lists/exp" >"$lists/headers"
sed -n 's/^[[:space:]]*\(ib[mv][a-z0-9_]*\);.*/\1/p' src/lib/libibmr.map | sort -u >"$lists/map"
grep -oE '^\.(Fo|Fn|Ft .*Fn) "?ibmr_[a-z0-9_]+' man/libibmr.3 | grep -oE 'ibmr_[a-z0-9_]+$' | sort -u >"$lists/man"
grep -ohE '^\.F[no] "?(int|void \*|struct [a-z_]+ \*)?"? ?ib(mr|v)_exp_[a-z0-9_]+' man/ibv_exp_*.3 man/libibmr-exp.7 |
	grep -oE 'ib(mr|v)_exp_[a-z0-9_]+$' | sort -u >"$lists/exp-man"
[ -s "$lists/so" ] || { echo 'libibmr.so exports nothing'; found=1; }
grep -v '^IBMR_' "$lists/so" >"$lists/names"
same headers "$lists/headers" libibmr.so "$lists/names"
same headers "$lists/headers" libibmr.map "$lists/map"
same ibmr.h "$lists/header" 'libibmr(3)' "$lists/man"
same verbs_exp.h "$lists/exp" 'ibv_exp_*(3) and libibmr-exp(7)' "$lists/exp-man"

softdev=$(find "$build/src/softdev" -maxdepth 1 -name 'lib*.so' | head -n 1)
exported "$softdev" | grep '^soft0_' >"$lists/soft0"
declared soft0_ src/softdev/soft0.h >"$lists/soft0.h"
same soft0.h "$lists/soft0.h" "${softdev##*/}" "$lists/soft0"
exit $found
