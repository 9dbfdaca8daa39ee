#!/usr/bin/env python3
"""Measures the memory of each rank of a model that several share, beside that of one process.

  tools/build.sh ctxc ctxc-mpich
  bench/rank_memory.py build/bin/ctxc MODEL [--shard tensor=2] [--shard tensor=4]

Reads /proc of each process twenty times a second while `ctxc verify` runs: the most that was resident (VmHWM), and
the most of its share of what several processes have mapped (Pss). Of both, what a process takes for itself
(the program, MLIR's libraries) is measured on the smallest of the golden models. A rank should have a
part of the rest: no more than 10 % above it.
"""

import argparse
import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def field(path, name):
    found = re.search(rf"^{name}:\s+(\d+) kB", path.read_text(), re.M)
    return int(found.group(1)) * 1024 if found else 0


def processes(program):
    """The ids of all processes of a program."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if os.readlink(folder / "exe") == program:
                    found.append(folder)
            except OSError:
                pass
    return found


def measure(ctxc, words, ranks):
    """For each process the most that was resident, and the largest Pss."""
    start = [shutil.which("mpirun.mpich") or "mpirun", "-bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    running = subprocess.Popen([*start, ctxc, *map(str, words)], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True,
                               env=os.environ | {"OMP_WAIT_POLICY": "passive"})
    most = {}
    while running.poll() is None:
        for folder in processes(ctxc):
            try:
                seen = (field(folder / "status", "VmHWM"), field(folder / "smaps_rollup", "Pss"))
            except OSError:
                continue
            most[folder.name] = [max(pair) for pair in zip(most.get(folder.name, (0, 0)), seen)]
        time.sleep(0.05)
    said = running.stdout.read()
    if running.returncode not in (0, 1) or len(most) != ranks:
        raise RuntimeError(f"{ranks} ranks: exit code {running.returncode}\n{said}")
    return list(most.values())


def megabytes(number):
    return f"{number / 1e6:.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ctxc", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--shard", action="append", default=[])
    parser.add_argument("--tokens", default="2,105,2364,107,9259,236764")
    parser.add_argument("--option", action="append", default=[], help="another word of the command")
    options = parser.parse_args()
    ctxc = str(options.ctxc.resolve())
    # Without its tokenizer, which rank 0 alone reads.
    folder = tempfile.TemporaryDirectory()
    for file in options.model.resolve().iterdir():
        if file.name == "config.json" or "safetensors" in file.name:
            (Path(folder.name) / file.name).symlink_to(file)
    words = ["verify", folder.name, "--tokens", options.tokens, "--generate", "4", *options.option]
    own = measure(ctxc, ["verify", ROOT / "test" / "goldens" / "llama", "--tokens", "5,17,3,60"], 1)[0]
    whole = measure(ctxc, words, 1)[0]
    print("ranks                  VmHWM   Pss   of the model  allowed, MB")
    print(f"a process by itself    {megabytes(own[0]):>5} {megabytes(own[1]):>5}")
    print(f"the model in one       {megabytes(whole[0]):>5} {megabytes(whole[1]):>5} "
          f"{megabytes(whole[0] - own[0]):>7} {megabytes(whole[1] - own[1]):>6}")
    for shard in options.shard or ["tensor=2"]:
        count = math.prod(int(part.split("=")[1]) for part in shard.split(","))
        for rank in measure(ctxc, [*words, "--shard", shard], count):
            rest = [a - b for a, b in zip(rank, own)]
            allowed = [1.1 * (a - b) / count for a, b in zip(whole, own)]
            print(f"{shard:22} {megabytes(rank[0]):>5} {megabytes(rank[1]):>5} {megabytes(rest[0]):>7} "
                  f"{megabytes(rest[1]):>6} {megabytes(allowed[0]):>7} {megabytes(allowed[1]):>6}")


main()
