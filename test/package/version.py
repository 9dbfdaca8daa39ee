#!/usr/bin/env python3
"""Checks that the version in CMakeLists.txt is the one that everything else says.

  version.py VERSION CTXC SOURCE BUILD

VERSION is CMake's, CTXC the program. The changelog's newest entry, CITATION.cff, the Debian packages, the
package that find_package(ctxc) reads, and every find_package(ctxc X.Y) in SOURCE must agree with it.
"""

import re
import subprocess
import sys
from pathlib import Path


def first(pattern, text):
    found = re.search(pattern, text, re.M)
    return found[1] if found else None


def said(version, ctxc, source, build):
    """(who says it, what it says, what it must say)."""
    printed = subprocess.run([ctxc, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    yield "ctxc --version", first(r"^ctxc (\S+), LLVM \d+\.\d+\.\d+$", printed), version
    changes = (source / "CHANGELOG.md").read_text()
    citation = (source / "CITATION.cff").read_text()
    yield "CHANGELOG.md", first(r"^## (\S+)", changes), version
    yield "CITATION.cff, version", first(r"^version: (\S+)$", citation), version
    yield ("CITATION.cff, date-released", first(r"^date-released: (\S+)$", citation),
           first(r"^## \S+ \((\S+)\)$", changes))
    packages = (build / "CPackConfig.cmake").read_text()
    yield "CPackConfig.cmake", first(r'^set\(CPACK_PACKAGE_VERSION "(.*)"\)', packages), version
    config = (build / "cmake/ctxcConfigVersion.cmake").read_text()
    yield "ctxcConfigVersion.cmake", first(r'^set\(PACKAGE_VERSION "(.*)"\)', config), version
    wanted = 0
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    for name in listed.split("\0"):
        if name.endswith((".md", "CMakeLists.txt")) and (source / name).is_file():
            for asked in re.findall(r"find_package\(ctxc (\d[\d.]*)", (source / name).read_text()):
                wanted += 1
                yield f"{name}, find_package", asked, ".".join(version.split(".")[:2])
    yield "files with find_package(ctxc)", wanted > 0, True


def main():
    version, ctxc, source, build = sys.argv[1:]
    wrong = [message for message in said(version, ctxc, Path(source), Path(build))
             if message[1] != message[2]]
    for who, found, expected in wrong:
        print(f"{who}: found {found}, expected {expected}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
