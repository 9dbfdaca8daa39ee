#!/usr/bin/env python3
"""Draws what `ctxc experiment` wrote: plots and a page.

  plot_experiment.py [--force] DIR...

DIR has the records.jsonl of one experiment. It gets an SVG and a PNG for each figure, and index.html,
which has all of them, the settings, the machine, the command and tables, and needs no network. All
numbers come from the records. Needs matplotlib. The figures of an experiment NAME are in
plots/NAME.py (a dash is an underscore there); plots/__init__.py says what such a module has.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", metavar="DIR")
    parser.add_argument("--force", action="store_true",
                        help="replace files that ctxc did not write, too")
    args = parser.parse_args()
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("plot_experiment: needs matplotlib, which tools/setup.sh --judges installs in "
              "build/judges", file=sys.stderr)
        return 2
    from plots import page
    from plots.data import BadInput
    try:
        for directory in args.directories:
            print(page.write(Path(directory), args.force))
    except (BadInput, OSError) as error:
        print(f"plot_experiment: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
