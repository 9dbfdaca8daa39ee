#!/usr/bin/env python3
"""Measures a model whose matrices are stored as (in, out) beside the same model with (out, in).

  tools/build.sh ctxc-bench
  bench/orientation.py build

The model is a GPT-2 with random weights, generated here. Its checkpoints store (in, out); the copy differs
only in the order of the stored dimensions. Both are timed in turn, round by round. Prints a table, and with
--page writes it into the page's section. With --against OLD a row for another build of ctxc follows each.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from page import publish, table  # noqa: E402
from programs import Ours, output_of, processor, run  # noqa: E402

MEASURED = ["decode", "prefill", "positions"]  # as ctxc-bench is asked
COLUMNS = {"plain": "a token, ms", "patches": "patches of all layers, ms",
           "patch": "Algorithm 1 whole, ms", "prefill": "prompt, ms",
           "positions": "patches of its positions, ms"}


def make_model(build, folder, width, layers, dtype):
    """GPT-2's text with matrices as (in, out)."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": width, "n_layer": layers,
        "n_head": width // 64, "n_positions": 1024, "vocab_size": 8192, "n_inner": None,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}))
    return output_of([build / "bin/ctxc", "compile", folder, "--dtype", dtype, "--emit=xf", "-o", "-"])


def turned(text):
    """The same model with matrices as (out, in)."""
    weights = dict(re.findall(r"xf\.linear (%\w+) \* %\w+ transposed : (tensor<\w+>)", text))

    def other(stored):
        return re.sub(r"<(\d+)x(\d+)x", r"<\2x\1x", stored)
    lines = []
    for line in text.splitlines(keepends=True):
        param = re.match(r" *(%\w+) = xf\.param ", line)
        if param and param[1] in weights:
            line = line.replace(weights[param[1]], other(weights[param[1]]))
        linear = re.search(r"xf\.linear (%\w+) \* %\w+ transposed", line)
        if linear:
            line = line.replace(" transposed", "").replace(weights[linear[1]], other(weights[linear[1]]), 1)
        lines.append(line)
    return "".join(lines)


def start(build, model, args):
    return Ours(build, SimpleNamespace(directory=model, threads=args.threads, tokens=16, context=64,
                                       prefill=args.prefill), "--weights", "random:1")


def measure(program):
    return {column: value for name in MEASURED for column, value in program.measure(name).items()}


HEADING = "## Orientation"
TEXT = HEADING + """

A GPT-2 of width {width} and {layers} layers with random weights, on {processor}, {threads} threads, a prompt of
{prefill}: its matrices stored as (in, out), as its checkpoints have them, and the same model with (out, in). Both in
turn, {rounds} times; the table has the medians of the times, and of the quotients of neighbouring runs.

```sh
tools/build.sh ctxc-bench && bench/orientation.py build --page docs/measurements.md
```

{table}
"""


def rows_of(build, name, args, folder, dtype):
    """Times of both orientations, and their ratio."""
    paths = {"(in, out)": folder / "given.mlir", "(out, in)": folder / "turned.mlir"}
    text = make_model(build, folder / "model", args.width, args.layers, dtype)
    paths["(in, out)"].write_text(text)
    paths["(out, in)"].write_text(turned(text))
    programs = {orientation: start(build, path, args) for orientation, path in paths.items()}
    found = {orientation: [] for orientation in paths}
    for turn in range(args.rounds + 1):  # the first warms up
        for orientation, program in list(programs.items())[::1 if turn % 2 else -1]:
            time.sleep(0.3)  # until the other program's threads have stopped spinning
            measured = measure(program)
            if turn:
                found[orientation].append(measured)
    for program in programs.values():
        program.close()

    def medians(values):
        return [statistics.median(each[column] for each in values) for column in COLUMNS]
    rows = [[name + orientation] + [f"{number:.1f}" for number in medians(values)]
            for orientation, values in found.items()]
    quotients = [{column: a[column] / b[column] for column in COLUMNS}
                 for a, b in zip(*found.values())]
    return rows + [[name + "quotient"] + [f"{number:.2f}" for number in medians(quotients)]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path)
    parser.add_argument("--against", metavar="OLD", type=Path)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prefill", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtype", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="docs/measurements.md")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype in args.dtype:
            rows += rows_of(args.build, f"{dtype} ", args, Path(folder), dtype)
            if args.against:
                rows += rows_of(args.against, f"before, {dtype} ", args, Path(folder), dtype)
    section = TEXT.format(table=table(["stored as"] + list(COLUMNS.values()), rows), processor=processor(),
                          **vars(args))
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    run(main)
