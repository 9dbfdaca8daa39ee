#!/usr/bin/env python3
"""Measures how long `ctxc verify` takes before it computes (import, plans and kernels), and how much
memory it takes beside the weights.

  bench/start.py build/bin/ctxc MODEL...

Prints a table: each model's first run with an empty cache, and the run after it, in seconds as ctxc
reports them, and the largest resident set less the weights' files, all of which are read (medians
of five such pairs). A prompt is text where there is a tokenizer.
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
    """The seconds of each stage of one run, and the bytes of its resident set without the weights."""
    folder = Path(model)
    text = any((folder / name).exists() for name in ("tokenizer.model", "tokenizer.json"))
    prompt = ["--prompt", "The sky is blue, and the grass is"] if text else ["--tokens", "2,5,7,3"]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([ctxc, "verify", model, *prompt], stdout=out, stderr=err,
                                   env=os.environ | {"XDG_CACHE_HOME": cache})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        found = {name: float(seconds)
                 for name, seconds in re.findall(r"(\w+) ([\d.]+) s\b", out.read())}
        if process.returncode or not set(STAGES) <= set(found):
            raise RuntimeError(f"{model}: exit code {process.returncode}: {err.read()}")
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    return [found[name] for name in STAGES] + [usage.ru_maxrss * 1024 - weights]


def pair(ctxc, model):
    with tempfile.TemporaryDirectory() as cache:
        return [stages(ctxc, model, cache) for _ in range(2)]


def start_table(ctxc, models):
    rows = ["| model | run | " + " | ".join(STAGES) + " | together | memory |",
            "| --- | --- |" + " ---: |" * (len(STAGES) + 2)]
    for model in models:
        pairs = [pair(ctxc, model) for _ in range(PAIRS)]
        for which, run in enumerate(["first", "second"]):
            seconds = [statistics.median(p[which][i] for p in pairs) for i in range(len(STAGES))]
            together = statistics.median(sum(p[which][:-1]) for p in pairs)
            memory = statistics.median(p[which][-1] for p in pairs)
            cells = " | ".join(f"{s:.2f}" for s in seconds + [together])
            rows.append(f"| {Path(model).name} | {run} | {cells} | {memory / 1e6:.0f} MB |")
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
