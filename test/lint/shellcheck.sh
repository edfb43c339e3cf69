#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/common.bash"
mapfile -t names < <(bash_files .)
shellcheck --external-sources --severity=style "${names[@]}"
