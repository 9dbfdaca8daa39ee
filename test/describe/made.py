#!/usr/bin/env python3
"""Makes descriptions anew, and compares them with those that are there.

  made.py CTXC FAMILIES TYPE..."""
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "describe"))
import describe  # noqa: E402


def main():
    ctxc, families, types = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    bad = 0
    for name in types:
        with tempfile.TemporaryDirectory() as work:
            found = describe.Describer(ctxc, name, Path(work)).describe()
        expected = json.loads((families / f"{name}.json").read_text())
        for key in sorted(found.keys() | expected.keys()):
            if found.get(key) != expected.get(key):
                bad += 1
                print(f"{name}: {key} is {found.get(key)}; expected {expected.get(key)}")
    print("made anew:", ", ".join(types))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
