#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/common.bash"
mapfile -t names < <(files 'man/*.[0-9]')
[ ${#names[@]} -gt 0 ]
mandoc -Tlint -Wstyle "${names[@]}"
