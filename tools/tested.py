#!/usr/bin/env python3
"""What the last run of tools/test.sh skipped, and what was last tested where.

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
from xml.etree import ElementTree

RECORD = Path(__file__).resolve().parent.parent / "test/tested.tsv"
NEVER = "never"


def processor():
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    field = lambda name: (re.search(rf"^{name}\s*: (.*)$", text, re.M) or ["", "unknown"])[1]
    return f"{field('model name')}, family {field('cpu family')}, model {field('model')}"


def sections(build):
    """(name, whether it was skipped, whether it passed, output) of each test of the last run by tools/test.sh."""
    for test in ElementTree.parse(build / "tested.xml").iter("testcase"):
        skipped, failed = test.find("skipped") is not None, test.find("failure") is not None
        yield test.get("name"), skipped, not skipped and not failed, test.findtext("system-out") or ""


def results(build):
    """The tests that passed, and the reasons of those that were skipped: {reason: [test]}. Those of a program that
    names its own are taken one by one."""
    passed, skipped = set(), {}
    for name, was_skipped, has_passed, output in sections(build):
        found = re.findall(r": Skipped\n(.*)\n\s*\[  SKIPPED \] (\S+)", output)
        found += [(reason, f"{name}: {test}")
                  for test, reason in re.findall(r"^(\w+ \([\w.]+\)) \.\.\. skipped '(.*)'$", output, re.M)]
        if was_skipped and not found:
            said = re.search(r"^skipped: (.*)$", output, re.M)
            found = [(said[1] if said else (output.strip() or "no reason was given").splitlines()[-1], name)]
        for reason, test in found:
            skipped.setdefault(reason.strip(), []).append(test)
        passed.update(re.findall(r"^\[       OK \] (\S+)", output, re.M))
        passed.update(f"{name}: {test}" for test in re.findall(r"^(\w+ \([\w.]+\)) \.\.\. ok$", output, re.M))
        if has_passed:
            passed.add(name)
    return passed, skipped


def general(reason, build):
    """The reason without what differs from machine to machine: folders."""
    return re.sub(r"(?<!\S)/\S*/(?=[^/\s;]+)", "…/", reason.replace(str(build.resolve()), "build"))


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
