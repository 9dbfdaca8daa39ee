#!/usr/bin/env python3
"""Measures ranks of one thread each beside one process that has as many threads.

  tools/build.sh ctxc ctxc-mpich
  bench/rank_speed.py build/bin/ctxc MODEL [--shard tensor=2] [--shard pipeline=2]

Each round runs `ctxc verify` in one process and then with each of --shard; the speeds are those that it reports:
tokens of the prompt, patches (Algorithm 1 whole) and patched tokens a second. Printed are the medians, and of each
quotient of neighbours the median.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from page import table

SPEEDS = {"prefill": "prompt", "patch": "patches", "verify": "patched tokens"}


def measure(args, ranks, *shard):
    """What `ctxc verify` reports in tokens a second."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        threads = max(1, args.threads // ranks)
        start = [shutil.which("mpirun.mpich") or "mpirun", "-bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        done = subprocess.run(
            [*start, str(args.ctxc), "verify", str(args.model), "--tokens", ",".join(map(str, tokens_of(args))),
             "--generate", str(args.generate), "--threads", str(threads), "--json", str(report), *shard],
            capture_output=True, text=True, env=os.environ | {"OMP_WAIT_POLICY": "passive"} if ranks > 1 else None)
        if done.returncode:
            raise RuntimeError(f"{' '.join(shard) or 'one process'}: exit code {done.returncode}: {done.stderr[-500:]}")
        return json.loads(report.read_text())["tokensPerSecond"]


def tokens_of(args):
    return [2] + [100 + 37 * i % 1500 for i in range(args.prompt - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ctxc", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--shard", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2, help="of the one process; the ranks share them")
    parser.add_argument("--prompt", type=int, default=256, help="tokens")
    parser.add_argument("--generate", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    shards = args.shard or ["tensor=2", "pipeline=2"]
    rows, rounds = [], []
    for _ in range(args.rounds):
        one = measure(args, 1)
        of = [measure(args, math.prod(int(part.split("=")[1]) for part in shard.split(",")), "--shard", shard)
              for shard in shards]
        rounds.append((one, of))
        print(one, *of, sep="\n", file=sys.stderr)
    median = lambda take: statistics.median(take(one, of) for one, of in rounds)
    rows.append([f"one process, {args.threads} threads"] +
                [cell for key in SPEEDS for cell in (f"{median(lambda one, of: one[key]):.1f}", "")])
    for i, shard in enumerate(shards):
        rows.append([f"`{shard}`"] + [cell for key in SPEEDS for cell in (
            f"{median(lambda one, of: of[i][key]):.1f}", f"{median(lambda one, of: of[i][key] / one[key]):.2f} ×")])
    head = ["run by"] + [cell for text in SPEEDS.values() for cell in (text, "")]
    print(table(head, rows))


if __name__ == "__main__":
    main()
