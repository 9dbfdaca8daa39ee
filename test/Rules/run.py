"""Runs both examples of every rule through `ctxc check`. The verdict must be the one on the rule's page, and
must name the rule (or the rule that the page names instead).

    run.py CTXC [RULE …]
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

IDS = pathlib.Path(__file__).parents[2] / "include/ctxc/Planning/RuleIds.h"
ORDER = ["controllable", "output-only", "undecided", "rejected"]


def rules_named(value):
    """All ids that a report names, at any depth."""
    if isinstance(value, dict):
        named = {value["rule"]} if "rule" in value else set()
        return named.union(*(rules_named(v) for v in value.values()), set())
    if isinstance(value, list):
        return set().union(*(rules_named(v) for v in value), set())
    return set()


def check(ctxc, folder, example):
    path = os.path.join(folder, "block.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(example["text"] + "\n")
    command = [ctxc, "check", path, "--format", "json", *shlex.split(example["options"])]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def complaints(ctxc, folder, rule, which):
    example = rule[which]
    done = check(ctxc, folder, example)
    # A plan that does not exist is a mistake in the command, not a verdict on the block.
    if done.returncode == 2 and rule["id"] == "no-such-plan" and which == "fails":
        if "has no plan that patches just" not in done.stderr:
            yield f"found {done.stderr!r}"
        return
    if done.returncode not in (0, 1):
        yield f"exit code {done.returncode}: {done.stderr.strip()}"
        return
    report = json.loads(done.stdout)
    verdicts = [group["verdict"] for group in report["groups"]]
    if report["model"]:
        verdicts.append(report["model"]["verdict"])
    verdict = max(verdicts, key=ORDER.index)
    if verdict != example["verdict"]:
        yield f"found verdict {verdict}, expected {example['verdict']}"
    named = rules_named(report)
    if example["names"] not in named and not is_about_the_whole(rule, example):
        yield f"expected it to name {example['names']}, found {', '.join(sorted(named))}"
    if which == "passes" and rule["kind"] in ("rejection", "undecided", "warning"):
        if rule["id"] in named:
            yield "names the rule that it should pass"
    if which == "fails" and rule["kind"] in ("lemma", "extension") and rule["id"] in named:
        yield "rests on the lemma that it should fail"


def is_about_the_whole(rule, example):
    """Whether no single patch or finding can carry the rule's name."""
    return rule["id"] == example["names"] and rule["id"] == "attention-output"


def main(ctxc, wanted):
    table = json.loads(subprocess.check_output([ctxc, "explain", "--format", "json"], text=True))
    bad, done = 0, 0
    for missing in set(re.findall(r'Id \w+ = "([\w-]+)"', IDS.read_text())) - {rule["id"] for rule in table}:
        print(f"findings name {missing}, which has no page in docs/rules")
        bad += 1
    for rule in table:
        if wanted and rule["id"] not in wanted:
            continue
        for line in rule["statement"].split("\n"):
            if len(line) > 96:
                print(f"{rule['id']}: a line of the statement has {len(line)} columns, of 96")
                bad += 1
        for which in ("passes", "fails"):
            with tempfile.TemporaryDirectory() as folder:
                for complaint in complaints(ctxc, folder, rule, which):
                    print(f"{rule['id']}, the block that {which}: {complaint}")
                    bad += 1
            done += 1
    print(f"{done} examples of {done // 2} rules, {bad} complaints")
    return 1 if bad or not done else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
