#!/usr/bin/env python3
"""Modules wholly in bfloat16: ctxc's patch is added to the weights, PyTorch runs them in bfloat16, and the error of each
layer's output is what ctxc predicts, within a small factor. The ε that a norm has by default is that of PyTorch.

  narrow_modules.py CTXC PACKAGE"""
import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [sys.argv[2], str(Path(__file__).parent / "kinds"), str(Path(__file__).parent)]

import programs  # noqa: E402
import torch  # noqa: E402
from common import WIDTH, Block, Model  # noqa: E402
from ctxc import export  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

TOKENS = [5, 17, 3, 11, 2, 19, 7]
# An error comes from roundings of either sign; a layer also has those of the layer below.
LARGER, SMALLER = 4, 0.02


def outputs(module, tokens):
    rows = []
    hooks = [layer.register_forward_hook(lambda _, given, made: rows.append(made[0, -1].double())) for layer in module.layers]
    with torch.no_grad():
        module(torch.tensor([tokens]))
    for hook in hooks:
        hook.remove()
    return rows


def add(patch, module):
    """Adds a patch to the weights, rounded to their type."""
    held = module.state_dict()
    for name, part in patch.items():
        stem, _, form = name.rpartition(".")
        if form == "u":
            held[stem].add_((part.float().reshape(-1, 1) @ patch[stem + ".v"].float().reshape(1, -1)).bfloat16())
        elif form == "delta":
            held[stem].add_(part.bfloat16())


def judged(ctxc, folder, seed):
    """What is wrong; empty where nothing is."""
    torch.manual_seed(seed)
    module = Model(count=1 + seed % 2).bfloat16().eval()
    file, patch, report = folder / "model.ctxc", folder / f"patch{seed}", folder / f"report{seed}.json"
    file.unlink(missing_ok=True)
    export.export(module, export.inputs_of(module, None), file)
    given = [file, "--tokens", ",".join(map(str, TOKENS)), "--threads", "1"]
    for command in (["verify", *given, "--json", report], ["patch", *given, "-o", patch]):
        run = programs.run([ctxc, *command])
        if run.returncode:
            return f"exit code {run.returncode}: {run.stderr[-600:]}"
    predicted = json.loads(report.read_text())["summary"]["replayError"]
    wanted = outputs(module, TOKENS)
    plain = max(float((a - b).norm()) for a, b in zip(outputs(module, TOKENS[-1:]), wanted))
    add(load_file(patch), module)
    error = max(float((a - b).norm()) for a, b in zip(outputs(module, TOKENS[-1:]), wanted))
    print(f"seed {seed}: predicted {predicted:.3g}, found {error:.3g}, without a patch {plain:.3g}", flush=True)
    is_true = error <= LARGER * predicted and error >= SMALLER * predicted and error < plain / 4
    return "" if is_true else f"predicted {predicted:.3g}, found {error:.3g}, without a patch {plain:.3g}"


class Normed(Block):
    """Short vectors, of whose length ε is a part."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.RMSNorm(WIDTH)

    def forward(self, x):
        return super().forward(self.norm(1e-2 * x))


def misread(ctxc, folder, dtype):
    """What is wrong with how a norm of that type is read; empty where nothing is."""
    torch.manual_seed(0)
    module = Model(Normed, 1).to(dtype).eval()
    file = folder / "normed.ctxc"
    file.unlink(missing_ok=True)
    export.export(module, export.inputs_of(module, None), file)
    run = programs.run([ctxc, "check", file])
    return run.stderr[-600:] if run.returncode else ""


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = [why for seed in range(6) if (why := judged(sys.argv[1], Path(folder), seed))]
        wrong += [why for dtype in (torch.float32, torch.bfloat16, torch.float16) if (why := misread(sys.argv[1], Path(folder), dtype))]
    print("\n".join(wrong) or "all as predicted")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
