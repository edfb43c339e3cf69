#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Answers of so many nodes, made of one answer of validate: nodes.py ANSWER NUMBER."""

import json
import random
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    answer = json.load(file)
chance = random.Random(1)
checks = answer["devices"][0]["checks"]
while len(checks) < 30:
    checks.append(dict(checks[0], name="more-%d" % len(checks)))
answer["counts"]["pass"] += len(checks) - sum(answer["counts"].values())
times = [check["elapsed_us"] for check in checks]
for number in range(int(sys.argv[2])):
    answer["identity"]["host"] = "node%05d" % number
    for check, us in zip(checks, times):
        if us is not None:
            check["elapsed_us"] = round(us * chance.uniform(0.95, 1.05), 3)
    print(json.dumps(answer, separators=(",", ":")))
