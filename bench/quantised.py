#!/usr/bin/env python3
"""Measures quantised files beside llama.cpp, in float32 arithmetic and with --integer-products.

  tools/build.sh ctxc-bench
  bench/peers/build_llama_cpp.sh build/llama.cpp
  build/judges/bin/python bench/peers/random_gguf.py build/peers
  build/judges/bin/python bench/quantised.py build FILE.gguf[:TYPE,...]...

A FILE.gguf is measured as it is, or as llama-quantize writes it in each TYPE (in --work), of which `-` is as it is.
ctxc and llama.cpp read the same file, one after the other, --rounds times; of the ratios of neighbours the median is
printed. With --page the table goes into the page's section. A machine that does other work is to be named with --note.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from page import publish, table  # noqa: E402
from programs import LlamaCpp, Ours, Setup, drop_from_page_cache, has_tiles, machine, output_of, run  # noqa: E402

SETTLED = 0.3  # seconds until the threads of the previous program have stopped spinning


class LlamaCppOfFile(LlamaCpp):
    def gguf(self, work):
        return self.setup.directory


def files(args):
    """(NAME, TYPE, FILE) of each file to measure."""
    args.work.mkdir(parents=True, exist_ok=True)
    for given in args.files:
        file, _, types = given.partition(":")
        file = Path(file)
        for kind in types.split(",") if types else ["-"]:
            if kind == "-":
                yield file.stem, "as it is", file
                continue
            path = args.work / f"{file.stem}-{kind}.gguf"
            if not path.is_file():
                unfinished = path.with_suffix(".part")
                output_of([args.llama / "bin/llama-quantize", "--allow-requantize", file, unfinished, kind])
                unfinished.rename(path)
            yield file.stem, kind, path


def side_by_side(args, llama, setup, options, measured=("plain", "token", "prefill")):
    """Medians of ctxc's milliseconds, and of llama.cpp's divided by them, with these options; and of the whole of
    Algorithm 1 in units of a token, each with a token in turn."""
    found = {}
    ours = Ours(args.build, setup, *options)
    try:
        for _ in range(args.rounds):
            for name in measured:
                time.sleep(SETTLED)
                mine = ours.measure(name)
                if name == "token":
                    found.setdefault("whole", []).append(mine["patch"] / mine["plain"])
                    continue
                time.sleep(SETTLED)
                theirs = llama.measure(name)
                found.setdefault(name, []).append(mine[name])
                found.setdefault("llama " + name, []).append(theirs)
                found.setdefault("ratio " + name, []).append(theirs / mine[name])
    finally:
        ours.close()
    return {name: statistics.median(values) for name, values in found.items()}


def judged(quotient, is_good):
    return f"{quotient:.2f} ×" if is_good else f"**{quotient:.2f}** ×"


def faster(found, what, goal):
    return judged(found["ratio " + what], found["ratio " + what] >= goal)


def whole(found):
    return judged(found["whole"], found["whole"] <= 1.3)


def row(args, name, kind, path, threads):
    drop_from_page_cache([path])
    setup = Setup(path.stem, path, kind, threads,
                  SimpleNamespace(context=64, tokens=args.tokens, prefill=args.prefill))
    llama = LlamaCppOfFile(args.llama, args.work, setup)
    exact = side_by_side(args, llama, setup, [])
    cells = [name, kind, f"{path.stat().st_size / 1e6:.0f}", threads, f"{exact['llama plain']:.1f}",
             f"{exact['plain']:.1f}", faster(exact, "plain", 0.8)]
    integer = None
    if kind not in ("F16", "BF16", "F32"):
        time.sleep(args.pause)
        integer = side_by_side(args, llama, setup, ["--integer-products"])
    split = side_by_side(args, llama, setup, ["--split-prompts"], ["prefill"]) if has_tiles() else None
    cells += [f"{integer['plain']:.1f}", faster(integer, "plain", 1)] if integer else ["–", "–"]
    cells += [whole(exact), whole(integer) if integer else "–",
              f"{exact['llama prefill']:.0f}", f"{exact['ratio prefill']:.2f} ×" if split else faster(exact, "prefill", 0.7),
              faster(split, "prefill", 0.7) if split else "–", faster(integer, "prefill", 1) if integer else "–"]
    print(" | ".join(map(str, cells)), file=sys.stderr, flush=True)
    time.sleep(args.pause)
    return cells


HEADING = "## Quantised files"
TEXT = HEADING + """

{rounds} rounds of ctxc and llama.cpp, one after the other; times and ratios are medians{note}. `gemma-3-270m` is quantised as
its authors did (*as it is*), `llama-like` (250 million parameters) and `gpt-oss-like` (mixtures of experts in MXFP4) have random
weights; the other types are those of llama-quantize. *Faster* is llama.cpp's time divided by ctxc's, in float32 arithmetic
(goal: ≥ 0.8, for a prompt ≥ 0.7), for a prompt also with `--split-prompts` (*split*: as exact, in the tile registers of AMX where
there are some), and with `--integer-products` (goals: ≥ 1). *Whole* is the whole of Algorithm 1, in units of a token
(≤ 1.3). The prompt has {prefill} tokens. Figures that miss their goals are bold. {machine}

```sh
tools/build.sh ctxc-bench && bench/peers/build_llama_cpp.sh build/llama.cpp
build/judges/bin/python bench/peers/random_gguf.py build/peers
build/judges/bin/python bench/quantised.py build {files} \\
    --rounds {rounds} --tokens {tokens} --page docs/measurements.md
```

{table}

llama.cpp multiplies prompts in the tile registers of AMX where the processor has them. Tokens of a prompt choose
different experts of `gpt-oss-like`; of `gpt-oss-same`, which differs by its routers alone, all choose the same.
"""
HEAD = ["model", "type", "MB", "threads", "llama.cpp, ms a token", "ctxc", "faster", "integers", "faster", "whole", "integers",
        "llama.cpp, ms a prompt", "faster", "split", "integers"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path)
    parser.add_argument("files", metavar="FILE.gguf[:TYPE,...]", nargs="+")
    parser.add_argument("--llama", type=Path, default=Path("build/llama.cpp"))
    parser.add_argument("--work", type=Path, default=Path("build/peers"))
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, os.cpu_count()}))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=10)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--pause", type=float, default=0, help="seconds between setups")
    parser.add_argument("--note", default="", help="what else the machine did")
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    rows = [row(args, name, kind, path, threads)
            for name, kind, path in files(args) for threads in args.threads]
    section = TEXT.format(files=" ".join(args.files), tokens=args.tokens, rounds=args.rounds, note=f" ({args.note})" if args.note else "", prefill=args.prefill,
                          machine=machine(), table=table(HEAD, rows))
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    run(main)
