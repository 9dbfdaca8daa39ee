#!/usr/bin/env python3
"""Blocks that end in a norm without a scale, and mix in ways that do or do not let a token see another: only where it
surely does may ctxc reject them. Then models whose patches are judged by their numbers (mixer_numbers.py).

  exported_mixers.py CTXC PACKAGE"""
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, sys.argv[2])
import ctxc.export as exporter  # noqa: E402
import mixer_numbers  # noqa: E402

TOKENS = 13
EXPECTED = {"attention": "rejected", "causal": "rejected", "itself": "undecided", "times zero": "undecided",
            "zeros": "undecided", "mean": "undecided", "one tap": "undecided"}


class Block(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.value, self.down = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.norm = nn.RMSNorm(16, elementwise_affine=False)

    def mixed(self, x):
        count = x.shape[1]
        value, scores = self.value(x), x @ x.transpose(1, 2)
        masks = {"itself": torch.eye(count), "causal": torch.ones(count, count).tril()}
        if self.kind in masks:
            scores = scores.masked_fill(masks[self.kind] == 0, float("-inf"))
        if self.kind == "mean":
            return value.mean(1, keepdim=True).expand(1, count, 16)
        if self.kind == "one tap":
            return nn.functional.conv1d(value.transpose(1, 2), torch.ones(16, 1, 1), groups=16).transpose(1, 2)
        factor = {"times zero": 0.0, "zeros": torch.zeros(16)}.get(self.kind)
        return scores.softmax(-1) @ (value if factor is None else value * factor)

    def forward(self, x):
        x = x + self.mixed(x)
        return x + self.norm(self.down(x))


failed = 0
with tempfile.TemporaryDirectory() as folder:
    for kind, expected in EXPECTED.items():
        path = Path(folder) / "block.ctxc"
        exporter.export(Block(kind), [torch.zeros(1, TOKENS, 16)], path)
        run = subprocess.run([sys.argv[1], "check", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        good = run.returncode == 1 and run.stdout.startswith(f"block 'model': {expected}")
        failed += not good
        print(kind, "as expected" if good else f"is not {expected}: {run.stdout}", flush=True)
failed += mixer_numbers.failures(sys.argv[1])
sys.exit(failed > 0)
