#!/usr/bin/env python3
"""Judges random blocks and models: no verdict may be false.

Runs the tests of test/unit/Property on the seeds FIRST to FIRST + COUNT - 1, some at a time. What
was done is kept in a file, a line for each part; a run with the same file and the same range goes
on where the last one stopped, and judges again the parts that failed. A part takes one of four
kinds in turn: blocks, blocks that are made to deceive, models of several layers, and large blocks
whose numbers fit their sizes.

  tools/random-blocks.py STATE [--first SEED] [--count N]

With --numpy, the blocks are those of test/random/numpy_verdicts.py, which judges them by numpy, and `python … CTXC SEED 1`
runs one again.

Ends with what was counted. Exit code 1 where a verdict is false, or a test fails; the seeds are
named, and `CTXC_PROPERTY_SEEDS=SEED:8 build/bin/unit-Property --gtest_filter=…/0` runs one again.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading

NUMPY = "blocks judged by numpy"
KINDS = {
    "blocks": "*Verdicts.AreNeverFalse/*:-*ModelVerdicts*",
    "deceiving blocks": "*Verdicts.AreNeverFalseOnWhatDeceives/*",
    "models": "*ModelVerdicts.AreNeverFalse/*",
    "sized blocks": "*Sized.AreNeverFalse/*",
}
SHARDS = 8  # into which the tests divide their seeds
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class State:
    """The file of what was done: its range first, then a line for each part."""

    def __init__(self, path, given):
        self.path = path
        self.parts = {}
        self.lock = threading.Lock()
        if os.path.exists(path):
            self.read(given)
        else:
            self.range = given
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps(given) + "\n")

    def read(self, given):
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines or lines[0] != given:
            found = lines[0] if lines else "no range"
            sys.exit(f"{self.path} is of {found}, not of {given}; name another file")
        self.range = lines[0]
        self.parts = {part["first"]: part for part in lines[1:] if "failed" not in part}
        if whole != text:  # the last line was being written when the run ended
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(whole)

    def add(self, part):
        with self.lock:
            self.parts[part["first"]] = part
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(part) + "\n")
                file.flush()
                os.fsync(file.fileno())


def parts_of(given):
    """Where each part begins, how many seeds it has, and its kind."""
    kinds = [NUMPY] if given.get("by") == NUMPY else list(KINDS)
    end = given["first"] + given["count"]
    for i, first in enumerate(range(given["first"], end, given["each"])):
        yield first, min(given["each"], end - first), kinds[i % len(kinds)]


def counts_in(output):
    counts = collections.Counter()
    for number, what in re.findall(r"^  (\d+) (\w.*)$", output, re.MULTILINE):
        counts[what] += int(number)
    return counts


def judge(program, state, first, count, kind):
    environment = dict(os.environ, CTXC_PROPERTY_SEEDS=f"{first}:{count}")
    if kind != NUMPY:
        command = [program, f"--gtest_filter={KINDS[kind]}"]
    else:
        command = [program, os.path.join(ROOT, "test", "random", "numpy_verdicts.py")]
        command += [os.path.join(ROOT, "build", "bin", "ctxc"), str(first), str(count)]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    counts = counts_in(done.stdout)
    part = {"first": first, "count": count, "kind": kind, "counts": counts}
    judged = counts["models" if kind == "models" else "cases"]
    if done.returncode or judged != count:
        seeds = sorted({int(seed) for seed in re.findall(r"\bseed (\d+)\b", done.stdout)})
        part["failed"] = seeds or [first]
        log = f"{state.path}.{first}.log"
        with open(log, "w", encoding="utf-8") as file:
            file.write(f"exit code {done.returncode}, {judged} of {count} judged\n")
            file.write(done.stdout + done.stderr)
        print(f"{kind}, seeds {first} to {first + count - 1}: failed, see {log}", flush=True)
    state.add(part)


def report(state, of):
    """Prints the counts by kind; false where something failed."""
    good = True
    for kind in [NUMPY] if of.get("by") == NUMPY else KINDS:
        parts = [part for part in state.parts.values() if part["kind"] == kind]
        counts = sum((collections.Counter(part["counts"]) for part in parts), collections.Counter())
        failed = sorted({seed for part in parts for seed in part.get("failed", [])})
        print(f"{kind}: {sum(part['count'] for part in parts)}")
        for what, number in sorted(counts.items()):
            print(f"  {number:9} {what}")
        false = counts["false verdicts"]
        print(f"  {false:9} verdicts are false" + (f"; seeds {failed}" if failed else ""))
        good &= not failed and not false
    print(f"{sum(part['count'] for part in state.parts.values())} of {of['count']} done")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", help="the file of what was done")
    parser.add_argument("--first", type=int, default=2_000_000, help="the first seed (2000000)")
    parser.add_argument("--count", type=int, default=1_000_000, help="how many seeds (1000000)")
    parser.add_argument("--each", type=int, default=2000, help="seeds of a part, a multiple of 8 (2000)")
    parser.add_argument("--parts", type=int, help="end after this many parts, to go on later")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (all processors)")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "bin", "unit-Property"))
    parser.add_argument("--numpy", metavar="PYTHON", help="judge by numpy alone, with this interpreter")
    given = parser.parse_args()
    if given.each <= 0 or given.each % SHARDS or given.count % SHARDS:
        parser.error(f"--each and --count are multiples of {SHARDS}")
    of = {"first": given.first, "count": given.count, "each": given.each}
    if given.numpy:
        of["by"] = NUMPY
    program = given.numpy or given.program
    state = State(given.state, of)
    todo = [part for part in parts_of(of) if part[0] not in state.parts]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        running = [pool.submit(judge, program, state, *part) for part in todo[: given.parts]]
        for part in concurrent.futures.as_completed(running):
            part.result()
    return 0 if report(state, of) else 1


if __name__ == "__main__":
    sys.exit(main())
