#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# Which device is used, and what devices are there.
load helpers

@test "devices lists soft0 last, with all members" {
	good devices
	holds '.device == null and (.result.devices | length >= 1) and (.result.devices[-1] | .name == "soft0" and .software and .usable and .error == null)'
	[ "$(jq -r '.result.devices[-1] | keys_unsorted | join(" ")' <<<"$output")" = \
		"name software usable error driver fw guid ports odp umr prefetch atomics max_mr_size" ]
	holds '.result.devices[-1] | (.odp | keys == ["implicit","rc","supported"]) and
		(.umr | keys == ["inline_klms","max_depth","max_klms","max_stride","supported"]) and
		.driver == "mlx5" and (.guid | test("^0x[0-9a-f]{16}$")) and (.ports | length == 1) and
		.ports[0].state == "active" and (.odp.rc | index("write")) and .prefetch and .atomics'
	holds '[.result.devices[:-1][].software] | any | not'
}

@test "--device and IBMR_DEVICE narrow it" {
	good devices --device soft0
	holds '.result.devices | length == 1'
	IBMR_DEVICE=soft0 good devices
	holds '.result.devices | length == 1'
	bad 1 no_device devices --device nix
	IBMR_DEVICE=nix bad 1 no_device devices
	IBMR_DEVICE=nix good devices --device soft0
	IBMR_DEVICE='' good devices
}

@test "what soft0 is told to lack is not listed" {
	soft0 odp=0,umr=0,advise=0,atomics=0,max_mr_size=1048576
	for narrow in "" "--device=soft0"; do
		# shellcheck disable=SC2086
		good devices $narrow
		holds '.result.devices[-1] | (.odp | .supported == false and .rc == []) and .umr.supported == false and
			.prefetch == false and .atomics == false and .max_mr_size == 1048576'
	done
}

@test "a device that does not open is listed with its error, and fails nothing" {
	soft0 fail=alloc_pd:1:EPERM
	for narrow in "" "--device=soft0"; do
		# shellcheck disable=SC2086
		good devices $narrow
		holds '.result.devices[-1] | .name == "soft0" and .usable == false and .error.code == "no_permission" and
			.error.message and .ports == [] and .odp == {"supported":null,"implicit":null,"rc":[]} and .umr.supported == null'
	done
}

@test "soft0 is never used unless it is asked for" {
	echo "{\"steps\":[$reg_a]}" >plan.json
	bad 1 no_device run plan.json
	holds '.device == null and (.error.hint | contains("--device soft0"))'
}

@test "--device comes before IBMR_DEVICE before the plan's" {
	echo "{\"steps\":[$reg_a]}" >none.json
	echo "{\"device\":\"nix\",\"steps\":[$reg_a]}" >nix.json
	plan "$reg_a"
	good run none.json --device soft0
	holds '.device == {"name":"soft0","software":true}'
	IBMR_DEVICE=soft0 good run none.json
	IBMR_DEVICE=soft0 good run nix.json
	good run plan.json
	bad 1 no_device run nix.json
	IBMR_DEVICE=nix bad 1 no_device run plan.json
	IBMR_DEVICE=nix good run plan.json --device soft0
	IBMR_DEVICE=soft0 bad 1 no_device run plan.json --device nix
	IBMR_DEVICE='' good run plan.json
}

@test "an unknown port or GID is told" {
	plan "$reg_a" '{"do":"write","mr":"a","hex":"00"}'
	ibmr run plan.json --port 2
	[ "$status" -ne 0 ]
	holds '.error.message | contains("2")'
}

@test "an indirect MR's first key may be 0" {
	soft0 first_key=0
	plan "$create_x" "$reg_a" "$fill_x" '{"do":"write","mr":"x","hex":"0102"}' '{"do":"read","mr":"x","length":2,"expect":{"hex":"0102"}}' '{"do":"verify","mr":"x"}' '{"do":"verify","mr":"a"}'
	good run plan.json
}

@test "keys are not mixed up where rkey is not lkey" {
	soft0 split_keys=1
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"write","mr":"x","hex":"0102"}' '{"do":"read","mr":"x","length":2,"expect":{"hex":"0102"}}' '{"do":"verify","mr":"x"}' '{"do":"verify","mr":"a"}'
	good run plan.json
	holds '.steps[0].result.mr | .lkey != .rkey'
}

@test "a word that soft0 does not know stops the program" {
	plan "$reg_a"
	IBMR_SOFT0=bogus=1 ibmr run plan.json
	status_is 2
	[ -z "$output" ] && [ -n "$stderr" ]
	# and devices says that soft0 gave no answer
	IBMR_SOFT0=bogus=1 good devices
	holds '.result.devices[-1] | .usable == false and .error.code == "no_device"'
}
