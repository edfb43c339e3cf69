# SPDX-License-Identifier: BSD-2-Clause
"""Bytes through indirect MRs on soft0, and making them, against memcpy, the kernel and two MPIs."""

import json
import os
import shutil
import subprocess

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
    print("fill: nanoseconds an entry, from an array, checks included")
    fill = os.path.join(build, "test", "bench", "fill")
    few, many = (float(subprocess.run([fill, str(n)], check=True, stdout=subprocess.PIPE).stdout)
                 for n in (1000, 60000))
    print("  1,000 entries: %.1f ns; 60,000: %.1f ns" % (few, many))
    goal(many <= 12, "%.1f ns an entry at 60,000, at most 12" % many)
    goal(many / few <= 1.2, "an entry of 60,000 takes %.2f of one of 1,000, at most 1.2" % (
        many / few))


def bench(build, goal, scratch):
    bench_fill(build, goal)
    bench_data(build, goal, scratch)
