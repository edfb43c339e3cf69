#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Run rdma-core's own python tests on soft0, one by one, each with a time limit.
#
#   test/pyverbs/run.sh [-l LIMIT] [-o LOGDIR] [-s SOFTDEV] CHECKOUT [MODULE|TEST]...
#
# CHECKOUT is a checkout of rdma-core's tag v44.0 (only its tests/ is used), SOFTDEV the library to
# preload (default: that of the build folder in $BUILD, or ./build). Without modules or tests the list below
# is run. Prints how many passed, failed, were skipped and hung, by file, and in all; each test's
# verdict and output go to LOGDIR. Exit status: 0 when none hung and as many passed as $MIN_PASS asks.
set -u

modules="test_addr test_atomic test_cq test_cq_events test_cqex test_device test_fork test_mr test_odp
test_parent_domain test_pd test_qp test_qpex test_relaxed_ordering test_shared_pd test_mlx5_cq
test_mlx5_devx test_mlx5_huge_page test_mlx5_mkey test_mlx5_query_port test_mlx5_raw_wqe
test_mlx5_uar"
limit=15
logs=
softdev=${BUILD:-build}/src/softdev/libsoftdev.so
python=${PYTHON:-/usr/bin/python3}

usage() {
	sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

while getopts l:o:s: opt; do
	case $opt in
	l) limit=$OPTARG ;;
	o) logs=$OPTARG ;;
	s) softdev=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
checkout=$1
shift
[ -d "$checkout/tests" ] || { echo "$checkout: no tests/ there" >&2; exit 2; }
softdev=$(realpath -e "$softdev") || exit 2
if [ -z "$logs" ]; then
	logs=$(mktemp -d)
	trap 'rm -rf "$logs"' EXIT
fi
mkdir -p "$logs"
cd "$checkout" || exit 2

# Every test's name, once a line, of the modules or single tests that were asked for.
list_tests() {
	local all want
	all=$("$python" tests/run_tests.py --list-tests 2>/dev/null | grep '^tests\.')
	for want; do
		want=${want#tests.}
		grep -E "^tests\.$want(\.|\$)" <<<"$all" || { echo "$want: no such test" >&2; return 1; }
	done
}

# A verdict from unittest's own last words.
verdict() {
	local status=$1 log=$2
	case $status in
	124 | 137) echo hang ;;
	0) if grep -q '^OK (skipped=1)' "$log"; then echo skip; else echo pass; fi ;;
	*) echo fail ;;
	esac
}

# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $modules
tests=$(list_tests "$@") || exit 2
: >"$logs/verdicts"
for test in $tests; do
	log=$logs/$test.log
	# softdev leaves LD_PRELOAD when it is loaded: only python itself may see it
	timeout -k 2 "$limit" env LD_PRELOAD="$softdev" "$python" tests/run_tests.py "$test" \
		>"$log" 2>&1 </dev/null
	echo "$(verdict $? "$log") $test" >>"$logs/verdicts"
done

awk '{ split($2, at, "."); f = at[2]; n[f " " $1]++; all[$1]++; files[f] = 1 }
END {
	printf "%-26s %5s %5s %5s %5s %5s\n", "file", "tests", "pass", "fail", "skip", "hang"
	num = 0
	for (f in files) order[++num] = f
	for (i = 1; i < num; i++)
		for (j = i + 1; j <= num; j++)
			if (order[j] < order[i]) { t = order[i]; order[i] = order[j]; order[j] = t }
	for (i = 1; i <= num; i++) {
		f = order[i]
		p = n[f " pass"] + 0; x = n[f " fail"] + 0; s = n[f " skip"] + 0; h = n[f " hang"] + 0
		printf "%-26s %5d %5d %5d %5d %5d\n", f, p + x + s + h, p, x, s, h
	}
	p = all["pass"] + 0; x = all["fail"] + 0; s = all["skip"] + 0; h = all["hang"] + 0
	printf "%-26s %5d %5d %5d %5d %5d\n", "total", p + x + s + h, p, x, s, h
}' "$logs/verdicts"

passed=$(grep -c '^pass' "$logs/verdicts")
! grep -q '^hang' "$logs/verdicts" && [ "$passed" -ge "${MIN_PASS:-0}" ]
