#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # jq in single quotes; helpers.bash has the common variables
# Suites of checks on soft0, healthy and broken on purpose; every form with a reader that is not ours.
load helpers

# suite CHECK... -> s.json
suite() {
	local IFS=,
	printf '{"checks":[%s]}\n' "$*" >s.json
}

one='{"name":"one","steps":[{"do":"reg","mr":"a","length":4096}]}'
two='{"name":"two","steps":[{"do":"dereg","mr":"a"}]}'
lists='{"name":"lists","needs":["umr"],"steps":['$reg_a,$create_x,$fill_x',{"do":"verify","mr":"x"}]}'

states_are() {
	[ "$(jq -r '[.devices[].checks[].state] | join(" ")' <<<"$output")" = "$1" ] || { show; return 1; }
}

fits() {
	/usr/bin/python3 - "$top/test/schema" "$1" "$2" <<-'END'
		import json, sys
		sys.dont_write_bytecode = True
		sys.path.insert(0, sys.argv[1])
		import schemas
		document = json.load(open(sys.argv[3]))
		found = (schemas.result_problem(document) if sys.argv[2] == "result.schema.json"
		         else schemas.first_problem(schemas.validator(sys.argv[2]), document))
		sys.exit(found)
	END
}

@test "the quick suite passes on soft0 within two seconds, and its answer fits the schema" {
	good validate --device soft0
	holds '.elapsed_us < 2000000 and .suite == "quick" and .counts.fail == 0 and .counts.pass >= 15 and
		([.devices[0].checks[] | select(.state == "skip") | .name] - ["huge-pages"] == []) and
		.devices[0].software and (.devices[0].proved | .umr and .odp and .prefetch and .atomics) and .time == null'
	printf '%s' "$output" >answer.json
	fits result.schema.json answer.json
	# the step was said before it ran
	grep -q '^ibmr validate: soft0: registration: step 0, reg ' <<<"$stderr"
}

@test "the full suite passes on soft0" {
	good validate --device soft0 --suite full
	holds '.counts.fail == 0 and .counts.timeout == 0 and .counts.error == 0 and
		([.devices[0].checks[] | select(.name == "leaks" or .name == "key-leaks") | .rounds] == [1000, 1000])'
}

@test "the suites and the examples fit the schema, and pass" {
	for file in "$top"/data/suites/*.json "$top"/man/examples/suites/*.json; do
		fits suite.schema.json "$file"
	done
	# 8 GiB need no memory when they are prefetched for reading: all is the zero page
	cp -r "$top/man/examples/suites" site
	sed -i 's/"advice": "write"/"advice": "read"/' site/prefetch-in-time.json
	[ -z "${IBMR_SANITIZER:-}" ] || sed -i 's/5000000/60000000/' site/prefetch-in-time.json
	good validate --device soft0 --suite ./site
	states_are "pass pass pass"
	holds '.devices[0].checks[] | select(.name == "prefetch-in-time").evidence[0].counts.cpu_resident_after == 2097152'
	# and as it stands, with less
	sed 's/8GiB/64MiB/; s/2097152/16384/' "$top/man/examples/suites/prefetch-in-time.json" >s.json
	good validate --device soft0 --suite ./s.json
	holds '.devices[0].checks[0].thresholds | length == 2 and all(.met)'
}

@test "each fault of a broken device fails a check that names it" {
	local fault check
	while read -r fault check; do
		IBMR_SOFT0="${IBMR_SOFT0:+$IBMR_SOFT0,}break=$fault" ibmr validate --device soft0 --timeout 300ms
		[ "$status" -eq 1 ] || [ "$fault" = lost_completion ] || { show; return 1; }
		jq -e --arg check "$check" '.devices[0].checks[] | select(.name == $check) | .state != "pass"' <<<"$output" >/dev/null || {
			echo "$fault is not seen by $check"
			show
			return 1
		}
	done <<-END
		wrong_byte list
		off_by_one list
		stale_layout refill
		no_rights rights
		lost_completion data
	END
}

@test "an absent capability skips with the reason, and --require makes it a failure" {
	soft0 umr=0
	suite "$one" "$lists"
	good validate --device soft0 --suite ./s.json
	states_are "pass skip"
	holds '.devices[0] | .reported.umr == false and .proved.umr == null and (.checks[1].error | .code == "unsupported" and (.message | test("umr")))'
	bad 1 unsupported validate --device soft0 --suite ./s.json --require umr
	states_are "pass fail"
	holds '.devices[0].missing == ["umr"] and .error.where == "/devices/0/checks/1"'
	suite "$lists"
	bad 4 unsupported validate --device soft0 --suite ./s.json
	# required, there, but no check proves it
	suite "$one"
	bad 1 unsupported validate --device soft0 --suite ./s.json --require odp
	holds '.devices[0].missing == ["odp"]'
}

@test "what a check says of an unexpected step, a threshold and a leak" {
	suite "$one" "$two" '{"name":"slow","steps":['"$reg_a"'],"thresholds":[{"step":0,"max_us":60000000},{"count":"length","step":0,"max":4095}]}' \
		'{"name":"left","rounds":3,"steps":[{"do":"reg","mr":"a","length":4096},{"do":"dereg","mr":"a"}],"thresholds":[{"count":"mrs","max":0}]}' \
		'{"name":"never","steps":[{"do":"read","mr":"a","length":1}],"thresholds":[{"step":0,"min_mib_per_s":1}]}'
	bad 1 no_such_mr validate --device soft0 --suite ./s.json
	states_are "pass fail fail pass fail"
	holds '.error.where == "/devices/0/checks/1" and (.devices[0].checks | .[1].error.where == "/steps/0/mr" and
		(.[2].error | .code == "mismatch" and .cause == "threshold") and (.[2].thresholds | map(.met) == [true, false]) and
		.[3].rounds == 3 and .[4].thresholds == [])'
}

@test "what --skip leaves out has no error, and a bound of 0 is not met by what was not measured" {
	suite "$one" "$lists" '{"name":"refused","steps":[{"do":"reg","mr":"a","length":4096},
		{"do":"reg","mr":"a","length":4096,"expect":{"error":"exists"}}],"thresholds":[{"step":1,"count":"length","min":0}]}'
	bad 1 mismatch validate --device soft0 --suite ./s.json --skip one,lists
	states_are "skip skip fail"
	holds '.devices[0].checks | .[0].error == null and .[1].error == null and .[2].thresholds[0] == {step: 1, what: "length",
		bound: "min", limit: 0, measured: null, met: false}'
	printf '%s' "$output" >answer.json
	fits result.schema.json answer.json
	ibmr validate --device soft0 --suite ./s.json --skip one,lists --format tap
	[[ $output == *"ok 1 - soft0 one # SKIP left out by --skip"* ]]
}

@test "one device that does not open hides no other" {
	suite "$one"
	bad 1 no_device validate --device none0 --device soft0 --suite ./s.json
	states_are "error pass"
	holds '[.devices[].name] == ["none0", "soft0"] and .devices[0].about.usable == false'
}

@test "a hung device: the deadline holds, and finished checks are told" {
	suite "$one" '{"name":"long","rounds":100000000,"steps":['"$reg_a"',{"do":"dereg","mr":"a"}]}' "$lists"
	start=$EPOCHREALTIME
	"$IBMR" validate --device soft0 --suite ./s.json --deadline 2s >out.json 2>err &
	pid=$!
	until grep -q 'long: round 100 ' err; do sleep 0.02; done
	# from here on its process does nothing, as one that is stuck in the kernel
	worker=$(pgrep -P "$pid")
	kill -STOP "$worker"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 6 ]
	awk "BEGIN { exit !($EPOCHREALTIME - $start < 3.5) }"
	output=$(cat out.json)
	states_are "pass timeout timeout"
	holds '.error.code == "timeout" and .error.cause == "deadline"'
	# nothing is left
	run ! runs "$worker"
}

@test "without a hang the deadline ends in order, and a step that takes too long is a timeout" {
	suite "$one" '{"name":"long","rounds":100000000,"steps":['"$reg_a"',{"do":"dereg","mr":"a"}]}'
	bad 6 timeout validate --device soft0 --suite ./s.json --deadline 1500ms
	states_are "pass timeout"
	soft0 break=lost_completion
	suite '{"name":"data","steps":['"$reg_a"',{"do":"write","mr":"a","hex":"00"},{"do":"write","mr":"a","hex":"01"},
		{"do":"write","mr":"a","hex":"02"},{"do":"write","mr":"a","hex":"03"}]}' "$one"
	bad 1 timeout validate --device soft0 --suite ./s.json --timeout 200ms
	states_are "timeout pass"
}

@test "the deadline in a step that expects something is the deadline, and what comes after it was not reached" {
	soft0 hold=1
	suite "$one" '{"name":"data","steps":['"$reg_a"',{"do":"read","mr":"a","length":1,"expect":{"hex":"00"}}]}' \
		'{"name":"refused","steps":['"$reg_a"',{"do":"read","mr":"a","length":1,"expect":{"error":"timeout"}}]}'
	bad 6 timeout validate --device soft0 --suite ./s.json --deadline 1500ms
	states_are "pass timeout timeout"
	holds '[.devices[0].checks[1, 2].error.cause] == ["deadline", "deadline"]'
}

@test "SIGTERM: the finished checks are told, and nothing is left" {
	suite "$one" '{"name":"long","rounds":100000000,"steps":['"$reg_a"',{"do":"dereg","mr":"a"}]}'
	"$IBMR" validate --device soft0 --suite ./s.json >out.json 2>err &
	pid=$!
	until grep -q 'long: round 100 ' err; do sleep 0.02; done
	worker=$(pgrep -P "$pid")
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 143 ]
	output=$(cat out.json)
	states_are "pass error"
	holds '.error.code == "interrupted"'
	run ! runs "$worker"
}

@test "a process that dies: its checks are errors" {
	suite "$one" '{"name":"long","rounds":100000000,"steps":['"$reg_a"',{"do":"dereg","mr":"a"}]}' "$lists"
	"$IBMR" validate --device soft0 --suite ./s.json >out.json 2>err &
	pid=$!
	until grep -q 'long: round 100 ' err; do sleep 0.02; done
	kill -KILL "$(pgrep -P "$pid")"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 1 ]
	output=$(cat out.json)
	states_are "pass error error"
	holds '.devices[0].checks[1].error | .cause == "worker" and (.message | test("signal 9"))'
}

@test "a wrong suite: its place, before a device is touched" {
	soft0 "counters=$PWD/counters"
	while IFS='|' read -r code where text; do
		printf '%s' "$text" >s.json
		bad 2 "$code" validate --device soft0 --suite ./s.json
		holds ".error.where == \"$where\""
	done <<-END
		spec_missing||{}
		spec_value|/checks|{"checks":[]}
		spec_unknown_member|/check|{"check":[],"checks":[$one]}
		spec_missing|/checks/0|{"checks":[{"name":"x"}]}
		spec_value|/checks/0/steps|{"checks":[{"name":"x","steps":[]}]}
		spec_value|/checks/1/name|{"checks":[$one,$one]}
		spec_value|/checks/0/name|{"checks":[{"name":"A b","steps":[]}]}
		spec_value|/checks/0/needs/0|{"checks":[{"name":"x","needs":["rdma"],"steps":[{"do":"dereg","mr":"a"}]}]}
		spec_value|/checks/0/steps/0/do|{"checks":[{"name":"x","steps":[{"do":"register"}]}]}
		spec_unknown_member|/checks/0/thresholds/0/max_ms|{"checks":[{"name":"x","steps":[{"do":"dereg","mr":"a"}],"thresholds":[{"max_ms":1}]}]}
		spec_missing|/checks/0/thresholds/0|{"checks":[{"name":"x","steps":[{"do":"dereg","mr":"a"}],"thresholds":[{}]}]}
		spec_value|/checks/0/thresholds/0/step|{"checks":[{"name":"x","steps":[{"do":"dereg","mr":"a"}],"thresholds":[{"step":1,"max_us":1}]}]}
		spec_value|/checks/0/thresholds/0/count|{"checks":[{"name":"x","steps":[{"do":"dereg","mr":"a"}],"thresholds":[{"step":0,"count":"colour","max":1}]}]}
		spec_value|/checks/0/thresholds/0/min_mib_per_s|{"checks":[{"name":"x","steps":[{"do":"dereg","mr":"a"}],"thresholds":[{"step":0,"min_mib_per_s":1}]}]}
		spec_value|/deadline|{"deadline":"soon","checks":[$one]}
	END
	[ ! -e counters ]
	bad 2 usage validate --device soft0 --suite nosuch
	bad 2 usage validate --device soft0 --skip nosuch
	bad 2 usage validate --device soft0 --require rdma
	bad 2 usage validate --device soft0 --device soft0
	bad 2 usage validate --all --device soft0
	bad 2 usage validate --device soft0 --tag novalue
	bad 2 usage run --format tap x.json
	[ ! -e counters ]
}

@test "TAP is read by prove" {
	suite "$one" "$lists" "$two"
	"$IBMR" validate --device soft0 --suite ./s.json --format tap --skip two >good.tap 2>/dev/null
	prove -e cat good.tap
	ibmr validate --device soft0 --suite ./s.json --format tap
	status_is 1
	printf '%s\n' "$output" >bad.tap
	run prove -e cat bad.tap
	[ "$status" -ne 0 ]
	[[ $output == *"Failed test:  3"* ]]
	ibmr validate --device soft0 --suite ./nosuch.json --format tap
	[[ $output == "Bail out!"* ]]
}

@test "JUnit fits a schema, and is read by xml parsers" {
	junit() {
		ibmr validate --device soft0 --suite ./s.json --format junit "$@"
		printf '%s\n' "$output" >j.xml
		xmllint --noout --schema "$top/test/schema/junit.xsd" j.xml
	}
	# every state, more than one device, what is required, and a time
	suite "$one" "$lists"
	IBMR_SOFT0="${IBMR_SOFT0:+$IBMR_SOFT0,}umr=0" junit --device none0 --require umr,odp --timestamps
	suite "$one" '{"name":"long","rounds":100000000,"steps":['"$reg_a"',{"do":"dereg","mr":"a"}]}' "$two"
	junit --deadline 700ms
	status_is 6
	[ "$(grep -c '<error type="timeout"' j.xml)" -eq 2 ]
	# the schema is one that can be failed
	sed 's/ time="[^"]*"//' j.xml >wrong.xml
	run ! xmllint --noout --schema "$top/test/schema/junit.xsd" wrong.xml
	suite "$one" "$lists" "$two"
	junit --skip lists --tag 'site=a<b"&'
	status_is 1
	/usr/bin/python3 - <<-'END'
		import xml.etree.ElementTree as tree
		(suite,) = tree.parse("j.xml").getroot()
		assert suite.attrib["tests"] == "3" and suite.attrib["failures"] == "1" and suite.attrib["skipped"] == "1", suite.attrib
		cases = suite.findall("testcase")
		assert [c.get("name") for c in cases] == ["one", "lists", "two"]
		assert cases[1].find("skipped") is not None and "no MR" in cases[2].find("failure").get("message")
		assert {p.get("name"): p.get("value") for p in suite.iter("property")}["site"] == 'a<b"&'
		assert "timestamp" not in suite.attrib
	END
}

@test "Prometheus text is read by its client library, and has each metric described once" {
	suite "$one" "$two"
	ibmr validate --device soft0 --suite ./s.json --format prometheus
	status_is 1
	printf '%s\n' "$output" >p.prom
	/usr/bin/python3 - <<-'END'
		from prometheus_client.parser import text_string_to_metric_families
		families = list(text_string_to_metric_families(open("p.prom").read()))
		assert len({family.name for family in families}) == len(families) >= 4
		assert all(family.type == "gauge" and family.documentation for family in families)
		samples = [sample for family in families for sample in family.samples]
		values = {(sample.name, *sorted(sample.labels.values())): sample.value for sample in samples}
		assert len(values) == len(samples)
		assert values["ibmr_check_state", "fail", "soft0", "two"] == 1 and values["ibmr_check_state", "fail", "one", "soft0"] == 0
		assert values["ibmr_check_state", "one", "pass", "soft0"] == 1
		assert values["ibmr_check_seconds", "one", "soft0"] > 0
	END
	if command -v promtool; then promtool check metrics <p.prom; fi
}

@test "Nagios: its line and its four statuses" {
	nagios() {
		ibmr validate --device soft0 --suite ./s.json --format nagios
		[[ $(wc -l <<<"$output") -eq 1 && $output =~ ^IBMR\ (OK|WARNING|CRITICAL|UNKNOWN):\ [^|]*(\|(\ [a-z]+=[0-9]+[;0-9]*)+)?$ ]]
		[ "$status ${BASH_REMATCH[1]}" = "$1" ] || { show; return 1; }
	}
	suite "$one"
	nagios "0 OK"
	suite "$one" '{"name":"slow","steps":['"$reg_a"'],"thresholds":[{"step":0,"count":"length","max":1}]}'
	nagios "1 WARNING"
	suite "$one" "$two"
	nagios "2 CRITICAL"
	rm s.json
	nagios "3 UNKNOWN"
}

@test "jsonl: a line for each check as it ends, then the summary" {
	suite "$one" "$two"
	ibmr validate --device soft0 --suite ./s.json --format jsonl
	status_is 1
	jq -es 'length == 3 and .[0].name == "one" and .[0].device == "soft0" and .[1].state == "fail" and
		(.[2] | .command == "validate" and .counts.pass == 1 and (has("devices") | not))' <<<"$output"
}

@test "equal nodes print equal bytes" {
	for form in text tap nagios; do
		"$IBMR" validate --device soft0 --format "$form" >"$form.1" 2>/dev/null
		SLURMD_NODENAME=other SLURM_JOB_ID=7 "$IBMR" validate --device soft0 --format "$form" >"$form.2" 2>/dev/null
		cmp "$form.1" "$form.2"
	done
}

@test "--output is written whole or not at all" {
	suite "$one" "$two"
	printf old >out.json
	SLURMD_NODENAME=n7 SLURM_JOB_ID=12 SLURM_PROCID=3 ibmr validate --device soft0 --suite ./s.json --output out.json --tag rack=b2 --timestamps
	status_is 1
	[ -z "$output" ]
	output=$(cat out.json)
	holds '.identity == {host: "n7", job: "12", task: "3"} and .tags == {rack: "b2"} and (.time | test("^20[0-9-]*T[0-9:]*Z$"))'
	bad 1 io validate --device soft0 --suite ./s.json --output nofolder/out.json
	bad 1 io validate --device soft0 --suite ./s.json --output /dev/null
	# ended by force, the old file stays
	printf old >out.json
	bad 2 usage validate --device soft0 --suite nosuch --output out.json
	[ "$(cat out.json)" = old ]
	[ "$(find . -name '*.out.json.*' | wc -l)" -eq 0 ]
}

@test "a folder of suites is one suite, and two checks of one name are refused" {
	mkdir site
	printf '{"checks":[%s]}' "$one" >site/b.json
	printf '{"checks":[%s]}' "$lists" >site/a.json
	good validate --device soft0 --suite ./site
	holds '[.devices[0].checks[].name] == ["lists", "one"]'
	printf '{"checks":[%s]}' "$one" >site/c.json
	bad 2 spec_value validate --device soft0 --suite ./site
	holds '.error.message | test("site/c.json")'
	good validate --device soft0 --suite - <site/a.json
}
