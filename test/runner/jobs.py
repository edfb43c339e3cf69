# SPDX-License-Identifier: BSD-2-Clause
"""Run jobs side by side, each in a folder of its own, and collect their tallies."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from . import sanitizers, tap


class Job:
    """One command. kind "tap": its output is counted; "check": its exit status is one test."""

    def __init__(self, name, argv, kind="tap", env=None, limit=300, needs=(), cwd=None, alone=None,
                 after=(), long=False):
        self.name = name
        self.argv = argv
        self.kind = kind
        self.env = env or {}
        self.limit = limit
        self.needs = tuple(needs)  # jobs that must have passed
        self.after = tuple(after)  # jobs that must have ended
        self.cwd = cwd
        self.alone = alone  # jobs with the same word do not run at the same time
        self.long = long  # to be begun before those that wait, so that it is not alone at the end
        self.tally = None
        self.seconds = 0.0
        self.output = ""

    @property
    def ok(self):
        return self.tally is not None and not self.tally.failures


_processes = set()


def _kill(process):
    """The whole session: a test must leave nothing running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_all():
    for process in list(_processes):
        _kill(process)


def _environment(job, scratch):
    env = dict(os.environ)
    for name in ("IBMR_SOFT0", "IBMR_DEVICE", "IBMR_SOCKET", "LD_PRELOAD", "TMPDIR"):
        env.pop(name, None)
    logs = os.path.join(scratch, "sanitizer")
    env.update(
        LC_ALL="C.UTF-8",
        TMPDIR=os.path.join(scratch, "tmp"),
        XDG_RUNTIME_DIR=os.path.join(scratch, "run"),
        # Reports go to files of ours, so that one in a child, or under a test that expects a
        # failure, is seen all the same.
        ASAN_OPTIONS="exitcode=86:detect_stack_use_after_return=1:strict_string_checks=1"
        ":detect_leaks=1:log_path=" + logs,
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:exitcode=86:log_path=" + logs,
        LSAN_OPTIONS="exitcode=86:print_suppressions=0:log_path=" + logs,
        # softdev's thread is started again in a child of fork; the runtime would have each program
        # with a thread sleep for a second at its exit
        TSAN_OPTIONS="exitcode=86:second_deadlock_stack=1:history_size=4:die_after_fork=0"
        ":atexit_sleep_ms=20:log_path=" + logs,
        # cmocka and meson tests speak TAP
        CMOCKA_MESSAGE_OUTPUT="TAP",
    )
    env.update(job.env)
    os.mkdir(env["TMPDIR"])
    os.mkdir(env["XDG_RUNTIME_DIR"], 0o700)
    return env


def run_job(job):
    """Run it to its end or its time limit; fills tally, seconds and output."""
    scratch = tempfile.mkdtemp(prefix="ibmr-test-")
    start = time.monotonic()
    try:
        with open(os.path.join(scratch, "out"), "w+b") as out, open(
            os.path.join(scratch, "err"), "w+b"
        ) as err:
            process = subprocess.Popen(
                job.argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=_environment(job, scratch),
                cwd=job.cwd,
                start_new_session=True,
            )
            _processes.add(process)
            try:
                status = process.wait(job.limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _kill(process)
                process.wait()
                _processes.discard(process)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        if job.kind == "tap":
            tally = tap.parse(texts[0], status)
        else:
            tally = tap.Tally()
            if status == 0:
                tally.passed = 1
            else:
                tally.fail("time limit" if status is None else "exit status %s" % status)
        reports = list(sanitizers.reports(os.path.join(scratch, "sanitizer")))
        for report in reports:
            lines = [line for line in report.splitlines() if "ERROR" in line or "WARNING" in line]
            tally.fail("sanitizer: " + (lines or report.splitlines() or ["empty report"])[0])
        job.output = "".join(texts + reports)
    except OSError as error:
        tally = tap.Tally()
        tally.fail("cannot run: %s" % error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    job.tally = tally
    job.seconds = time.monotonic() - start


def report(job, stream=sys.stdout):
    tally = job.tally
    state = "ok  " if job.ok else "FAIL"
    stream.write(
        "%s %-34s %4d passed %3d failed %3d skipped %7.1f s\n"
        % (state, job.name, tally.passed, len(tally.failures), len(tally.skips), job.seconds)
    )
    if job.ok:
        for line in job.output.splitlines():
            if line.startswith("warning: "):
                stream.write("     %s\n" % line)
    else:
        for failure in tally.failures:
            stream.write("     not ok: %s\n" % failure)
        lines = job.output.splitlines()
        if len(lines) > 400:
            lines = lines[:200] + ["... %d lines ..." % (len(lines) - 400)] + lines[-200:]
        for line in lines:
            stream.write("     | %s\n" % line)
    stream.flush()


def run_all(jobs, workers, after=None, shown=report):
    """Run every job, in order as far as needs allow, and show each as it ends. after(job) may return
    more jobs; long ones go before those that wait."""
    pending = list(jobs)
    running = set()
    done = {}
    held = set()
    everything = list(jobs)
    change = threading.Condition()

    def finish(job):
        with change:
            shown(job)
            done[job.name] = job
            running.discard(job)
            held.discard(job.alone)
            if after and job.ok:
                more = after(job)
                pending[:0] = [job for job in more if job.long]
                pending.extend(job for job in more if not job.long)
                everything.extend(more)
            change.notify_all()

    def work(job):
        run_job(job)
        finish(job)

    with change:
        while pending or running:
            for job in list(pending):
                broken = [name for name in job.needs if name in done and not done[name].ok]
                if broken:
                    pending.remove(job)
                    job.tally = tap.Tally()
                    job.tally.fail("not run: %s failed" % broken[0])
                    shown(job)
                    done[job.name] = job
                    continue
                if len(running) >= workers or (job.alone and job.alone in held):
                    continue
                if all(name in done for name in job.needs + job.after):
                    pending.remove(job)
                    running.add(job)
                    if job.alone:
                        held.add(job.alone)
                    threading.Thread(target=work, args=(job,), daemon=True).start()
            if running:
                change.wait()
            elif pending and not any(
                all(name in done for name in job.needs + job.after) for job in pending
            ):
                raise RuntimeError("jobs wait for what is not there: %s"
                                   % [job.name for job in pending])
    return everything
