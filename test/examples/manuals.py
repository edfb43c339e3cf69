#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the manual pages list, and what the source has: manuals.py WHAT prints one word a line."""

import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def read(*names):
    text = ""
    for name in names:
        with open(os.path.join(TOP, name), encoding="utf-8") as file:
            text += file.read()
    return text


def section(page, title):
    """Lines of a section or subsection of a page."""
    found = re.search(
        r"^\.S[hs] %s\n(.*?)(?=^\.S[hs] |\Z)" % re.escape(title), read("man/" + page), re.M | re.S
    )
    if not found:
        sys.exit("%s has no section %s" % (page, title))
    return found.group(1)


def tags(text):
    """The words of .It lines, those of a list with commas each for itself."""
    for line in re.findall(r"^\.It (?:Ql|Ic|Cm|Dv) (.*)", text, re.M):
        for word in re.split(r" , ", re.split(r" (?:Ns|No|Bq) ", line)[0]):
            yield word.strip()


def strings(pattern, text):
    for found in re.findall(pattern, text, re.S):
        yield from re.findall(r'"([a-z0-9_]+)"', found)


def page_causes():
    return {w for w in tags(section("ibmr-result.5", "Causes"))} - set(page_codes())


def source_causes():
    """Every cause of the library and of the commands that answer in JSON; exec does not."""
    sources = sorted(glob.glob(os.path.join(TOP, "src/lib/*.c")))
    sources += sorted(glob.glob(os.path.join(TOP, "src/cli/*.c")))
    sources = [s for s in sources if os.path.basename(s) not in ("program.c", "cmd_exec.c")]
    text = read(*sources)
    words = set(strings(r"ibmri_err_(?:cause|suspect)\((.*?)\);", text))
    words |= set(strings(r"(?:->|\.)cause = (.*?);", text))
    words |= set(strings(r"place_(?:fail|refuse)\(f, (.*?),", text))
    words |= set(strings(r"refuse_session\(agent, c, \w+, (.*?),", text))
    verify = read("src/cli/verify.c")
    words |= set(strings(r"(?:mismatch|compare_all)\(([^;{]*)\);", verify))
    return words


def page_findings():
    return tags(section("ibmr-doctor.1", "Findings"))


def source_findings():
    text = read(*sorted(glob.glob(os.path.join(TOP, "src/cli/*doctor*.c"))))
    words = set(re.findall(r'SEVERITY_[A-Z]+,\s*"([a-z0-9_]+)"', text))
    return words | set(re.findall(r'\bcode = "([a-z_]+)"', text))


def page_codes():
    for line in re.findall(r"^\.It (Ql .*)", section("ibmr-result.5", "Codes"), re.M):
        yield from re.findall(r"[a-z_]+", line[3:])


def source_codes():
    table = re.search(r"codes\[FAIL_MAX\] = \{(.*?)\n\};", read("src/cli/fail.c"), re.S).group(1)
    return set(re.findall(r'"([a-z_]+)"', table)) - {"none"}


def page_library_codes():
    return re.findall(r"^\.It Dv (IBMR_E_[A-Z_]+)", read("man/libibmr.3"), re.M)


def source_library_codes():
    return set(re.findall(r"^\t(IBMR_E_[A-Z_]+)", read("src/lib/ibmr.h"), re.M)) - {"IBMR_E_MAX"}


def page_functions():
    return re.findall(r"^\.Nm (\w+)", read("man/libibmr.3"), re.M)


def synopsis_functions():
    return re.findall(r"^\.F[no] (\w+)", section("libibmr.3", "SYNOPSIS"), re.M)


def source_functions():
    return re.findall(r"^IBMR_EXPORT [^;]*?(ibmr_\w+)\(", read("src/lib/ibmr.h"), re.M)


def build_functions():
    return re.findall(r"^  '(ibmr_\w+)',", read("man/meson.build"), re.M)


def page_soft0():
    for line in re.findall(r"^\.It Ic (.*)", section("soft0.7", "ENVIRONMENT"), re.M):
        yield from re.findall(r"[a-z0-9_]+", line.split(" Ns ")[0])


def source_soft0():
    """The words that soft0.h lists."""
    text = re.search(r"The words:(.*?)\*/", read("src/softdev/soft0.h"), re.S).group(1)
    for line in re.findall(r"^ \*   ([a-z].*)", text, re.M):
        yield from re.findall(r"([a-z0-9_]+)=", line.split("    ")[0])


def page_breaks():
    item = re.search(r"^\.It Ic break.*?(?=^\.El)", read("man/soft0.7"), re.M | re.S).group(0)
    return re.findall(r"^\.Cm (\w+)", item, re.M)


def source_breaks():
    return re.findall(r"\bbreak_(\w+)", read("src/softdev/softdev.h"))


def page_access():
    return tags(section("ibmr-spec.5", "Access words"))


def source_access():
    table = re.search(r"access_names\[\] = \{(.*?)\n\};", read("src/cli/words.c"), re.S).group(1)
    return [w for w in re.findall(r'"([a-z_]+)"', table) if not w.startswith("shared_")]


def commands(page):
    """Examples of a page as shell commands, each with the output shown, separated by NUL."""
    for block in re.findall(r"^\.Bd -literal -offset indent\n(.*?)^\.Ed", section(page, "EXAMPLES"),
                            re.M | re.S):
        block = block.replace("\\e", "\\")
        for text in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = text.split("\n")
            command = [lines.pop(0)]
            while command[-1].endswith("\\") or (lines and lines[0].startswith("> ")):
                line = lines.pop(0)
                command.append(line[2:] if line.startswith("> ") else line)
            yield "\n".join(command)
            yield "\n".join(lines)


def program():
    """The C program of libibmr.3."""
    code = re.search(r"^\.Bd -literal\n(#include.*?)^\.Ed", section("libibmr.3", "EXAMPLES"), re.M | re.S)
    return code.group(1).replace("\\e", "\\")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "commands":
        sys.stdout.write("".join(part + "\0" for part in commands(*rest)))
    elif what == "program":
        sys.stdout.write(program())
    else:
        print("\n".join(sorted(set(globals()[what]()))))
