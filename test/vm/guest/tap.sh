# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# TAP from shell; sourced by the guest's suite.

TESTS=0
FAILED=0
OUT=/tmp/out.json
ERR=/tmp/err.txt

# result STATUS DESCRIPTION: one test's line; STATUS 0 is a pass.
result()
{
	TESTS=$((TESTS + 1))
	if [ "$1" = 0 ]; then
		echo "ok $TESTS - $2"
	else
		FAILED=$((FAILED + 1))
		echo "not ok $TESTS - $2"
		return 1
	fi
}

# check DESCRIPTION STATUS FILTER COMMAND...: the command ends with STATUS and prints one JSON document
# of which the jq FILTER holds.
check()
{
	local what="$1" want="$2" filter="$3" got why

	shift 3
	"$@" >$OUT 2>$ERR
	got=$?
	if [ $got != "$want" ]; then
		why="exit status $got, not $want"
	elif ! jq -es "length == 1 and (.[0] | $filter)" <$OUT >/tmp/jq.txt 2>&1; then
		why="does not hold: $filter"
	else
		result 0 "$what"
		return
	fi
	result 1 "$what"
	printf '# command: %s\n# %s\n' "$*" "$(echo "$why" | tr -s ' \t\n' ' ')"
	{ jq -c 'if .steps then { ok, error, steps: [.steps[] | select(.expected == false or .error)] }
		else . end' <$OUT 2>/dev/null || cat $OUT; } | head -c 4000 | sed 's/^/# out: /'
	head -n 20 $ERR | sed 's/^/# err: /'
	[ ! -s /tmp/jq.txt ] || head -n 5 /tmp/jq.txt | sed 's/^/# jq: /'
	return 1
}

# check_steps DESCRIPTION PLAN COMMAND...: like check, one test for each step of PLAN with an expect: it
# came as expected. The errors go out as diagnostics, for the table of what each device answers.
check_steps()
{
	local what="$1" plan="$2"

	shift 2
	"$@" >$OUT 2>$ERR
	jq -r --slurpfile plan "$plan" '
		.steps | to_entries[] | . as $s | $plan[0].steps[$s.key] as $p |
		[ (if (if $s.value.expected == null then $s.value.ok else $s.value.expected end) then 0 else 1 end),
		  "step \($s.key): \($p.do) \($p.mr // "") \(if $p.expect.error then "answers " + $p.expect.error else "" end)",
		  ($s.value.error // {} | "\(.code) \(.cause) \(.errno) \(.sys_errno) \(.origin) \(.status): \(.message)")
		] | @tsv' <$OUT >/tmp/steps.txt 2>/tmp/jq.txt || true
	while IFS="$(printf '\t')" read -r status step error; do
		result "$status" "$what: $step"
		[ "${error#null}" != "$error" ] || echo "# $error"
	done </tmp/steps.txt
	[ "$(wc -l </tmp/steps.txt)" = "$(jq '.steps | length' "$plan")" ]
	result $? "$what: every step is there" || sed 's/^/# err: /' $ERR /tmp/jq.txt
}

# fold WHAT COMMAND...: a program that prints TAP: each of its tests is one of ours.
fold()
{
	local what="$1" before=$TESTS

	shift
	"$@" >$OUT 2>$ERR
	while read -r line; do
		case $line in
		"ok "*) result 0 "$what: ${line#* - }" ;;
		"not ok "*) result 1 "$what: ${line#* - }" || true ;;
		1..*) [ "$((before + ${line#1..}))" = "$TESTS" ] ;;
		*) echo "$line" ;;
		esac
	done <$OUT
	grep -q '^1\.\.' $OUT
	result $? "$what: ran to its end" || sed 's/^/# err: /' $ERR
}

finish()
{
	echo "1..$TESTS"
	[ $FAILED = 0 ]
	exit
}
