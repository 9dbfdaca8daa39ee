#!/usr/bin/env python3
"""Measures a model whose matrices are stored as (in, out) beside the same model with (out, in).

  tools/build.sh ctxc-bench
  bench/orientation.py build/bin

The model is a GPT-2 with random weights, generated here. Its checkpoints store (in, out); the copy differs
only in the order of the stored dimensions. Both are timed in turn, round by round. Prints a table, and with
--page writes it into the page's section. With --against OLD/BIN a row for another build of ctxc follows each.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from page import table, write_section

COLUMNS = {"plain_ms": "a token, ms", "patches_ms": "patches of all layers, ms",
           "patch_ms": "Algorithm 1 whole, ms", "prefill_ms": "prompt, ms",
           "positions_ms": "patches of its positions, ms"}


def output_of(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def processor():
    """This processor's name, and the widest arithmetic that it has."""
    text = Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)", text, re.M)
    widest = [what for flag, what in (("amx_bf16", "AMX"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))
              if re.search(rf"\b{flag}\b", text)]
    return " with ".join([name[1] if name else "a processor without a name", *widest[:1]])


def make_model(build, folder, width, layers, dtype):
    """GPT-2's text with matrices as (in, out)."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": width, "n_layer": layers,
        "n_head": width // 64, "n_positions": 1024, "vocab_size": 8192, "n_inner": None,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}))
    return output_of([build / "ctxc", "compile", folder, "--dtype", dtype, "--emit=xf", "-o", "-"])


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


def measure(build, model, args):
    found = json.loads(output_of(
        [build / "ctxc-bench", model, "--weights", "random:1", "--threads", args.threads, "--rounds", 1,
         "--prefill", args.prefill, "--json", "-"]))
    return found["medians"]


HEADING = "## Orientation"
TEXT = HEADING + """

A GPT-2 of width {width} and {layers} layers with random weights, on {processor}, {threads} threads, a prompt of
{prefill}: its matrices stored as (in, out), as its checkpoints have them, and the same model with (out, in). Both in
turn, {rounds} times; the table has the medians of the times, and of the quotients of neighbouring runs.

```sh
tools/build.sh ctxc-bench && bench/orientation.py build/bin --page docs/measurements.md
```

{table}
"""


def rows_of(build, name, args, folder, dtype):
    """Times of both orientations, and their ratio."""
    paths = {"(in, out)": folder / "given.mlir", "(out, in)": folder / "turned.mlir"}
    text = make_model(build, folder / "model", args.width, args.layers, dtype)
    paths["(in, out)"].write_text(text)
    paths["(out, in)"].write_text(turned(text))
    found = {orientation: [] for orientation in paths}
    for _ in range(args.rounds):
        for orientation, path in paths.items():
            found[orientation].append(measure(build, path, args))

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
    parser.add_argument("build", metavar="BUILD/BIN", type=Path)
    parser.add_argument("--against", metavar="OLD/BIN", type=Path)
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
    print(section)
    if args.page:
        write_section(args.page, HEADING, section)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError) as error:
        sys.exit(f"orientation: {error}")
