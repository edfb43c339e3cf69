#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Files that may have become two ideas. A hint, never a failure.
. "$(dirname "$0")/common.bash"
files '*.c' '*.h' '*.py' '*.bats' '*.sh' | xargs wc -l |
	awk '$2 != "total" && $1 > 700 { print "warning: " $2 " has " $1 " lines" }'
