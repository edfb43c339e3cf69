#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Every example runs as the README says, proves itself and leaves nothing behind.
# $IBMR is the program under test; the examples are found from this file.

bats_require_minimum_version 1.5.0

setup() {
	: "${IBMR:=ibmr}"
	examples=$(cd "$BATS_TEST_DIRNAME/../../man/examples" && pwd)
	work=$BATS_TEST_TMPDIR/work
	mkdir "$work" "$BATS_TEST_TMPDIR/tmp"
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	unset IBMR_DEVICE IBMR_SOCKET
	limit=10
	[ -z "${IBMR_SANITIZER:-}" ] || limit=120
	cd "$work" || return 1
}

# Run one plan from an empty folder; its document is then in $doc.
run_plan() {
	doc=$BATS_TEST_TMPDIR/doc.json
	timeout -k 5 "$limit" "$IBMR" run "$1" >"$doc" 2>"$BATS_TEST_TMPDIR/err" || {
		status=$?
		echo "exit status $status"
		cat "$BATS_TEST_TMPDIR/err"
		jq -c '.error, (.steps[]? | select(.expected == false or (.ok | not)))' "$doc" || head -c 2000 "$doc"
		return 1
	}
	holds '.schema == 1 and .command == "run" and .ok and .device == {"name": "soft0", "software": true}'
	holds "(.steps | length) == $(jq '.steps | length' "$1")"
	holds 'all(.steps[]; (.skipped | not) and .expected != false and (has("result") != has("error")))'
}

# A jq expression about the document must be true; shows what it looked at when it is not.
holds() {
	jq -e "$1" "$doc" >"$BATS_TEST_TMPDIR/jq" || {
		echo "does not hold: $1"
		cut -c 1-3000 "$doc" | head -n 100
		return 1
	}
}

# Nothing was left in the working folder, and in TMPDIR only the files named.
leaves_only() {
	[ -z "$(ls -A "$work")" ]
	[ "$(ls -A "$TMPDIR")" = "$*" ]
}

@test "kv-cache: 1,000 scattered blocks are one MR in table order" {
	run_plan "$examples/kv-cache.json"
	leaves_only
	holds '.steps[2].result.mr | .kind == "indirect" and .form == "list_memory" and .entries == 1000 and .max_klms == 1000'
	holds '[.steps[] | select(.do == "verify").result] | length == 1 and .[0].bytes == 16384000'
	holds '[.steps[] | select(.ok | not).error.code] == ["range", "in_use"]'
	# The table is a scatter: no block twice, and no block behind its predecessor in memory.
	jq -e '[.steps[] | select(.do == "fill").klms[].offset] as $o | ($o | unique | length) == 1000 and
		all(range(1; 1000); $o[.] != $o[. - 1] + 16384)' "$examples/kv-cache.json"
}

@test "half-resolution: 16 million pieces are one MR, said in less than 2 KiB" {
	run_plan "$examples/half-resolution.json"
	leaves_only
	[ "$(wc -c <"$examples/half-resolution.json")" -lt 2048 ]
	holds '[.steps[].result.mr | objects | select(.state == "filled").length / 8] == [33554432, 16777216]'
}

@test "halo-faces: six faces of 32 x 32 doubles are one MR" {
	run_plan "$examples/halo-faces.json"
	leaves_only
	holds '[.steps[] | select(.do == "fill").result.mr.length] == [8192, 8192, 8192, 8192, 8704, 8704, 8192, 8192, 49152]'
	holds '[.steps[] | select(.do == "verify").result.bytes] == [49152]'
}

@test "halo-faces: the expected bytes are those of a loop over the grid" {
	/usr/bin/python3 - "$examples/halo-faces.json" <<-'PY'
		import json, sys, zlib
		side, edge = 34, range(1, 33)
		cell = lambda z, y, x: bytes(((z * side + y) * side + x) * 8 + k & 255 for k in range(8))
		face = lambda f: b''.join(f(b, a) for b in edge for a in edge)
		faces = [face(f) for f in (
		    lambda y, x: cell(1, y, x), lambda y, x: cell(32, y, x),
		    lambda z, x: cell(z, 1, x), lambda z, x: cell(z, 32, x),
		    lambda z, y: cell(z, y, 1), lambda z, y: cell(z, y, 32))]
		want = '0x%08x' % zlib.crc32(b''.join(faces))
		have = [s['expect']['crc32'] for s in json.load(open(sys.argv[1]))['steps'] if 'crc32' in s.get('expect', {})]
		assert have == [want], (have, want)
	PY
}

@test "matrix-column: the file holds the new column and nothing else changed" {
	run_plan "$examples/matrix-column.json"
	leaves_only ibmr-matrix.bin
	file=$TMPDIR/ibmr-matrix.bin
	[ "$(stat -c %s "$file")" = 240000 ]
	[ "$(od -An -tx1 -j 48 -N 24 "$file" | tr -d ' \n')" = 303132333435363701020304050607084041424344454647 ]
	perl -e 'for $k (0 .. 239999) { $r = int($k / 480); $c = $k % 480 - 56;
		print chr(255 & ($c >= 0 && $c < 8 ? 1 + 8 * $r + $c : $k)) }' | cmp - "$file"
}

@test "matrix-column: runs again over the file it left" {
	run_plan "$examples/matrix-column.json"
	cp "$TMPDIR/ibmr-matrix.bin" "$BATS_TEST_TMPDIR/first"
	run_plan "$examples/matrix-column.json"
	cmp "$BATS_TEST_TMPDIR/first" "$TMPDIR/ibmr-matrix.bin"
}

@test "warm-pages: what is demanded is resident, and no more" {
	run_plan "$examples/warm-pages.json"
	leaves_only
	holds '.steps[1].result.cpu_resident_after * .steps[1].result.page_size == 2097152'
	holds '.steps[4].error | .code == "mismatch" and .cause == "not_resident"'
}

@test "odp-window: exactly the window becomes resident" {
	run_plan "$examples/odp-window.json"
	leaves_only
	holds '.steps[1].result | .source != null and .pages == 4096 and .cpu_resident_before == 0 and .cpu_resident_after == 4096'
	holds '[.steps[] | select(.do == "reg").result.mr.on_demand] == [true]'
}

@test "an example with one expected byte changed fails as a mismatch" {
	sed 's/a0a1a2a3a4a5a6a7" } }/a0a1a2a3a4a5a6a8" } }/' "$examples/kv-cache.json" >"$BATS_TEST_TMPDIR/wrong.json"
	run ! cmp -s "$examples/kv-cache.json" "$BATS_TEST_TMPDIR/wrong.json"
	run -3 --separate-stderr "$IBMR" run "$BATS_TEST_TMPDIR/wrong.json"
	jq -e '.ok == false and .error.code == "mismatch" and (.error.where | startswith("/steps/12"))' <<<"$output"
}

@test "check accepts every example plan" {
	for plan in "$examples"/*.json; do
		run -0 --separate-stderr "$IBMR" check "$plan"
		jq -e ".ok and .result.kind == \"plan\" and .result.steps == $(jq '.steps | length' "$plan")" <<<"$output"
	done
	leaves_only
}

@test "each example is explained, and each spec's check command in the README works" {
	for file in "$examples"/*.json "$examples"/specs/*.json; do
		grep -qF "**${file#"$examples"/}**" "$examples/README.md"
	done
	# shellcheck disable=SC2016 # the backquotes are the text looked for
	grep -o '`ibmr check [^`]*`' "$examples/README.md" | tr -d '`' >commands
	set -- "$examples"/specs/*.json
	[ "$(wc -l <commands)" = $# ]
	cd "$examples/../.."
	while read -r _ _ args; do
		# shellcheck disable=SC2086 # the arguments are words
		run -0 --separate-stderr "$IBMR" check $args
		jq -e '.ok and .result.kind == "spec"' <<<"$output"
	done <"$work/commands"
}

# node_tests: the tests for bats, as one runs them
node_tests() {
	run env IBMR="$IBMR" IBMR_DEVICE=soft0 IBMR_BATS="$examples/../../data/bats" bats --formatter tap "$@" "$examples/bats/node.bats"
}

@test "bats/node.bats passes on soft0" {
	node_tests
	[ "$status" -eq 0 ]
	[ "$(grep -c '^ok ' <<<"$output")" -eq 3 ]
	leaves_only
}

@test "bats/node.bats names the checks that fail, and skips what the device lacks" {
	IBMR_SOFT0="${IBMR_SOFT0:+$IBMR_SOFT0,}break=off_by_one" node_tests --filter 'suite|cache'
	[ "$status" -eq 1 ]
	[[ $output == *"soft0 list: fail: "* && $output == *"soft0 key-value-cache: fail: "* ]] || { echo "$output"; return 1; }
	IBMR_SOFT0="${IBMR_SOFT0:+$IBMR_SOFT0,}umr=0" node_tests --filter cache
	[ "$status" -eq 0 ]
	[[ $output == *"ok 1 this node can hold my key-value cache layout # skip umr: not there"* ]] || { echo "$output"; return 1; }
}
