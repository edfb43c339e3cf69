#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/common.bash"
files '*.c' '*.h' | xargs clang-format --dry-run --Werror
