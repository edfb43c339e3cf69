#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# A node's regression tests, with the helpers of ibmr-bats(7): bats node.bats, or on the software device
# IBMR_DEVICE=soft0 bats node.bats. The helpers are found where they were installed, or by IBMR_BATS.
load "${IBMR_BATS:-/usr/share/ibmr/bats}/ibmr"

suites=$BATS_TEST_DIRNAME/../suites

teardown() {
	ibmr_session_end
}

@test "the node does all that the quick suite asks" {
	ibmr_validate
}

@test "this node can hold my key-value cache layout" {
	ibmr_validate --suite "$suites/key-value-cache.json"
}

@test "what was written to an MR is read from it, and not beyond it" {
	ibmr_session
	ibmr_ok reg page --length 4KiB --access local_write,remote_write,remote_read
	ibmr_ok write page --offset 4094 --hex c0de
	ibmr_ok read page --offset 4093 --length 3
	ibmr_holds '.result.hex == "00c0de"'
	ibmr_fails 1 range read page --offset 4095 --length 2
}
