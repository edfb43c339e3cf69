#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # jq in single quotes; helpers.bash has the common variables
# The answers of many nodes, most of them made from one of soft0.
# In one device mode: the device only makes the first answer.
load helpers

setup_file() {
	"$IBMR" validate --device soft0 >"$BATS_FILE_TMPDIR/answer.json" 2>/dev/null
}

# nodes NUMBER -> nodes.jsonl: as one that answered, each with a name of its own
nodes() {
	/usr/bin/python3 "$top/test/bench/nodes.py" "$BATS_FILE_TMPDIR/answer.json" "$1" >nodes.jsonl
}

# change JQ: of the nodes in nodes.jsonl, .[N] for each
change() {
	jq -cs "$1 | .[]" nodes.jsonl >changed && mv changed nodes.jsonl
}

@test "equal nodes: nothing fails, nothing is odd, and the answer fits the schema" {
	nodes 20
	good report nodes.jsonl
	holds '.result | .nodes == 20 and .failures == [] and .odd == [] and .broken == [] and .duplicates == [] and .changes == null and
		(.checks | length == 30 and (map(.times.histogram // [20] | add) | all(. == 20)))'
	printf '%s' "$output" >sum.json
	/usr/bin/python3 - "$top/test/schema" <<-'END'
		import json, sys
		sys.dont_write_bytecode = True
		sys.path.insert(0, sys.argv[1])
		import schemas
		sys.exit(schemas.result_problem(json.load(open("sum.json"))))
	END
}

@test "the odd node out: a version, a limit, a capability, a time" {
	nodes 40
	change '.[7].devices[0].about.fw = "0.0.9" | .[9].node.limits.memlock.soft = 65536 | .[11].devices[0].proved.odp = false |
		.[13].devices[0].checks[1].elapsed_us *= 3'
	good report nodes.jsonl
	holds '.result | (.odd | map({(.what): .others}) | add) == {
		"soft0 fw": [{value: "0.0.9", nodes: ["node00007"]}],
		"node limits memlock soft": [{value: "65536", nodes: ["node00009"]}],
		"soft0 proved odp": [{value: "no", nodes: ["node00011"]}]} and
		[.checks[].times.outliers[]?.node] == ["node00013"]'
}

@test "a node is a host; of further tasks on it each is one more, and the same task again is a duplicate" {
	nodes 3
	change '(.[0].identity, .[1].identity, .[2].identity).host = "n1" | .[0].identity.task = "4" | .[1].identity.task = "5"
		| .[2].identity.task = "4"'
	good report nodes.jsonl
	holds '.result | .node_names == ["n1", "n1#5"] and (.duplicates | length) == 1'
	change '.[1].identity = {host: "n2", job: null, task: null} | .[2].identity = {host: "n1", job: null, task: null}'
	good report nodes.jsonl
	holds '.result | .node_names == ["n1", "n2"] and (.duplicates | length) == 1'
}

@test "lines of two nodes that are mixed are no node's checks" {
	local host
	for host in n1 n2; do
		SLURMD_NODENAME=$host ibmr validate --device soft0 --format jsonl
		printf '%s\n' "$output" >$host.jsonl
	done
	cat n1.jsonl n2.jsonl >whole.jsonl
	good report whole.jsonl
	holds '.result | .node_names == ["n1", "n2"] and .broken == []'
	paste -d '\n' n1.jsonl n2.jsonl >mixed.jsonl
	bad 1 io report mixed.jsonl
	holds '.error.message | test("must follow each other")'
	good report mixed.jsonl <(SLURMD_NODENAME=n3 "$IBMR" validate --device soft0 --format jsonl 2>/dev/null)
	holds '.result | .node_names == ["n3"] and (.broken | length) == 2'
}

@test "what thresholds measured is compared too, met or not, and once where it has two bounds" {
	nodes 12
	change 'map(.devices[0].checks[2].thresholds = [
			{step: 1, what: "mib_per_s", bound: "min_mib_per_s", limit: 10, measured: 1000.5, met: true},
			{step: null, what: "mrs", bound: "max", limit: 3, measured: 2, met: true},
			{step: null, what: "mrs", bound: "min", limit: 1, measured: 2, met: true},
			{step: 2, what: "elapsed_us", bound: "max_us", limit: 5, measured: null, met: false}])
		| .[4].devices[0].checks[2].thresholds[0].measured = 90'
	good report nodes.jsonl
	name=$(jq -r '.devices[0].checks[2].name' "$BATS_FILE_TMPDIR/answer.json")
	holds ".result.measured | map(select(.check == \"$name\")) | length == 2 and
		(.[0] | .what == \"step 1 mib_per_s\" and .nodes == 12 and .values.median == 1000.5 and .values.least == 90 and
			.values.outliers == [{node: \"node00004\", value: 90}]) and
		(.[1] | .what == \"mrs\" and .nodes == 12 and .values.outliers == [] and .values.most == 2)"
	ibmr report --format html nodes.jsonl
	[[ $output == *"<h2>Measured</h2>"*"step 1 mib_per_s"*"node00004 90.0"* ]]
	ibmr report --format text nodes.jsonl
	[[ $output == *"step 1 mib_per_s on 12: 1000.5, from 90.0 to 1000.5"*"outlier: node00004 90.0"* ]]
}

@test "what fails is folded by cause, with the nodes" {
	nodes 6
	change '(.[2, 4].devices[0].checks[3]) |= (.state = "fail" | .error = {code: "mismatch", message: "byte 7"}) |
		.[5].devices[0].checks[3] |= (.state = "timeout" | .error = {code: "timeout", message: "too long"})'
	good report nodes.jsonl
	name=$(jq -r '.devices[0].checks[3].name' "$BATS_FILE_TMPDIR/answer.json")
	holds ".result | .failures == [{what: \"soft0 $name fail mismatch\", message: \"byte 7\", nodes: [\"node00002\", \"node00004\"]},
		{what: \"soft0 $name timeout timeout\", message: \"too long\", nodes: [\"node00005\"]}] and
		(.checks[3].counts == {pass: 3, fail: 2, skip: 0, timeout: 1, error: 0})"
	printf '%s' "$output" >before.json
	change '.[2].devices[0].checks[3].state = "pass" | del(.[0])'
	good report --baseline before.json nodes.jsonl
	holds ".result.changes == {failing_now: [], failing_no_more: [\"node00002: soft0 $name fail mismatch\"], nodes_new: [],
		nodes_gone: [\"node00000\"]}"
}

@test "broken, cut short and twice: named and counted, and the others are read" {
	nodes 3
	mkdir folder
	sed -n 1p nodes.jsonl >folder/a.json
	{ head -c 900 nodes.jsonl; echo; sed -n 2p nodes.jsonl; sed -n 1p nodes.jsonl; } >folder/b.json
	echo 'slurmstepd: error' >folder/c.out
	{ sed -n 3p nodes.jsonl | jq .; echo '{"schema":1,"command":"run"}'; } >folder/d.json
	: >folder/e.json
	good report folder nothing.json
	holds '.result | .nodes == 3 and (.broken | map(.input) == ["folder/b.json", "folder/c.out", "folder/d.json", "nothing.json"]) and
		.duplicates == [{input: "folder/b.json", message: "node00000"}]'
	bad 1 io report nothing.json
	bad 1 io report folder/c.out
	bad 2 usage report
	bad 2 spec_value report folder/a.json --baseline folder/a.json
}

@test "a number that nothing can have, or counts that add up to none, is a broken answer" {
	nodes 6
	change '.[0].devices[0].checks[1].elapsed_us = 1e308 | .[1].devices[0].checks[1].elapsed_us = -1e308
		| .[2].devices[0].checks[2].thresholds = [{step: 1, what: "mib_per_s", bound: "min", limit: 1, measured: -1, met: true}]
		| .[3].counts = {pass: 9223372036854775807, fail: 9223372036854775807, skip: 2}'
	good report nodes.jsonl
	holds '.result | .node_names == ["node00004", "node00005"] and (.broken | length == 4)
		and ([.broken[].message | test("nothing can have")] == [true, true, true, false])'
}

@test "jsonl of validate, on standard input" {
	"$IBMR" validate --device soft0 --format jsonl >lines 2>/dev/null
	good report - <lines
	holds '.result | .nodes == 1 and (.checks | length > 10 and all(.counts.pass + .counts.skip == 1))'
}

@test "html: one page that needs nothing else, with strips and the outlier's name" {
	nodes 40
	change '.[13].devices[0].checks[1].elapsed_us *= 3 | .[5].identity.host = "<b>&" | .[5].devices[0].about.fw = "<i>"'
	ibmr report --format html nodes.jsonl
	status_is 0
	printf '%s\n' "$output" >page.html
	# a strip for each check that passed somewhere, and for each that a threshold measured
	good report nodes.jsonl
	/usr/bin/python3 - "$(jq '.result | [.checks[] | select(.times)] + .measured | length' <<<"$output")" <<-'END'
		import sys
		from html.parser import HTMLParser
		seen = []
		class Page(HTMLParser):
		    def handle_starttag(self, tag, attrs):
		        seen.append(tag)
		        assert not {"src", "href"} & {name for name, _ in attrs}
		    def handle_data(self, data):
		        seen.append(data.strip())
		Page().feed(open("page.html").read())
		assert seen.count("svg") == int(sys.argv[1]) > 30 and seen.count("circle") == 1, seen.count("svg")
		assert any(text.startswith("node00013 ") for text in seen)
		assert "b" not in seen and "i" not in seen and "<i>" in seen and "script" not in seen
	END
	grep -qv 'http' page.html
}

@test "text names failing and odd nodes, folded as clush and srun take them" {
	local names='"n1","n2","n3","n10","n09","n011","login","r1-x7.site","r1-x8.site","r2-x8.site","r1-x9.elsewhere","10.0.0.1","10.0.0.2",
		"n99999999999","n8"'
	nodes 18
	change "[$names] as \$names | to_entries | map(.key as \$k | .value | if \$k < 15 then
			.identity.host = \$names[\$k] | .devices[0].checks[3] |= (.state = \"fail\" | .error = {code: \"mismatch\", message: \"m\"})
		else .devices[0].about.fw = \"9\(\$k)\" end)"
	ibmr report --format text nodes.jsonl
	status_is 0
	line=$(grep -A1 '^failing: ' <<<"$output" | tail -n 1)
	[ "$line" = "    on 15: 10.0.0.1,10.0.0.2,login,n[1-3,8],n[09-10],n011,n99999999999,r1-x9.elsewhere,r1-x[7-8].site,r2-x8.site" ] || {
		echo "$line"
		return 1
	}
	[[ $output == *"odd: soft0 fw is 0.1.0000 on 15"*"915 on 1: node00015"*"917 on 1: node00017"* ]]
}
