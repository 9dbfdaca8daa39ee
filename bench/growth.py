#!/usr/bin/env python3
"""Measures how the cost of ctxc grows: with context, bits per weight, patched positions, layers, experts and sizes.

  tools/build.sh ctxc ctxc-bench
  build/judges/bin/python bench/growth.py build MODEL

MODEL is a Hugging Face directory, such as build/models/gemma-3-270m; all other models have random weights and are made
on the spot, in --work. Each measured point is a file there, so that a run that was interrupted continues; points of
another processor are measured again. The studies, which --only chooses from:

  context     512 to 32,768 tokens before the decoded one: its time, and the memory of the process
  bits        the types of GGUF files, 4.25 to 32 bits per weight, in exact arithmetic and with --integer-products
  positions   the patches of 1 to 8,192 positions: seconds, and bytes of the file
  layers      2 to 64 layers
  experts     4 to 128 experts, of which 2 see a token
  hidden      1 M to 1 B parameters
  odd         a model whose widths are multiples of the vector width, and one with the next odd widths
  compile     seconds of compiling 2 to 64 layers, with an empty cache

--page writes the section, --plot the pictures into a folder, from all points that there are; with --report nothing is
measured. A machine that does other work is to be named with --note.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent / name) for name in ("", "peers")]
from growing import pages  # noqa: E402
from growing.records import Records  # noqa: E402
from growing.studies import FULL, SMALL, Studies  # noqa: E402
from page import publish  # noqa: E402
from programs import Failed, processor, run  # noqa: E402

STUDIES = ["context", "bits", "positions", "layers", "experts", "hidden", "odd", "compile"]


def measure(points, records, only):
    for point in points:
        if point.study in only and not records.read(point.key):
            begin = time.monotonic()
            records.write(point.key, point.about, point.measure())
            print(f"{point.key}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def measured(points, records):
    """{STUDY: [record]} of all points that there are."""
    found = {study: [] for study in STUDIES}
    for point in points:
        record = records.read(point.key, anywhere=True)
        if record:
            found[point.study].append(record)
    return found


def studies(text):
    names = text.split(",")
    for name in names:
        if name not in STUDIES:
            raise argparse.ArgumentTypeError(f"found '{name}', expected some of {','.join(STUDIES)}")
    return names


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path)
    parser.add_argument("model", metavar="MODEL", type=Path)
    parser.add_argument("--only", metavar="STUDY,…", type=studies, default=STUDIES)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=5, help="decoded in a round")
    parser.add_argument("--work", type=Path, default=Path("build/growth"), metavar="FOLDER")
    parser.add_argument("--small", action="store_true", help="two small points of each study, to try the script")
    parser.add_argument("--note", default="", help="what else the machine did")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="docs/measurements.md")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="docs/growth")
    args = parser.parse_args()
    if not (args.model / "config.json").is_file():
        raise Failed(f"{args.model}: has no config.json; expected a Hugging Face directory")
    args.work.mkdir(parents=True, exist_ok=True)
    points = list(Studies(args, SMALL if args.small else FULL).points())
    records = Records(args.work / ("small-records" if args.small else "records"),
                      {"processor": processor(), "threads": args.threads, "note": args.note})
    if not args.report:
        measure(points, records, args.only)
    found = measured(points, records)
    publish(pages.section(found, args.model.name), pages.HEADING, args.page)
    if args.plot:
        from growing import plots  # needs matplotlib
        plots.save(found, args.plot)


if __name__ == "__main__":
    run(main)
