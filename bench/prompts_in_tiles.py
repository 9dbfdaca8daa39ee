#!/usr/bin/env python3
"""Measures how fast a prompt is read with --split-prompts and --round-prompts.

  build/judges/bin/python bench/prompts_in_tiles.py build GEMMA GEMMA-BF16

Of a float32 and a bfloat16 model: exactly, in vectors; exactly, in the tile registers of AMX (--split-prompts); rounded, in
tile registers and in vectors (CTXC_AMX=off); and by PyTorch in the model's type. A round measures all of them one after
the other; a table has the medians over --rounds rounds, and the median of the rounds' ratios to PyTorch's speed. A second
table has single products, beside those of OpenBLAS and oneDNN, where ctxc-gemm is built. With --page the tables go into the page's
section.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "peers")]
import programs  # noqa: E402
from page import publish, table  # noqa: E402
from report import medians, number  # noqa: E402

SETTLED = 0.3  # seconds until the threads of the previous program have stopped spinning
EXACT, SPLIT, TILES, VECTORS, PYTORCH = ("exact", "split, in tiles", "rounded, in tiles", "rounded, in vectors", "PyTorch")

HEADING = "## Prompts in tile registers"
TEXT = HEADING + """

The tile registers of AMX multiply bfloat16 numbers, ten times as many in the same time as vectors multiply float32 numbers.
`--round-prompts` rounds a prompt's activations to bfloat16 for them, as other programs do. `--split-prompts` divides each activation
into three bfloat16 numbers that together are the float32 number, and a float32 weight into three, too; their products are exact,
and those of the smallest parts, together less than half a rounding of float32, are left out. So it is as exact as float32,
and only adds in another order: a sum of K products has an error of up to γ = n u / (1 − n u) times the sum of their
magnitudes, with u = 2⁻²⁴ and n = 3 K for weights in bfloat16, 6 K for float32 (n = K / 16 + 4 without the option). Patches and
generated tokens are computed without these options. Attention multiplies queries with keys, and powers with values, in the
same way.

Prefill of a prompt of Gemma 3 270M, tokens a second; *exact* and *rounded, in vectors* (`CTXC_AMX=off`) do without tile
registers; PyTorch computes in the model's type. Medians of {rounds} rounds, in each of which the programs run one after the
other; in brackets: the median of the rounds' ratios to PyTorch's speed, bold where `--round-prompts` is slower. {machine}

```sh
tools/setup.sh --bench && tools/build.sh ctxc-bench ctxc-gemm
build/judges/bin/python bench/prompts_in_tiles.py build {paths} --rounds {rounds} \\
    --page docs/measurements.md
```

{table}
"""
PRODUCTS = """
One matrix times the 512 vectors of a prompt, including the rounding or splitting, in GFLOP/s.

{table}
"""


def start(args, kind, threads, prefill, started):
    args.prefill = prefill
    model = args.models[kind]
    setup = programs.Setup(model.name, model, kind, threads, args)
    build = Path(args.build)
    started[EXACT] = programs.Ours(build, setup)
    if programs.has_tiles():
        started[SPLIT] = programs.Ours(build, setup, "--split-prompts")
    if kind == "bf16" and programs.has_tiles():
        started[TILES] = programs.Ours(build, setup, "--round-prompts")
    if kind == "bf16" and programs.has_bfloat_pairs():
        started[VECTORS] = programs.Ours(build, setup, "--round-prompts", environment={"CTXC_AMX": "off"})
    started[PYTORCH] = programs.PyTorch(setup)


def milliseconds(program):
    time.sleep(SETTLED)
    found = program.measure("prefill")
    return found["prefill"] if isinstance(found, dict) else found


def rounds_of(args, kind, threads, prefill):
    """{PROGRAM: milliseconds} of each round; what the first run of a program warms up is not counted."""
    started = {}
    try:
        start(args, kind, threads, prefill, started)
        for program in started.values():
            milliseconds(program)
        return [{name: milliseconds(program) for name, program in started.items()}
                for _ in range(args.rounds)]
    finally:
        for program in started.values():
            program.close()


def row(args, kind, threads, prefill):
    rounds = rounds_of(args, kind, threads, prefill)
    cells = [kind, f"{prefill}", threads]
    for name in (EXACT, SPLIT, TILES, VECTORS, PYTORCH):
        if name not in rounds[0]:
            cells.append("–")
            continue
        speed = statistics.median(prefill / each[name] * 1e3 for each in rounds)
        ratio = statistics.median(each[PYTORCH] / each[name] for each in rounds)
        shown = f"**{ratio:.2f}**" if name == TILES and ratio < 1 else f"{ratio:.2f}"
        cells.append(f"{speed:.0f}" if name == PYTORCH else f"{speed:.0f} ({shown})")
    return cells


def products(args):
    """The table of single products; empty where ctxc-gemm is not built."""
    program = Path(args.build) / "bin/ctxc-gemm"
    if not program.is_file():
        return ""
    columns = {"f32, exact": "ctxc/f32", "split": "ctxc-split/f32", "OpenBLAS": "OpenBLAS/f32", "oneDNN": "oneDNN/f32",
               "bf16, exact": "ctxc/bf16", "bf16, split": "ctxc-split/bf16", "rounded": "ctxc-rounded/bf16",
               "oneDNN, rounded": "oneDNN-rounded/bf16"}
    rows = []
    for threads in args.threads:
        speeds = {}
        for found in medians(json.loads(programs.output_of(
                [program, f"--threads={threads}", "--benchmark_min_time=0.1",
                 "--benchmark_repetitions=9", "--benchmark_enable_random_interleaving=true",
                 "--benchmark_format=json"]))):
            library, kind, shape = found["run_name"].split("/")[:3]
            speeds.setdefault(shape, {})[f"{library}/{kind}"] = found["GFLOPS"]
        for shape, by in speeds.items():
            sizes = [int(size) for size in shape.split("x")]
            rows.append((sizes, threads, [number(by.get(library)) for library in columns.values()]))
    rows = [[" × ".join(map(str, sizes)), threads, *cells] for sizes, threads, cells in sorted(rows)]
    return PRODUCTS.format(table=table(["W", "threads", *columns], rows))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", help="the build folder")
    parser.add_argument("f32", metavar="GEMMA", type=Path)
    parser.add_argument("bf16", metavar="GEMMA-BF16", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prefill", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    args.context = args.tokens = 1
    args.models = {"f32": args.f32, "bf16": args.bf16}
    lengths = args.prefill
    rows = [row(args, kind, threads, prefill)
            for kind in args.models for prefill in lengths for threads in args.threads]
    section = TEXT.format(
        paths=f"{args.f32} {args.bf16}", rounds=args.rounds, machine=programs.machine(),
        table=table(["weights", "tokens", "threads", EXACT, SPLIT, TILES, VECTORS, PYTORCH], rows)) + products(args)
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    programs.run(main)
