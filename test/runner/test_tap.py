# SPDX-License-Identifier: BSD-2-Clause
"""The TAP reader must count failures that a suite does not report itself."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from runner import jobs, tap  # noqa: E402


def counts(text, status=0):
    tally = tap.parse(text, status)
    return tally.passed, len(tally.failures), len(tally.skips)


class Parse(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(counts("1..2\nok 1 - a\nok 2 b\n"), (2, 0, 0))

    def test_failure(self):
        self.assertEqual(counts("1..2\nok 1 - a\nnot ok 2 - b\n", 1), (1, 1, 0))

    def test_skips(self):
        self.assertEqual(counts("1..3\nok 1 a # skip no hardware\nnot ok 2 # SKIP b\nok 3\n"),
                         (1, 0, 2))
        self.assertEqual(tap.parse("1..1\nok 1 a # skip why not\n", 0).skips, ["why not"])
        self.assertEqual(counts("1..0 # SKIP nothing to do\n"), (0, 0, 1))

    def test_several_plans(self):
        self.assertEqual(counts("1..1\nok 1\n1..2\nok 1\nok 2\n"), (3, 0, 0))

    def test_died(self):
        self.assertEqual(counts("1..3\nok 1\n", -11), (1, 1, 0))
        self.assertEqual(counts("ok 1\n", 0), (1, 1, 0))
        self.assertEqual(counts("", 0), (0, 1, 0))
        self.assertEqual(counts("1..1\nok 1\n", 1), (1, 1, 0))
        self.assertEqual(counts("1..1\nok 1\n", None), (1, 1, 0))
        self.assertEqual(counts("1..5\nok 1\nBail out! broken\n", 1), (1, 1, 0))

    def test_too_many(self):
        self.assertEqual(counts("1..1\nok 1\nok 2\n"), (2, 1, 0))

    def test_indented_lines_are_not_tests(self):
        self.assertEqual(counts("1..1\n    not ok 1 inner\nok 1\n# not ok\nokay\n"), (1, 0, 0))


class Run(unittest.TestCase):
    def run_shell(self, script, **more):
        job = jobs.Job("job", ["sh", "-c", script], **more)
        jobs.run_job(job)
        return job

    def test_sanitizer_report_of_a_child(self):
        job = self.run_shell('echo 1..1; echo "ERROR: leak" >"${ASAN_OPTIONS##*log_path=}.7"; echo ok')
        self.assertEqual(job.tally.passed, 1)
        self.assertEqual(job.tally.failures, ["sanitizer: ERROR: leak"])

    def test_a_thread_on_its_way_out_is_no_find(self):
        note = "==7==Unable to get registers from thread 8."
        log = '>"${ASAN_OPTIONS##*log_path=}.7"'
        job = self.run_shell("echo 1..1; echo '%s' %s; echo ok" % (note, log))
        self.assertEqual(job.tally.failures, [])
        job = self.run_shell("echo 1..1; printf '%s\\nERROR: leak\\n' %s; echo ok" % (note, log))
        self.assertEqual(job.tally.failures, ["sanitizer: ERROR: leak"])

    def test_time_limit(self):
        job = self.run_shell("echo 1..1; echo ok; sleep 60", limit=0.2)
        self.assertEqual(len(job.tally.failures), 1)
        self.assertLess(job.seconds, 30)

    def test_missing_program(self):
        job = jobs.Job("job", ["/nonexistent/program"])
        jobs.run_job(job)
        self.assertFalse(job.ok)

    def test_needs(self):
        bad = jobs.Job("bad", ["false"], kind="check")
        after = jobs.Job("after", ["true"], kind="check", needs=("bad",))
        done = jobs.run_all([bad, after], 2, shown=lambda job: None)
        self.assertEqual([job.ok for job in done], [False, False])

    def test_long_ones_first(self):
        def job(name, **more):
            return jobs.Job(name, ["true"], kind="check", **more)

        more = {"first": [job("third"), job("long", long=True)]}
        ended = []
        jobs.run_all([job("first"), job("second")], 1, lambda job: more.get(job.name, []),
                     lambda job: ended.append(job.name))
        self.assertEqual(ended, ["first", "long", "second", "third"])


class Allowed(unittest.TestCase):
    def test_list(self):
        path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "allowed-skips")
        self.assertFalse(tap.AllowedSkips(path).allow("some other reason"))


if __name__ == "__main__":
    unittest.main()
