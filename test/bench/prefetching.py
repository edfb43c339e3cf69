# SPDX-License-Identifier: BSD-2-Clause
"""Prefetch on soft0 against the bare system call, and reading with and without it."""

import os
import statistics
import subprocess


def median(program, what, mebibytes, against, rounds=7):
    """Medians of two measurements taken in turn, in seconds."""
    times = {what: [], against: []}
    for _ in range(rounds):
        for word in times:
            done = subprocess.run([program, word, str(mebibytes)], check=True,
                                  stdout=subprocess.PIPE)
            times[word].append(int(done.stdout) / 1e9)
    return statistics.median(times[what]), statistics.median(times[against])


def bench(build, goal):
    program = os.path.join(build, "test", "bench", "prefetch")
    print("prefetch: 1 GiB on soft0, counted, against madvise(MADV_POPULATE_WRITE)")
    ours, bare = median(program, "prefetch", 1024, "madvise")
    print("  prefetch %.1f ms, madvise %.1f ms" % (ours * 1e3, bare * 1e3))
    goal(bare / ours >= 0.95, "%.2f of its rate, at least 0.95" % (bare / ours))
    first, again = median(program, "first", 256, "again")
    print("  reading 256 MiB of untouched on-demand memory %.1f ms, after a prefetch %.1f ms: "
          "ratio %.1f" % (first * 1e3, again * 1e3, first / again))
