#!/usr/bin/env python3
"""Measures how fast a prompt of a bfloat16 model is read with --round-prompts.

  build/judges/bin/python bench/rounded_prompts.py build GEMMA-BF16

In tile registers where the processor has AMX, in vectors (CTXC_AMX=off), without rounding, and by PyTorch in
bfloat16. A round measures all of them one after the other; a table has the medians over --rounds rounds, and the median
of the rounds' ratios to the first of ctxc's own. A second table has single products, beside oneDNN's, where ctxc-gemm is
built. With --page the tables go into the page's section.
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
TILES, VECTORS, EXACT, PYTORCH = "in tiles", "in vectors", "not rounded", "PyTorch, bf16"

HEADING = "## Rounded prompts"
TEXT = HEADING + """

Prefill of a prompt, tokens a second, of {model} in bfloat16: with `--round-prompts` in the tile registers of AMX, and in
vectors with avx512_bf16 (`CTXC_AMX=off`); without rounding; and PyTorch. Medians of {rounds} rounds, in each of which the programs
run one after the other; in brackets: the median of the rounds' ratios of the column's speed to the first column's.
{machine}

```sh
tools/setup.sh --bench && tools/build.sh ctxc-bench ctxc-gemm
build/judges/bin/python bench/rounded_prompts.py build {path} --page docs/measurements.md
```

{table}
"""
PRODUCTS = """
One matrix times the 512 vectors of a prompt, including the rounding, in GFLOP/s.

{table}
"""


def start(args, threads, prefill, started):
    args.prefill = prefill
    setup = programs.Setup(args.model.name, args.model, "bf16", threads, args)
    build = Path(args.build)
    if programs.has_tiles():
        started[TILES] = programs.Ours(build, setup, "--round-prompts")
    if programs.has_bfloat_pairs():
        started[VECTORS] = programs.Ours(build, setup, "--round-prompts", environment={"CTXC_AMX": "off"})
    started[EXACT] = programs.Ours(build, setup)
    started[PYTORCH] = programs.PyTorch(setup)


def milliseconds(program):
    time.sleep(SETTLED)
    found = program.measure("prefill")
    return found["prefill"] if isinstance(found, dict) else found


def rounds_of(args, threads, prefill):
    """{PROGRAM: milliseconds} of each round; what the first run of a program warms up is not counted."""
    started = {}
    try:
        start(args, threads, prefill, started)
        for program in started.values():
            milliseconds(program)
        return [{name: milliseconds(program) for name, program in started.items()}
                for _ in range(args.rounds)]
    finally:
        for program in started.values():
            program.close()


def row(args, threads, prefill):
    rounds = rounds_of(args, threads, prefill)
    first = next(iter(rounds[0]))
    cells = [f"{prefill}", threads]
    for name in (TILES, VECTORS, EXACT, PYTORCH):
        if name not in rounds[0]:
            cells.append("–")
            continue
        speed = statistics.median(prefill / each[name] * 1e3 for each in rounds)
        ratio = statistics.median(each[first] / each[name] for each in rounds)
        cells.append(f"{speed:.0f}" if name == first else f"{speed:.0f} ({ratio:.2f})")
    return cells


def products(args):
    """The table of single products; empty where ctxc-gemm is not built."""
    program = Path(args.build) / "bin/ctxc-gemm"
    if not program.is_file():
        return ""
    libraries = {TILES: "ctxc-rounded", VECTORS: "ctxc-vectors-rounded", "oneDNN": "oneDNN-rounded"}
    if not programs.has_tiles():
        libraries = {VECTORS: "ctxc-rounded", "oneDNN": "oneDNN-rounded"}
    rows = []
    for threads in args.threads:
        speeds = {}
        for found in medians(json.loads(programs.output_of(
                [program, f"--threads={threads}", "--benchmark_filter=rounded", "--benchmark_min_time=0.1",
                 "--benchmark_repetitions=9", "--benchmark_enable_random_interleaving=true",
                 "--benchmark_format=json"]))):
            library, _, shape = found["run_name"].split("/")[:3]
            speeds.setdefault(shape, {})[library] = found["GFLOPS"]
        for shape, by in speeds.items():
            sizes = [int(size) for size in shape.split("x")]
            rows.append((sizes, threads, [number(by.get(library)) for library in libraries.values()]))
    rows = [[" × ".join(map(str, sizes)), threads, *cells] for sizes, threads, cells in sorted(rows)]
    return PRODUCTS.format(table=table(["W", "threads", *libraries], rows))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", help="the build folder")
    parser.add_argument("model", metavar="GEMMA-BF16", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prefill", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    args.context = args.tokens = 1
    lengths = args.prefill
    rows = [row(args, threads, prefill) for prefill in lengths for threads in args.threads]
    section = TEXT.format(
        model="Gemma 3 270M", path=args.model, rounds=args.rounds, machine=programs.machine(),
        table=table(["tokens", "threads", TILES, VECTORS, EXACT, PYTORCH], rows)) + products(args)
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    programs.run(main)
