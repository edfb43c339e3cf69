# SPDX-License-Identifier: BSD-2-Clause
"""Bytes through indirect MRs on soft0, and making them, against memcpy, the kernel and two MPIs."""

import json
import os
import shutil
import subprocess
import time

HERE = os.path.dirname(os.path.realpath(__file__))
PAYLOADS = (256 << 10, 8 << 20, 64 << 20)
SEGMENTS = (8, 64, 512, 4096, 65536)
ORDERS = ("ordered", "shuffled", "strided")
MPIS = ("openmpi", "mpich")
LONGEST_BLOCK = 65535  # of a repeat
ALONE = {"OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_btl": "self"}


def compile_mpi(scratch):
    """{name: program} of the MPIs whose compilers are here; the others are said."""
    programs = {}
    for name in MPIS:
        compiler = shutil.which("mpicc." + name)
        if not compiler:
            print("  no mpicc.%s here: not compared with it" % name)
            continue
        programs[name] = os.path.join(scratch, "mpi-" + name)
        subprocess.run([compiler, "-O3", "-o", programs[name], os.path.join(HERE, "mpi.c")],
                       check=True)
    return programs


def ask(*argv):
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, env=dict(os.environ, **ALONE))
    return json.loads(done.stdout)


class Worst:
    """The worst ratio of one goal, and where it was."""

    def __init__(self, text, most):
        self.text, self.most = text, most
        self.ratio, self.where = 0, "never measured"

    def add(self, ratio, where):
        if ratio > self.ratio:
            self.ratio, self.where = ratio, where

    def say(self, goal):
        goal(0 < self.ratio <= self.most,
             "%s: at worst %.2f of what is allowed (%s)" % (self.text, self.ratio / self.most,
                                                            self.where))


def compare(folder, mpis, payload, segment, order, worst):
    """One case: measured in turn, printed, and its ratios noted."""
    case = (str(payload), str(segment), order)
    ours = ask(os.path.join(folder, "data"), *case)
    theirs = {name: ask(program, *case) for name, program in mpis.items()}
    for direction in ("scatter", "gather"):
        got = ours[direction]
        device = got["device"]
        where = "%d in %d, %s, %s" % (payload, segment, order, direction)
        print("  %-40s soft0 %.1f, memcpy %.1f, process_vm_writev %.1f" % (
            where, device, got["memcpy"], got["kernel"]) + "".join(
                ", %s %.1f" % (name, theirs[name][direction]) for name in mpis))
        if segment >= 4096:
            worst["memcpy"].add(device / got["memcpy"], where)
        if segment == 8 and order != "shuffled":
            worst["8"].add(device, where)
        if segment == 64 and order == "shuffled":
            worst["64"].add(device, where)
        worst["kernel small" if segment <= 64 else "kernel"].add(device / got["kernel"], where)
        if mpis:
            best = min(theirs[name][direction] for name in mpis)
            worst["mpi" if segment < 512 else "mpi large"].add(device / best, where)
    if mpis and order != "strided" and payload // segment in (32 << 10, 1 << 20):
        best = min(theirs[name]["build"] for name in mpis)
        print("  made of %d entries: soft0 %.1f" % (payload // segment, ours["build"]) + "".join(
            ", %s %.1f" % (name, theirs[name]["build"]) for name in mpis))
        worst["build"].add(ours["build"] / best, "%d entries, %s" % (payload // segment, order))


def bench_data(build, goal, scratch):
    print("data: nanoseconds a segment, payloads through an indirect MR")
    folder = os.path.join(build, "test", "bench")
    mpis = compile_mpi(scratch)
    worst = {
        "memcpy": Worst("0.95 of memcpy from 4 KiB up", 1 / 0.95),
        "8": Worst("12 ns at 8 bytes in order", 12),
        "64": Worst("35 ns at 64 bytes shuffled", 35),
        "kernel small": Worst("3 times faster than process_vm_writev at 8 and 64 bytes", 1 / 3),
        "kernel": Worst("never slower than process_vm_writev", 1),
    }
    if mpis:
        worst.update({
            "mpi": Worst("a tenth slower than the better MPI at most", 1.1),
            "mpi large": Worst("faster than the better MPI from 512 bytes up", 1),
            "build": Worst("made 5 times faster than the better MPI's type", 1 / 5),
        })
    for payload in PAYLOADS:
        for segment in SEGMENTS:
            for order in ORDERS:
                if order != "strided" or segment <= LONGEST_BLOCK:
                    compare(folder, mpis, payload, segment, order, worst)
    for one in worst.values():
        one.say(goal)


def bench_fill(build, goal):
    print("fill: an entry from an array, checks included, and a byte at a random offset, translated")
    fill = os.path.join(build, "test", "bench", "fill")
    got = {}
    for kind in ("varied", "equal"):
        for entries in (1000, 60000):
            one = got[kind, entries] = ask(fill, str(entries), kind)
            print("  %d entries of %s lengths: fill %.1f ns an entry, translation %.1f ns" % (
                entries, kind, one["fill"], one["translate"]))
    for kind in ("varied", "equal"):
        few, many = got[kind, 1000], got[kind, 60000]
        goal(many["fill"] <= 12, "%.1f ns an entry at 60,000, at most 12" % many["fill"])
        goal(many["fill"] / few["fill"] <= 1.25, "an entry of 60,000 takes %.2f of one of 1,000, "
             "at most 1.25" % (many["fill"] / few["fill"]))
        goal(many["translate"] <= 100, "%.1f ns to translate, at most 100" % many["translate"])
    growth = got["equal", 60000]["translate"] / got["equal", 1000]["translate"]
    goal(growth <= 1.5, "equal lengths: translation in 60,000 takes %.2f of that in 1,000, at most "
         "1.5" % growth)


def run_plan(ibmr, scratch, plan):
    """(seconds of the fastest of five, bytes of the plan)"""
    path = os.path.join(scratch, "layout.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(plan, file)
    times = []
    for _ in range(5):
        start = time.monotonic()
        subprocess.run([ibmr, "run", path], check=True, stdout=subprocess.DEVNULL)
        times.append(time.monotonic() - start)
    return min(times), os.path.getsize(path)


def bench_spec(build, goal, scratch):
    print("spec: from file to filled MR")
    ibmr = os.path.join(build, "src", "cli", "ibmr")
    access = ["local_write", "remote_read"]

    def plan(length, *steps):
        first = {"do": "reg", "mr": "pool", "length": length, "access": access}
        return {"schema": 1, "device": "soft0", "steps": [first, *steps]}

    klms = [{"mr": "pool", "offset": number * 7919 % 65536 * 64, "length": 1 + number % 64}
            for number in range(60000)]
    seconds, _ = run_plan(ibmr, scratch, plan(
        65536 * 64, {"do": "create", "mr": "m", "max_klms": 60000},
        {"do": "fill", "mr": "m", "layout": "list", "access": access, "klms": klms}))
    goal(seconds < 0.3, "60,000 KLMs: %.3f s, under 0.3 s" % seconds)

    def repeat(name, member, length, stride):
        return ({"do": "create", "mr": name, "max_klms": 2},
                {"do": "fill", "mr": name, "layout": "repeat", "access": access, "count": 4096,
                 "blocks": [{"mr": member, "length": length, "stride": stride}]})

    seconds, size = run_plan(ibmr, scratch, plan(
        65536, *repeat("inner", "pool", 8, 16), *repeat("outer", "inner", 32768, 0),
        {"do": "read", "mr": "outer", "offset": (4096 * 4096 - 1) * 8, "length": 8}))
    goal(size < 2048, "16,777,216 pieces by nested repeats: a plan of %d bytes, under 2 KiB" % size)
    print("  filled, and read at its end, in %.1f ms" % (seconds * 1e3))


def bench(build, goal, scratch):
    bench_fill(build, goal)
    bench_spec(build, goal, scratch)
    bench_data(build, goal, scratch)
