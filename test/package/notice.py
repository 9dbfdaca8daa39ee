#!/usr/bin/env python3
"""Checks that NOTICE names what the programs are made of.

  notice.py NOTICE CMAKE PROGRAM…

Every shared library that a PROGRAM needs must be in NOTICE, and nothing else may be in its first table;
what CMAKE (cmake/CtxcUpstream.cmake) finds to compile in must be in the second.
"""

import re
import subprocess
import sys
from pathlib import Path


def table(notice, title):
    """The lines of the table under `title`, below their heads."""
    lines = notice.split(title, 1)[1].split("\n\n", 2)[1].splitlines()
    return lines[1:]


def needed(program):
    """libMLIR.so of libMLIR.so.22.1, for each library that a program loads itself."""
    dynamic = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, text=True, check=True)
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic.stdout)
    return {re.sub(r"(\.so|^ld-linux)\b.*", r"\1", name) for name in names}


def main():
    notice = Path(sys.argv[1]).read_text()
    loaded = {name for line in table(notice, "Libraries that the programs load")
              for name in re.split(r",? +(?=lib|ld-)|  ", line) if re.match(r"lib.*\.so$|ld-linux$", name)}
    linked = set().union(*(needed(program) for program in sys.argv[3:]))
    wrong = [f"NOTICE does not name {name}" for name in sorted(linked - loaded)]
    wrong += [f"NOTICE names {name}, which no program needs" for name in sorted(loaded - linked)]
    inside = "\n".join(table(notice, "What is compiled into them"))
    upstream = Path(sys.argv[2]).read_text()
    found = re.findall(r"find_library\(CTXC_\w+ (lld\w+)|find_package\((\w+) [\d$Q]", upstream)
    for name in (lld or package.rstrip("3") for lld, package in found):
        if name not in inside and name not in ("PkgConfig",):
            wrong.append(f"NOTICE does not say that {name} is compiled in")
    if not found or not loaded:
        wrong.append("nothing was found to compare")
    for message in wrong:
        print(message)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
