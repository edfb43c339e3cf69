#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# translate, of a spec and of an MR of a session.

load helpers

spec='{"layout":"list","klms":[{"mr":"a","offset":100,"length":10},{"mr":"b","offset":7,"length":3},{"mr":"a","offset":102,"length":4}]}'

@test "a spec needs no device and no session" {
	printf '%s' "$spec" >s.json
	good translate s.json 8 5
	holds '.result | .mr == null and .offset == 8 and .length == 5 and .from == null and .complete'
	holds '[.result.pieces[] | [.at, .mr, .offset, .length]] == [[8,"a",108,2],[10,"b",7,3]]'
	holds '.device == null'
	good translate --from a:103 s.json
	holds '.result.places == [3, 14] and .result.pieces == [] and .result.from_offset == 103'
	good translate --from a:0x67 - <s.json
	holds '.result.places == [3, 14]'
	cp s.json spec
	good translate ./spec 16
	holds '.result.length == 1'
}

@test "lengths of a spec's MRs" {
	printf '%s' "$spec" >s.json
	good translate --mr a=110 --mr b=10 s.json 0
	bad 1 range translate --mr a=109 s.json 0
	holds '.error.where == "/klms/0"'
	bad 2 usage translate --mr c=1 s.json 0
	bad 2 usage translate --mr a s.json 0
	echo '{"layout":"list","klms":[{"mr":"a","offset":2}]}' >open.json
	bad 2 usage translate open.json 0
	holds '.error.hint | contains("--mr")'
	good translate --mr a=5 open.json 0
	holds '.result.pieces == [{"at":0,"mr":"a","offset":2,"length":3}]'
}

@test "what is wrong is said" {
	printf '%s' "$spec" >s.json
	bad 2 usage translate s.json
	bad 2 usage translate
	bad 2 usage translate s.json 0 1 2
	bad 2 usage translate --from a s.json
	bad 2 usage translate --from a: s.json
	bad 2 spec_value translate --from a:x s.json
	bad 2 spec_value translate --from a:0 s.json 1
	bad 2 spec_value translate s.json 1.5
	bad 2 spec_value translate s.json 0 0
	bad 1 no_such_mr translate --from c:0 s.json
	bad 1 range translate s.json 17
	bad 1 range translate s.json 0 18
	bad 1 range translate s.json 0 18446744073709551615
	bad 1 io translate none.json 0
	echo '{"steps":[{"do":"dereg","mr":"a"}]}' >plan.json
	bad 2 spec_missing translate plan.json 0
	echo '{' >broken.json
	bad 2 spec_syntax translate broken.json 0
}

@test "an MR of the session" {
	IBMR_SOCKET=$BATS_TEST_TMPDIR/none bad 5 session translate x 0
	session
	"$IBMR" reg a --length 4096
	"$IBMR" reg b --length 16
	"$IBMR" create x --max-klms 3
	printf '%s' "$spec" | "$IBMR" fill x -
	good translate x 8 5
	holds '.result | .mr == "x" and .length == 5 and (.pieces | length) == 2'
	holds '.device.name == "soft0"'
	good translate x --from a:103
	holds '.result.places == [3, 14]'
	bad 1 no_such_mr translate y 0
	bad 2 usage translate --mr a=1 x 0
}

@test "a search ends with its time, on the device and without" {
	cat >p.json <<-'END'
		{"device":"soft0","steps":[
		  {"do":"reg","mr":"a","length":64},
		  {"do":"create","mr":"many","max_klms":1},
		  {"do":"fill","mr":"many","layout":"repeat","count":4294967295,
		   "blocks":[{"mr":"a","length":1,"stride":0}]},
		  {"do":"create","mr":"above","max_klms":1},
		  {"do":"fill","mr":"above","layout":"list","klms":[{"mr":"many","offset":4294967294,"length":1}]},
		  {"do":"translate","mr":"above","from":"a"}]}
	END
	bad 6 timeout run --timeout 100ms p.json
	holds '.error.where == "/steps/5" and .error.origin == "ibmr_mr_locate"'
	bad 6 timeout check --timeout 100ms p.json
	holds '.error.message | contains("100 ms")'
}
