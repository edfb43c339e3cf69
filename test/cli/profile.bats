#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# Profiles of devices: saved by `devices`, used by `check`.
# In one device mode: a device is asked what it can do, and given no work.
load helpers

save() {
	good devices --device soft0 --save-profile p.json
}

# Give the profile another form, by a jq expression, and see how check refuses it: CODE WHERE EXPRESSION
refused() {
	jq "$3" p.json >q.json
	bad 2 "$1" check --target q.json plan.json
	holds ".error.where == \"$2\" and (.error.message | contains(\"q.json\"))"
}

@test "a profile is saved, fits its schema and says so" {
	save
	holds '.result.saved_profile == "p.json" and (.result.devices | length == 1)'
	jq -e '.profile == 1 and .name == "soft0" and .software and .max_klms == 65532 and .max_depth == 4' p.json
	/usr/bin/python3 - "$top/test/schema" <<-'END'
	import json, sys
	sys.path.insert(0, sys.argv[1])
	import schemas
	schemas.validator("profile.schema.json").validate(json.load(open("p.json")))
	END
	good devices --device soft0
	holds '.result.saved_profile == null'
}

@test "what was saved on soft0 answers as the target soft0 does" {
	save
	for document in "$top"/man/examples/*.json "$top"/man/examples/specs/*.json "$top"/test/cases/{fr*,implicit-*}/plan.json; do
		cd "${document%/*}"
		ibmr check --target soft0 "$document"
		jq -S 'del(.elapsed_us)' <<<"$output" >"$BATS_TEST_TMPDIR/want"
		want_status=$status
		ibmr check --target "$BATS_TEST_TMPDIR/p.json" "$document"
		status_is "$want_status"
		jq -S 'del(.elapsed_us)' <<<"$output" | diff "$BATS_TEST_TMPDIR/want" -
		cd "$BATS_TEST_TMPDIR"
	done
}

@test "of an rxe device MRs without local_write are not prefetched" {
	save
	jq '.driver = "rxe"' p.json >rxe.json
	plan '{"do":"reg","mr":"a","length":1,"access":["on_demand"]}' '{"do":"prefetch","mr":"a"}'
	good check --target p.json plan.json
	bad 4 unsupported check --target rxe.json plan.json
	holds '.error.cause == "needs_local_write"'
	jq 'del(.odp_implicit)' p.json >q.json
	plan '{"do":"reg","mr":"a","length":"all","access":["on_demand"]}'
	good check --target p.json plan.json
	bad 4 unsupported check --target q.json plan.json
}

@test "the limits of the profile are those that are checked" {
	soft0 max_klms=64,max_depth=2,odp=0,max_mr_size=1048576
	save
	plan '{"do":"create","mr":"x","max_klms":65}'
	bad 1 limit check --target p.json plan.json
	holds '.error.message | contains("64")'
	plan '{"do":"reg","mr":"x","length":1048577}'
	bad 1 limit check --target p.json plan.json
	plan '{"do":"reg","mr":"x","length":8,"access":["on_demand"]}'
	bad 4 unsupported check --target p.json plan.json
	plan '{"do":"create","mr":"x","max_klms":64}'
	good check --target ./p.json plan.json
	holds '.result.target == "soft0"'
	# 0 is what a device does not say
	jq '.max_mr_size = 0 | .max_depth = 0' p.json >q.json
	good check --target q.json "$top/man/examples/specs/pair.json"
	good check --target q.json "$top/man/examples/halo-faces.json"
	soft0 umr=0
	save
	bad 4 unsupported check --target p.json plan.json
}

@test "a profile that is none is refused, and the place in it is told" {
	save
	plan "$reg_a"
	refused spec_value /profile '.profile = 2'
	refused spec_missing '' 'del(.profile)'
	refused spec_missing '' 'del(.max_entry)'
	refused spec_type /odp '.odp = "yes"'
	refused spec_type /max_klms '.max_klms = null'
	refused spec_type /max_klms '.max_klms = 1.5'
	refused spec_value /max_klms '.max_klms = 65533'
	refused spec_value /max_depth '.max_depth = 256'
	refused spec_value /max_stride '.max_stride = 65536'
	refused spec_value /max_entry '.max_entry = 2147483648'
	refused spec_value /prefetch '.prefetch = "maybe"'
	refused spec_value /name '.name = "x" * 64'
	refused spec_unknown_member /max_klm '.max_klm = 3'
	refused spec_type '' '[.]'
	printf '{"profile":1,"profile":1}' >q.json
	bad 2 spec_duplicate check --target q.json plan.json
	printf '{"profile":1' >q.json
	bad 2 spec_syntax check --target q.json plan.json
	holds '.error.line == 1 and (.error.message | contains("q.json"))'
	: >q.json
	bad 2 spec_syntax check --target q.json plan.json
	bad 1 io check --target . plan.json
	bad 1 io check --target ./nix plan.json
	bad 2 usage check --target nix plan.json
	bad 2 usage check --target sotf0 plan.json
	holds '.error.hint | contains("soft0")'
}

@test "nothing is saved of a device that is not there, does not open, or is not named" {
	bad 2 usage devices --save-profile p.json
	bad 1 no_device devices --device nix --save-profile p.json
	soft0 fail=alloc_pd:1:EPERM
	bad 1 no_permission devices --device soft0 --save-profile p.json
	[ ! -e p.json ]
}

@test "a profile that cannot be written" {
	bad 1 io devices --device soft0 --save-profile nix/p.json
	bad 1 io devices --device soft0 --save-profile .
	bad 1 io devices --device soft0 --save-profile /dev/full
	bad 2 usage devices --device soft0 --save-profile -
	bad 2 usage devices --device soft0 --save-profile ''
	bad 2 usage devices --device soft0 --save-profile $'\xff'
	printf 'old and much longer than what is to come: %01000d' 0 >p.json
	save
	jq -e .profile p.json
}
