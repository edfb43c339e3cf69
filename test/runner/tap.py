# SPDX-License-Identifier: BSD-2-Clause
"""Read TAP and count it. What does not add up is a failure."""

import fnmatch
import re

PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*skip\S*\s*(.*))?\s*$", re.I)
LINE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*)$")
SKIP = re.compile(r"(?:^|\s)#\s*skip\S*\s*(.*)$", re.I)


class Tally:
    """What one suite did. failures holds a line for each failed test, skips the reasons."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = []

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def fail(self, text):
        self.failures.append(text)


def parse(text, status):
    """TAP output and exit status (None: killed at the time limit) of a suite -> Tally."""
    tally = Tally()
    planned = None
    seen = 0
    bailed = False
    for line in text.splitlines():
        plan = PLAN.match(line)
        if plan:
            # several plans: cmocka prints one a group
            planned = (planned or 0) + int(plan.group(1))
            if int(plan.group(1)) == 0:
                tally.skips.append(plan.group(2) or "no reason given")
            continue
        if line.startswith("Bail out!"):
            bailed = True
            tally.fail(line)
            continue
        test = LINE.match(line)
        if not test:
            continue
        seen += 1
        skip = SKIP.search(test.group(3))
        if skip:
            # cmocka 1.1.5 says "not ok N # SKIP name" of a skipped test
            tally.skips.append(skip.group(1).strip() or test.group(3).strip() or "no reason given")
        elif test.group(1):
            tally.fail(test.group(3))
        else:
            tally.passed += 1
    if status is None:
        tally.fail("ended by the time limit after %d results" % seen)
    elif bailed:
        pass
    elif planned is None:
        tally.fail("no plan printed (exit status %s)" % status)
    elif planned != seen:
        tally.fail("planned %d tests, reported %d (exit status %s)" % (planned, seen, status))
    elif status != 0 and not tally.failures:
        tally.fail("exit status %s although no test failed" % status)
    return tally


class AllowedSkips:
    """The reasons of test/allowed-skips."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
        self.patterns = [line for line in lines if line and not line.startswith("#")]

    def allow(self, reason):
        return any(fnmatch.fnmatchcase(reason, pattern) for pattern in self.patterns)
