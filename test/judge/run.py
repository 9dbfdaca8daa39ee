#!/usr/bin/env python3
"""Has ctxc write patch files for checkpoints, and judges each (judge.py).

  run.py CTXC CHECKPOINT... [--update NAME...] [--prompts FILE] [--backend NAME] [--plans]

Without --prompts the context is made of a few fixed tokens; with it, every line of FILE is one. The
first context is also patched with kept tokens, contiguous and with a gap (not in an encoder). With --plans, every
plan that `ctxc check --plans` lists is judged instead of the default plan, except fragile plans, which need
float64. A plan that splits a change over experts is judged with both splits. The full run and the control of a
mixture must select different experts. Exit code: 0 if every patch passes, otherwise 1.
"""

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import judge
import programs

TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"
KEPT = ["0-3", "1,4-5,9"]


def contexts(args, checkpoint):
    """The options that name each context, as a list for each."""
    whole = [["--tokens", TOKENS]]
    if args.prompts:
        lines = Path(args.prompts).read_text().splitlines()
        whole = [["--prompt", line] for line in lines if line]
    kept = [] if judge.is_encoder(checkpoint) else KEPT
    return whole + [whole[0] + ["--keep", positions] for positions in kept]


def has_post_norm(checkpoint):
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    return config["model_type"] in ("gemma2", "gemma3", "gemma3_text", "glm4", "olmo2")


def report_of(args, checkpoint):
    command = [args.ctxc, "check", checkpoint, "--plans", "--format", "json"]
    return json.loads(programs.run(command, check=True).stdout)["groups"]


def plans(groups):
    """Values of --plan with which each plan of each group occurs, except fragile ones. A value combines one plan
    of every group, joined by commas."""
    lists = [[plan["parameters"] for plan in group["plans"] if "fragility" not in plan]
             for group in groups]
    together = []
    for i in range(max(map(len, lists))):
        names = [name for plans in lists for name in plans[i % len(plans)]]
        together.append(",".join(dict.fromkeys(names)))
    return together


def splits(parameters):
    """The options for a plan: both splits, if the plan patches experts."""
    if not any(".experts." in name for name in parameters):
        return [[]]
    return [["--split", "even"], ["--split", "least-norm"]]


def has_experts(checkpoint):
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    return "num_experts_per_tok" in config


def write_patches(args, checkpoint, folder):
    """Patch files for every context and every update or plan. A failure of ctxc ends the run."""
    # Updates differ only where a block ends in a norm with a scale.
    groups = report_of(args, checkpoint)
    if args.plans:
        variants = [["--plan", plan] + split for plan in plans(groups)
                    for split in splits(plan.split(","))]
    elif has_post_norm(checkpoint):
        variants = [["--update", update] for update in args.update]
    else:
        variants = splits([patch["parameter"] for group in groups for patch in group["output"]])
    files, commands = [], []
    for context in contexts(args, checkpoint):
        for variant in variants:
            name = " ".join(variant[1:]).replace("*", "N") or "default"
            file = str(Path(folder) / f"{len(files)} {name}.safetensors")
            commands.append([args.ctxc, "patch", checkpoint, *context, "-o", file,
                             "--backend", args.backend, *variant])
            files.append(file)
    # Most of the time is spent on compiling, on one thread.
    for _ in args.pool.map(lambda command: programs.run(command, check=True), commands):
        pass
    return files


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    parser.add_argument("--update", nargs="+", default=["least"])
    parser.add_argument("--prompts")
    parser.add_argument("--backend", default="compiled")
    parser.add_argument("--plans", action="store_true")
    args = parser.parse_args()
    good = True
    args.pool = ThreadPoolExecutor(os.cpu_count())
    for checkpoint in args.checkpoints:
        with tempfile.TemporaryDirectory() as folder:
            listing = Path(folder) / "list.json"
            listing.write_text(json.dumps(write_patches(args, checkpoint, folder)))
            print(checkpoint, flush=True)
            options = ["--routed-apart"] if has_experts(checkpoint) else []
            good = judge.main([checkpoint, "--batch", str(listing), *options]) == 0 and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
