# SPDX-License-Identifier: BSD-2-Clause
"""The build folders and what is run in them, as jobs."""

import glob
import json
import os
import shutil
import subprocess

from . import jobs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
MODES = ("sync", "async", "strict")

# Build folders: compiler and meson options. gcc's sanitizers take half as long to build at -O1, where
# its guesses at what is uninitialized or cut off are wrong: the others have all warnings as errors.
BUILDS = {
    "gcc": ("gcc", ["-Dwerror=true"]),
    "clang": ("clang", ["-Dwerror=true"]),
    "asan": ("gcc", ["-Db_sanitize=address,undefined", "-Doptimization=1"]),
    "tsan": ("clang", ["-Dwerror=true", "-Db_sanitize=thread"]),
    "fuzz": ("clang", ["-Dwerror=true", "-Db_sanitize=address,undefined", "-Dfuzzers=true"]),
}

# A sanitizer makes a test so many times slower, at most.
SLOWER = {"asan": 4, "tsan": 6}


def folder(build):
    return os.path.join(TOP, "build-" + build)


def build_job(build):
    compiler, options = BUILDS[build]
    return jobs.Job(
        "build:" + build,
        [os.path.join(TOP, "dev"), "--build", folder(build), "-Dtests=enabled", *options],
        kind="check",
        env={"CC": compiler},
        limit=900,
        alone="build",
    )


def test_env(build, mode, extra=""):
    """The environment of a test: the build's ibmr first on PATH, soft0 in the mode."""
    cli = os.path.join(folder(build), "src", "cli")
    return {
        "IBMR": os.path.join(cli, "ibmr"),
        "IBMR_BUILD": folder(build),
        "IBMR_SOURCE": TOP,
        "IBMR_SANITIZER": build if build in ("asan", "tsan") else "",
        "IBMR_SOFT0": "mode=" + mode + ("," + extra if extra else ""),
        # the distribution's tools, whatever else the machine has
        "PATH": cli + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }


def meson_tests(build, suite):
    out = subprocess.run(
        ["meson", "introspect", "--tests", folder(build)],
        stdout=subprocess.PIPE, check=True, cwd=TOP,
    ).stdout
    for test in json.loads(out):
        if any(name.split(":")[-1] == suite for name in test["suite"]):
            yield test


def unit_jobs(build, mode, extra="", suite="unit"):
    found = []
    for test in meson_tests(build, suite):
        env = test_env(build, mode, extra)
        env.update(test["env"])
        found.append(
            jobs.Job(
                "%s:%s:%s" % (build, mode, test["name"]),
                test["cmd"],
                kind="tap" if test["protocol"] == "tap" else "check",
                env=env,
                limit=test["timeout"] * 4 * SLOWER.get(build, 1),
                cwd=test["workdir"] or TOP,
            )
        )
    return found


def memcheck_jobs(build):
    """softdev is built without the sanitizers, so that it can stand below them."""
    found = [job for job in unit_jobs(build, "sync") if "softdev" in job.name]
    for job in found:
        job.name = "memcheck:" + job.name.rpartition(":")[2]
        job.argv = ["valgrind", "--quiet", "--error-exitcode=86", "--leak-check=full",
                    "--errors-for-leak-kinds=definite", "--num-callers=20",
                    "--suppressions=" + os.path.join(TOP, "test/unit/softdev/memcheck.supp"),
                    *job.argv]
        job.limit *= 10
    return found


def newer_jobs(build):
    """The unit tests and the cases once more, over a newer rdma-core."""
    found = unit_jobs(build, "sync") + cases_jobs(build, "sync")
    for job in found:
        job.name = "newer:" + job.name.rpartition(":")[2]
        job.argv = [os.path.join(TOP, "test", "vm", "userland.sh"), "--tap", "--", *job.argv]
    return found


# Started before the others, so that none of them is alone at the end.
LONG = ("wire.bats", "errors.bats", "session.bats")


def in_every_mode(path):
    """What gives a device no work says so in a comment, and is run in the first mode only."""
    with open(path, encoding="utf-8") as file:
        return "\n# In one device mode: " not in file.read()


# By a script of its own: engines of clusters are slow to start, and a device mode means nothing to them.
CLUSTER = os.path.join(TOP, "test", "cluster", "")


def bats_jobs(build, mode, extra=""):
    paths = glob.glob(os.path.join(TOP, "test", "**", "*.bats"), recursive=True)
    paths = [path for path in paths if not path.startswith(CLUSTER)]
    paths = [path for path in paths if mode == MODES[0] or in_every_mode(path)]
    return [
        jobs.Job(
            "%s:%s:%s" % (build, mode, os.path.basename(path)),
            ["bats", "--formatter", "tap", path],
            env=test_env(build, mode, extra),
            limit=300 * SLOWER.get(build, 1),
            cwd=TOP,
        )
        for path in sorted(paths, key=lambda path: (os.path.basename(path) not in LONG, path))
    ]


def script_jobs(name, build, mode="sync", extra="", script=None, args=(), limit=300):
    """An executable below test/ that prints TAP; nothing when it is not there."""
    path = os.path.join(TOP, "test", script or os.path.join(name, "run"))
    if not os.path.exists(path):
        return []
    return [
        jobs.Job("%s:%s:%s" % (build, mode, name), [path, *args], long=name == "vm",
                 env=test_env(build, mode, extra), limit=limit * SLOWER.get(build, 1), cwd=TOP)
    ]


def record_jobs(build, recorded):
    """Have these jobs keep what ibmr prints; and the job that judges it."""
    record = os.path.join(folder(build), "documents")
    shutil.rmtree(record, ignore_errors=True)
    os.mkdir(record)
    for job in recorded:
        job.env.update(IBMR_RECORD=record,
                       LD_PRELOAD=os.path.join(folder(build), "test", "record", "record.so"))
    found = script_jobs("documents", build, script=os.path.join("record", "run"))
    for job in found:
        job.env["IBMR_RECORD"] = record
        job.after = tuple(other.name for other in recorded)
    return found


def cases_jobs(build, mode, extra=""):
    return script_jobs("cases", build, mode, extra)


SUITES = {"unit": unit_jobs, "cases": cases_jobs, "bats": bats_jobs}


def fuzz_jobs(seconds):
    """Each fuzzer by libFuzzer for so long, from its corpus; finds go to build-fuzz/finds."""
    found = []
    for test in meson_tests("fuzz", "fuzz"):
        name = test["name"].split(" ")[-1]
        new = os.path.join(folder("fuzz"), "finds", name)
        os.makedirs(new, exist_ok=True)
        found.append(
            jobs.Job("fuzz:" + name,
                     [test["cmd"][0], "-max_total_time=%d" % seconds, "-timeout=20",
                      "-rss_limit_mb=2048", "-print_final_stats=1", "-artifact_prefix=%s/" % new,
                      new, *test["cmd"][1:]],
                     kind="check", env=dict(test_env("fuzz", "sync"), **test["env"]),
                     limit=seconds + 300, cwd=TOP))
    return found


def runner_jobs():
    """The tests of this folder's own code."""
    script = os.path.join(TOP, "test", "runner", "test_tap.py")
    return [jobs.Job("runner", ["/usr/bin/python3", script], kind="check",
                     env={"PYTHONDONTWRITEBYTECODE": "1"}, cwd=TOP)]


def lint_jobs():
    """Each script of test/lint is one check."""
    env = dict(test_env("gcc", "sync"), IBMR_BUILD_CLANG=folder("clang"))
    return [
        jobs.Job("lint:" + os.path.basename(path)[: -len(".sh")], [path], kind="check", env=env,
                 limit=900, cwd=TOP, needs=("build:gcc", "build:clang"),
                 long="clang-tidy" in path)
        for path in sorted(glob.glob(os.path.join(TOP, "test", "lint", "*.sh")))
    ]
