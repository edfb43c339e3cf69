# SPDX-License-Identifier: BSD-2-Clause
"""validate --suite quick on soft0, and report over the answers of 1,000 and 10,000 nodes."""

import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))


def run(argv, out):
    """(seconds, seconds of a processor, largest resident set in MiB)"""
    start = time.monotonic()
    with open(out, "wb") as file:
        process = subprocess.Popen(argv, stdout=file, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("%s: exit status %d" % (argv, process.returncode))
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def first_check(ibmr):
    """Median seconds from the start of validate to what it says before its first step."""
    times = []
    for _ in range(21):
        start = time.monotonic()
        with subprocess.Popen([ibmr, "validate", "--device", "soft0"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            process.stderr.readline()
            times.append(time.monotonic() - start)
            process.stderr.read()
    return statistics.median(times)


def bench(ibmr, goal, scratch):
    first = first_check(ibmr)
    print("validate: %.1f ms from its start to the first check" % (first * 1e3))
    goal(first < 0.01, "start to first check in less than 10 ms")
    answer = os.path.join(scratch, "answer.json")
    seconds, _, _ = run([ibmr, "validate", "--device", "soft0"], answer)
    print("validate --suite quick: %.3f s" % seconds)
    goal(seconds < 2, "the quick suite in less than 2 s")
    figures = []
    for number in (1000, 10000):
        nodes = os.path.join(scratch, "nodes.jsonl")
        run([sys.executable, os.path.join(HERE, "nodes.py"), answer, str(number)], nodes)
        # the best of some: others work on this machine too
        figures.append(min(run([ibmr, "report", nodes], os.path.join(scratch, "report.json"))
                           for _ in range(3)))
        print("report of %d nodes of 30 checks: %.2f s, %.2f s of a processor, %.0f MiB" %
              (number, *figures[-1]))
    goal(figures[1][0] < 5 and figures[1][2] < 200,
         "10,000 nodes of 30 checks in less than 5 s and 200 MiB")
    goal(figures[1][1] < 15 * figures[0][1], "time that grows with the number of nodes")
