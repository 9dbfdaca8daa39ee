"""Blocks of which it is known what is true: no verdict may say the opposite.

    judge.py KIND…          the kinds are the files beside this one that have a function `cases`

A case is a name, a text, and for each layer (or block) the verdicts that may be given of it.
"""
import importlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truths import Bound  # noqa: E402


def verdicts_of(folder, name, text):
    """The verdict on each layer, and whether each success rests on a condition that the data decide."""
    path = os.path.join(folder, name.replace(" ", "_") + ".mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(["ctxc", "check", path, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return None, f"exit code {done.returncode}: {done.stderr}\n{text}"
    verdicts, bounds = {}, {}
    for i, group in enumerate(json.loads(done.stdout)["groups"]):
        conditional = any("open set" in row["holds"] or "not everywhere" in row["holds"] for row in group["obligations"])
        for layer in group.get("layers", [i]):
            verdicts[layer] = "conditional" if conditional else group["verdict"]
            bounds[layer] = group["bound"]
    return [(verdicts[layer], bounds[layer]) for layer in sorted(verdicts)], ""


def may(found, allowed):
    return (found if isinstance(allowed, Bound) else found[0]) in allowed


def judge(folder, kind):
    bad = count = decided = 0
    for name, text, allowed in importlib.import_module(kind).cases():
        found, why = verdicts_of(folder, f"{kind} {name}", text)
        count += 1
        if found is None:
            print(f"{kind}, {name}: {why}")
            bad += 1
            continue
        decided += sum(verdict != "undecided" for verdict, bound in found)
        if len(found) != len(allowed) or not all(may(f, a) for f, a in zip(found, allowed)):
            print(f"{kind}, {name}: found {found}, expected {allowed}\n{text}")
            bad += 1
    print(f"{kind}: {count} cases, {decided} verdicts decided, {bad} wrong")
    return bad or not count


def main(kinds):
    with tempfile.TemporaryDirectory() as folder:
        return 1 if sum(judge(folder, kind) for kind in kinds) or not kinds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
