#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each header compiles by itself; the installed ones in C11 and in C++17 without extensions. The experimental
# verbs in C99 too: what they cannot do without (flags from bit 32 on, unnamed unions) says __extension__.
. "$(dirname "$0")/common.bash"
found=0
compile() { # HEADER COMPILER...
	local header=$1
	shift
	printf '#include "%s"\n' "$header" |
		"$@" -Wall -Wextra -Wshadow -Werror -Wno-unused-parameter -fsyntax-only -I. -Isrc -Isrc/lib \
			-Isrc/softdev -Isrc/cli - || {
		printf '%s: not by itself (%s)\n' "$header" "$*"
		found=1
	}
}
while IFS= read -r header; do
	# shellcheck disable=SC2046
	compile "$header" gcc -x c -std=gnu11 -D_GNU_SOURCE $(pkg-config --cflags jansson libibverbs)
done < <(files 'src/*.h')
for header in $(files src/lib/ibmr.h src/softdev/soft0.h src/lib/infiniband/*.h); do
	compile "$header" gcc -x c -std=c11 -pedantic
	compile "$header" clang -x c -std=c11 -pedantic
	compile "$header" g++ -x c++ -std=c++17 -pedantic
done
for header in infiniband/verbs_exp.h infiniband/verbs.h; do
	for language in 'c -std=c99' 'c -std=c11' 'c++ -std=c++17'; do
		# shellcheck disable=SC2086
		compile "$header" gcc -Isrc/lib/exp -x $language -pedantic
		# shellcheck disable=SC2086
		compile "$header" clang -Isrc/lib/exp -x $language -pedantic
	done
done
exit $found
