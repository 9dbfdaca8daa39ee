#!/usr/bin/env python3
"""Compares the logits of ctxc's full run, step by step, with transformers' own.

  logits.py CTXC CHECKPOINT... [--prompts FILE] [--generate N] [--tolerance X] [-- OPTIONS...]

ctxc verifies N tokens of each context, with OPTIONS, and must succeed: every token of the patched run must be
the full run's. For an encoder, N is 1. Prints one line of JSON for each context. Exit code: 0 if all of this holds,
otherwise 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import judge
import torch
from safetensors.torch import load_file

TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"


def verify(args, checkpoint, context, folder):
    """ctxc's report and logits, and whether ctxc calls the run verified."""
    report, logits = Path(folder) / "report.json", Path(folder) / "logits.safetensors"
    count = 1 if judge.is_encoder(checkpoint) else args.generate
    command = [args.ctxc, "verify", checkpoint, *context, "--generate", str(count),
               "--json", str(report), "--logits", str(logits), *args.options]
    code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    if code not in (0, 1):
        sys.exit(f"logits.py: ctxc verify gives exit code {code}")
    return json.loads(report.read_text()), load_file(logits), code == 0


@torch.no_grad()
def transformers_logits(model, report):
    """transformers' logits after each verified token, from one run of all tokens."""
    context = report["settings"]["tokens"]
    tokens = context + [step["next"] for step in report["steps"][:-1]]
    return model(torch.tensor([tokens]), use_cache=False).logits[0, len(context) - 1:]


def main():
    argv, options = sys.argv[1:], []
    if "--" in argv:
        argv, options = argv[:argv.index("--")], argv[argv.index("--") + 1:]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    parser.add_argument("--prompts")
    parser.add_argument("--generate", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args(argv)
    args.options = options
    contexts = [["--tokens", TOKENS]]
    if args.prompts:
        lines = Path(args.prompts).read_text().splitlines()
        contexts = [["--prompt", line] for line in lines if line]
    good = True
    for checkpoint in args.checkpoints:
        model = judge.load_checkpoint(checkpoint)
        for context in contexts:
            with tempfile.TemporaryDirectory() as folder:
                report, logits, verified = verify(args, checkpoint, context, folder)
            linf = (logits["full"] - transformers_logits(model, report)).abs().max().item()
            passed = verified and linf <= args.tolerance
            good = good and passed
            summary = report["summary"]
            print(json.dumps({"checkpoint": Path(checkpoint).name, "pass": passed,
                              "linf_transformers": linf, "matches": summary["matches"],
                              "steps": summary["steps"], "linf_patched": summary["linf"],
                              "linf_control": summary["controlLinf"]}), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
