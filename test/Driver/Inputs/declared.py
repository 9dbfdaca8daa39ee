"""Holds every option to its declaration, as zsh's completion shows it: `declared.py FILE`.

A value that is a path is completed with files, which says that its option is declared as one that
reads or writes; any other value is one of the words below. A word that is in neither list is new:
decide what it is.
"""

import re
import sys

PATHS = {"FILE", "FILE.npy", "DIR", "PATH", "WEIGHTS", "PYTHON"}
OTHERS = {"COMMAND", "COUNTS", "FORMAT", "GB/S", "GB/S,US", "GPU", "I/N", "IDS", "K", "L", "LINE", "MIB", "N", "N,M", "NAME",
          "NAMES", "PART", "PERCENTS", "POSITIONS", "RANGES", "RULE", "SEED", "SPLIT", "STAGE", "TEXT", "TFLOP/S", "TYPE", "TYPES",
          "RANKS", "UNIT", "WHICH", "X"}

problems, seen = [], 0
for option, word, action in re.findall(
        r"^      '\*?(-[^\[=+]+)[^\[]*\[.*\]:{1,2}([^:]*):(.*)' ?\\?$", open(sys.argv[1]).read(), re.M):
    seen += 1
    completes_files = action == "_files"
    if word not in PATHS | OTHERS:
        problems.append(f"{option} {word}: is {word} a path?")
    elif word in PATHS and not completes_files:
        problems.append(f"{option} {word}: is not declared by reads, writes or writesInto")
    elif word in OTHERS and completes_files:
        problems.append(f"{option} {word}: is declared as a path")
if seen < 60:
    problems.append(f"found {seen} options with values, expected all of ctxc's")
sys.exit("\n".join(problems) or 0)
