# SPDX-License-Identifier: BSD-2-Clause
"""What sanitizers wrote to the files of their log_path."""

import glob
import re

# The search for leaks met a thread on its way out: no find, whatever it is printed among.
NOTE = re.compile(r"^==\d+==Unable to get registers from thread \d+\.\n?", re.MULTILINE)


def reports(log_path):
    for path in sorted(glob.glob(log_path + ".*")):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        said = NOTE.sub("", text)
        if said.strip() or not text:
            yield said
