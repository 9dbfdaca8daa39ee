#!/usr/bin/env python3
"""Layers that run several times, judged by PyTorch: `ctxc check` says that one change of a matrix serves all runs; `ctxc patch
--joint` makes it; it is added to the module's own weights here, and the module then reads the text without the context.

  shared_layers.py CTXC PACKAGE [--generated N] [--seed S]
"""
import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("ctxc")
parser.add_argument("package")
parser.add_argument("--generated", type=int, default=3)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()
sys.path[:0] = [given.package, str(Path(__file__).parent / "kinds"), str(Path(__file__).parent)]

import loops  # noqa: E402
import programs  # noqa: E402
import torch  # noqa: E402
from ctxc import export  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

CONTEXT, TEXT = [5, 17, 3, 11], [2, 19]


@torch.no_grad()
def judged(build, folder):
    """What is wrong; empty where nothing is."""
    torch.manual_seed(0)
    module = build().eval()
    file, texts, out = folder / "model.ctxc", folder / "text.jsonl", folder / "out"
    file.unlink(missing_ok=True)
    shutil.rmtree(out, ignore_errors=True)
    export.export(module, export.inputs_of(module, None), file)
    texts.write_text(json.dumps({"prompt": TEXT[:1], "answer": TEXT[1:]}) + "\n")
    check = programs.run([given.ctxc, "check", file])
    if check.returncode or f"rank {module.runs}" not in check.stdout:
        return f"expected a matrix of rank {module.runs}: {check.stdout[-400:]}{check.stderr[-400:]}"
    run = programs.run([given.ctxc, "patch", file, "--joint", "--context-tokens", ",".join(map(str, CONTEXT)), "--text", texts,
                        "--keep", "none", "--threads", "1", "-o", out])
    if run.returncode:
        return f"exit code {run.returncode}: {run.stderr.strip()[-600:]}"
    full = module(torch.tensor([CONTEXT + TEXT]))[0, len(CONTEXT):]
    without = module(torch.tensor([TEXT]))[0]
    factors = load_file(out / "adapter_model.safetensors")
    weights = dict(module.named_parameters())
    for name, u in factors.items():
        if name.endswith(".u"):
            weights[name.removesuffix(".u")] += u @ factors[name.removesuffix("u") + "v"].T
    error, control = (float((each - full).abs().max()) for each in (module(torch.tensor([TEXT]))[0], without))
    if not error < 1e-3 * control:
        return f"with the patch the logits differ by {error:.2g}, without by {control:.2g}"
    return ""


def main():
    choices = random.Random(given.seed)
    cases = [*loops.CASES.items(), *(loops.generated(lambda of: choices.choice(list(of))) for _ in range(given.generated))]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, build in cases:
            wrong = judged(build, Path(folder))
            failures += bool(wrong)
            print(name, f"FAILS: {wrong}" if wrong else "as expected", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
