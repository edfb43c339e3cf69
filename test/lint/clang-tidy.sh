#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/common.bash"
build=${IBMR_BUILD_CLANG:?}
# a source that is in two targets is checked once
jq -r '.[].file' "$build/compile_commands.json" | sort -u >"$build/lint-sources"
status=0
(cd "$build" && xargs -P "$(cores)" -n 1 clang-tidy -p . --quiet <lint-sources) \
	>"$build/clang-tidy.log" 2>&1 || status=$?
# the counts of warnings that were not shown, from system headers
grep -vE '^[0-9]+ warnings? (generated|treated)' "$build/clang-tidy.log" || true
exit "$status"
