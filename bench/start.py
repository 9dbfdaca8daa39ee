#!/usr/bin/env python3
"""Measures how long `ctxc verify` takes before it computes: import, plans and kernels.

  bench/start.py build/bin/ctxc MODEL...

Prints a table: each model's first run with an empty cache, and the run after it, in seconds as ctxc
reports them (the median of five such pairs).
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = 5
STAGES = ["import", "plan", "compile"]


def stages(ctxc, model, cache):
    """The seconds of each stage of one run."""
    done = subprocess.run([ctxc, "verify", model, "--tokens", "2,5,7,3"], capture_output=True,
                          text=True, env=os.environ | {"XDG_CACHE_HOME": cache})
    found = {name: float(seconds)
             for name, seconds in re.findall(r"(\w+) ([\d.]+) s\b", done.stdout)}
    if done.returncode or not set(STAGES) <= set(found):
        raise RuntimeError(f"{model}: exit code {done.returncode}: {done.stderr}")
    return [found[name] for name in STAGES]


def pair(ctxc, model):
    with tempfile.TemporaryDirectory() as cache:
        return [stages(ctxc, model, cache) for _ in range(2)]


def start_table(ctxc, models):
    rows = ["| model | run | " + " | ".join(STAGES) + " | together |",
            "| --- | --- |" + " ---: |" * (len(STAGES) + 1)]
    for model in models:
        pairs = [pair(ctxc, model) for _ in range(PAIRS)]
        for which, run in enumerate(["first", "second"]):
            seconds = [statistics.median(p[which][i] for p in pairs) for i in range(len(STAGES))]
            together = statistics.median(sum(p[which]) for p in pairs)
            cells = " | ".join(f"{s:.2f}" for s in seconds + [together])
            rows.append(f"| {Path(model).name} | {run} | {cells} |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    args = parser.parse_args()
    print(start_table(args.ctxc, args.models))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError) as error:
        sys.exit(f"start: {error}")
