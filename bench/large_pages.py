#!/usr/bin/env python3
"""Measures what --large-pages gives, and what it costs.

  tools/build.sh ctxc-bench
  build/judges/bin/python bench/large_pages.py build MODEL…

Two processes decode in turn, one with weights in the file's pages, one with a copy in large ones, --rounds times; the
medians are printed, of quotients too. `start` is the time of a whole run of one token that the copy adds. With --page the
table goes into the page's section.
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
from programs import Ours, Setup, output_of, processor, run  # noqa: E402

SETTLED = 0.3  # seconds until the threads of the previous program have stopped spinning
OPTION = "--large-pages"


def seconds_of_start(args, model, *options):
    begin = time.monotonic()
    output_of([args.build / "bin/ctxc", "patch", model, "--tokens", "2,3", "-o", os.devnull, *options])
    return time.monotonic() - begin


def row(args, model, threads):
    setup = Setup(model.stem, model, "", threads, SimpleNamespace(context=64, tokens=args.tokens, prefill=args.prefill))
    found = {}
    small, large = Ours(args.build, setup), Ours(args.build, setup, OPTION)
    try:
        for _ in range(args.rounds):
            for name in ("plain", "patch", "prefill"):
                for key, program in (("small", small), ("large", large)):
                    time.sleep(SETTLED)
                    found.setdefault((name, key), []).append(program.measure(name)[name])
    finally:
        small.close()
        large.close()
    added = [seconds_of_start(args, model, OPTION) - seconds_of_start(args, model) for _ in range(args.rounds)]

    def faster(name):
        return statistics.median(a / b for a, b in zip(found[name, "small"], found[name, "large"]))

    def median(name, key):
        return statistics.median(found[name, key])

    cells = [model.name, threads, f"{median('plain', 'small'):.1f}", f"{median('plain', 'large'):.1f}",
             f"{faster('plain'):.2f} ×", f"{faster('patch'):.2f} ×", f"{faster('prefill'):.2f} ×",
             f"{statistics.median(added):.2f}"]
    print(" | ".join(map(str, cells)), file=sys.stderr, flush=True)
    return cells


HEADING = "## Large pages"
TEXT = HEADING + """

Weights are read from the file's own pages. The file system chooses their size, and some machines read pages of 4 KB more
slowly than large ones. `--large-pages` (`large_pages=True` in Python) copies each matrix into pages of 2 MB when it is
first used, and releases the file's pages: the weights then occupy memory of their own, and the start takes longer by the
time of the copy. Results do not change. If there is not enough memory for the copy, the option is refused. It is off by
default, because whether it helps depends on the machine: measure it. {rounds} rounds, each program in turn
({processor}{note}); *faster*, *Algorithm 1* and *prompt* are the quotients of the times of a token, of the whole of
Algorithm 1, and of a prompt of {prefill} tokens.

```sh
tools/build.sh ctxc ctxc-bench
build/judges/bin/python bench/large_pages.py build {models} --rounds {rounds} --prefill {prefill} --page docs/measurements.md
```

{table}
"""
HEAD = ["model", "threads", "a token, ms", "large pages", "faster", "Algorithm 1", "prompt", "copy, s"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path)
    parser.add_argument("models", metavar="MODEL", type=Path, nargs="+")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, os.cpu_count()}))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=10)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--note", default="", help="what else the machine did")
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    rows = [row(args, model, threads) for model in args.models for threads in args.threads]
    section = TEXT.format(rounds=args.rounds, processor=processor(), note=f"; {args.note}" if args.note else "",
                          prefill=args.prefill, models=" ".join(map(str, args.models)), table=table(HEAD, rows))
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    run(main)
