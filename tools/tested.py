#!/usr/bin/env python3
"""What the last run of CTest skipped, and what was last tested where.

  tested.py BUILD                    lists what was skipped, by reason, and when others last ran it
  tested.py BUILD --record           also writes what ran here into test/tested.tsv
  tested.py BUILD --within DAYS      fails if something has run on no machine for so long

Tests skip what a machine lacks: a processor's instructions, a device, a model, a network. test/tested.tsv has a line for each
reason that a run has met: the reason; the day on which its tests last ran, and on which processor (`never` for both at first);
and their names. A test that is listed and passes has run, wherever that is.
"""

import argparse
import datetime
import re
import sys
from pathlib import Path

RECORD = Path(__file__).resolve().parent.parent / "test/tested.tsv"
NEVER = "never"


def processor():
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    field = lambda name: (re.search(rf"^{name}\s*: (.*)$", text, re.M) or ["", "unknown"])[1]
    return f"{field('model name')}, family {field('cpu family')}, model {field('model')}"


def sections(build):
    """(name, output) of each test in CTest's log of its last run."""
    text = (build / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        yield part.split("\n", 1)[0], part


def results(build):
    """The tests that passed, and the reasons of those that were skipped: {reason: [test]}."""
    passed, skipped = set(), {}
    for name, output in sections(build):
        for reason, test in re.findall(r": Skipped\n(.*)\n(?:.*\n)??\[  SKIPPED \] (\S+)", output):
            skipped.setdefault(reason.strip(), []).append(test)
        passed.update(re.findall(r"^\[       OK \] (\S+)", output, re.M))
        for test, reason in re.findall(r"^(\w+ \([\w.]+\)) \.\.\. skipped '(.*)'$", output, re.M):
            skipped.setdefault(reason, []).append(f"{name}: {test}")
        passed.update(f"{name}: {test}" for test in re.findall(r"^(\w+ \([\w.]+\)) \.\.\. ok$", output, re.M))
        whole = re.search(r"^skipped: (.*)$", output, re.M)
        if whole:
            skipped.setdefault(whole[1], []).append(name)
        elif re.search(r"^Test Passed\.$", output, re.M):
            passed.add(name)
    return passed, skipped


def general(reason, build):
    """The reason without what differs from machine to machine: folders."""
    return re.sub(r"/\S*/(?=[^/\s;]+)", "…/", reason.replace(str(build), "build"))


def read():
    rows = {}
    for line in RECORD.read_text().splitlines() if RECORD.exists() else []:
        reason, day, where, tests = line.split("\t")
        rows[reason] = [day, where, tests.split(", ")]
    return rows


def updated(rows, passed, skipped):
    today = datetime.date.today().isoformat()
    for reason, tests in skipped.items():
        row = rows.setdefault(reason, [NEVER, NEVER, []])
        row[2] = sorted({*row[2], *tests})
    for row in rows.values():
        if passed & set(row[2]) and not any(set(row[2]) & set(tests) for tests in skipped.values()):
            row[:2] = [today, processor()]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--within", type=int)
    arguments = parser.parse_args()
    passed, found = results(arguments.build)
    skipped = {}
    for reason, tests in found.items():
        skipped.setdefault(general(reason, arguments.build), []).extend(tests)
    rows = updated(read(), passed, skipped)
    for reason, tests in sorted(skipped.items()):
        day, where, _ = rows[reason]
        last = "no run of them is recorded" if day == NEVER else f"last run {day}, {where}"
        print(f"== skipped: {reason} ({last}): {', '.join(sorted(tests))}")
    if arguments.record:
        RECORD.write_text("".join(f"{reason}\t{day}\t{where}\t{', '.join(tests)}\n"
                                  for reason, (day, where, tests) in sorted(rows.items())))
    old = []
    if arguments.within is not None:
        limit = (datetime.date.today() - datetime.timedelta(days=arguments.within)).isoformat()
        old = [reason for reason, row in rows.items() if row[0] == NEVER or row[0] < limit]
        for reason in old:
            print(f"== run on no machine for {arguments.within} days: {reason}")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
