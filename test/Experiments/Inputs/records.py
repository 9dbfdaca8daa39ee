#!/usr/bin/env python3
"""Checks conditions on an experiment's records.

  records.py DIR EXPRESSION...    each must hold; `all(e for r in records)` may be written `each: e`

An expression can use head (the first line), records (those with a key), patched and control (the records of
these runs), and select(name=value, ...), the records that have these values. In `each: e`, the names are a
record's members; e must hold for every record whose `run` is not control.
"""

import json
import math
import sys
from pathlib import Path


def main():
    directory, *expressions = sys.argv[1:]
    lines = Path(directory, "records.jsonl").read_text().splitlines()
    head, *rest = [json.loads(line) for line in lines]
    records = [r for r in rest if "key" in r]

    def select(**values):
        return [r for r in records if all(r.get(k) == v for k, v in values.items())]

    names = dict(head=head, records=records, select=select, control=select(run="control"),
                 patched=select(run="patched"), math=math, len=len)
    good = len({r["key"] for r in records}) == len(records)
    if not good:
        print("a key occurs twice")
    for text in expressions:
        if text.startswith("each:"):
            false = [r for r in records if r.get("run") != "control"
                     and not eval(text[5:].strip(), names | r)]
            if false or not records:
                good = False
                print(f"{text}: not for {len(false)} of {len(records)}, such as {false[:1]}")
        elif not eval(text, names):
            good = False
            print(f"not so: {text}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
