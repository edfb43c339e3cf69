#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/common.bash"
build=${IBMR_BUILD_CLANG:?}
# unmatchedSuppression and the like are news about cppcheck, not about the code; the next three know
# neither functions that do not return nor records that live for one call (clang-tidy looks for the same)
cppcheck --quiet --project="$build/compile_commands.json" -j "$(cores)" \
	--library=test/lint/jansson.cfg --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem --suppress=unmatchedSuppression \
	--suppress=nullPointerRedundantCheck --suppress=nullPointerArithmeticRedundantCheck \
	--suppress=autoVariables --suppress='*:/usr/include/*' --template=gcc 2>&1
