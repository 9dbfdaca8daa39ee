#!/usr/bin/env python3
"""Small PyTorch modules against PyTorch: each is exported, and ctxc gives its logits, token by token, or refuses it in
words that it says beforehand.

  module_kinds.py CTXC PACKAGE KIND [NAME…] [--share K] [--generated N] [--seed S]

KIND is a file of kinds/, whose CASES have a function for each name that builds a module, and what its refusal says;
`generated(choose)` gives further ones, and OPTIONS are those of `ctxc verify`. With --share K only every K-th of the CASES is
tried, and all that are refused."""
import argparse
import importlib
import random
import re
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("ctxc")
parser.add_argument("package")
parser.add_argument("kind")
parser.add_argument("names", nargs="*")
parser.add_argument("--share", type=int, default=1)
parser.add_argument("--generated", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()
sys.path[:0] = [given.package, str(Path(__file__).parent / "kinds"), str(Path(__file__).parent)]

import programs  # noqa: E402
import torch  # noqa: E402
from ctxc import export  # noqa: E402
from ctxc._program import Unsupported  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

# The first is read in one go, and both go on token by token.
CONTEXTS = ([5, 17, 3, 11, 2, 19, 7], [1, 8, 4, 4, 20, 9, 13, 6, 2, 15, 10])
STEPS = 2
TOLERANCE = 2e-5


def logits_of(kind, module, tokens, length):
    """Of the last token; of several results, those that the kind says. A module of a fixed `length` sees others behind it."""
    with torch.no_grad():
        made = module(input_ids=torch.tensor([tokens + [0] * max(length - len(tokens), 0)]))
    made = getattr(kind, "logits", lambda only: only)(made)
    return made[0, len(tokens) - 1 if made.shape[1] > 1 else 0].double()


def judged(kind, build, refusal, folder):
    """What is wrong; empty where nothing is."""
    torch.manual_seed(0)
    made = build() if callable(build) and not isinstance(build, torch.nn.Module) else build
    module, example = made if isinstance(made, tuple) else (made, None)
    module.eval()
    file = folder / "model.ctxc"
    file.unlink(missing_ok=True)
    try:
        export.export(module, export.inputs_of(module, example), file)
    except Unsupported as error:
        return "" if refusal is not None and re.search(refusal, str(error)) else f"is not exported: {error}"
    length = 0 if example is None else example.shape[1]
    worst = 0.0
    for context in CONTEXTS:
        numbers = folder / "logits.safetensors"
        numbers.unlink(missing_ok=True)
        run = programs.run([given.ctxc, "verify", file, *getattr(kind, "OPTIONS", []), "--tokens", ",".join(map(str, context)),
                            "--generate", str(STEPS), "--logits", numbers, "--threads", "1"])
        if refusal is not None:
            if run.returncode == 0 or not re.search(refusal, run.stderr):
                return f"expected a refusal /{refusal}/, found exit code {run.returncode}: {run.stderr.strip()[-400:]}"
            continue
        if run.returncode:
            return f"exit code {run.returncode}: {(run.stderr.strip() or run.stdout.strip())[-600:]}"
        tokens = list(context)
        for step, found in enumerate(load_file(numbers)["full"]):
            wanted = logits_of(kind, module, tokens, length)
            if found.shape != wanted.shape:
                return f"{tuple(found.shape)} logits for {tuple(wanted.shape)}"
            worst = max(worst, float((found.double() - wanted).abs().max() / wanted.abs().max()))
            tokens.append(int(found.argmax()))
        if not worst < TOLERANCE:
            return f"after {len(context)} tokens the logits differ by {worst:.3g} of the largest"
    return ""


def main():
    kind = importlib.import_module(given.kind)
    cases = [(name, *case) for at, (name, case) in enumerate(kind.CASES.items())
             if (name in given.names if given.names else case[1] or at % given.share == 0)]
    if not given.names:
        choices = random.Random(given.seed)
        cases += [kind.generated(lambda of: choices.choice(list(of))) for _ in range(given.generated)]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, build, refusal in cases:
            wrong = judged(kind, build, refusal, Path(folder))
            failures += bool(wrong)
            print(name, f"FAILS: {wrong}" if wrong else "as expected", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
