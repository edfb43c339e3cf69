#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/common.bash"
build=${IBMR_BUILD_CLANG:?}
top=$PWD
# How far the analyzer follows one function. A third of its own default takes half its time, and of 289
# findings with all its checks on it had 286; `./dev stress` goes all the way.
nodes=${IBMR_TIDY_NODES:-75000}

# check NAME PATTERN [OPTION...]: the sources whose path matches; one that is in two targets is checked
# once
check() {
	local name=$1 pattern=$2
	shift 2
	jq -r '.[] | .directory + "/" + .file' "$build/compile_commands.json" | xargs realpath |
		grep -E "^$top/$pattern" | sort -u >"$build/lint-$name"
	(cd "$build" && xargs -P "$(cores)" -n 1 clang-tidy -p . --quiet --extra-arg=-Xclang \
		--extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg="max-nodes=$nodes" "$@" <"lint-$name") \
		>"$build/clang-tidy-$name.log" 2>&1 || status=$?
	# the counts of warnings that were not shown, from system headers
	grep -vE '^[0-9]+ warnings? (generated|treated)' "$build/clang-tidy-$name.log" || true
}

status=0
check product src/
# the analyzer takes most of the time; what it looks for in a test, the sanitizers see when it runs
check tests test/ --checks='-clang-analyzer-*'
exit "$status"
