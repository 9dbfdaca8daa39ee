#!/usr/bin/env python3
"""Checks that code which a page quotes is in the quoted file.

  excerpts.py PAGE.md…

A fenced block whose first line names a language and a file, such as ```cpp lib/X.cpp, must be in that
file, line for line.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def stale(page):
    quotes = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", Path(page).read_text(), flags=re.M | re.S)
    if not quotes:
        return [f"{page}: quotes no file"]
    return [f"{page}: {file} does not have, line for line,\n{text}" for file, text in quotes
            if "\n" + text not in "\n" + (ROOT / file).read_text()]


def main():
    found = [message for page in sys.argv[1:] for message in stale(page)]
    for message in found:
        print(message)
    return 1 if found or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
