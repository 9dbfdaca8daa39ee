#!/usr/bin/env python3
"""A program's file carries PyTorch's numbers, and ctxc refuses it where it reads another program than these are of. Programs are
exported and then changed, each as an importer would have read it that is wrong in one place: ctxc has to say so, and in
which layer; as they are, it has to take them.

  self_check.py CTXC PACKAGE"""
import copy
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [sys.argv[2], str(Path(__file__).parent / "kinds"), str(Path(__file__).parent),
                str(Path(__file__).parents[1] / "types")]

import positions  # noqa: E402
import programs  # noqa: E402
import torch  # noqa: E402
from common import WIDTH, Model  # noqa: E402
from ctxc import _program_file, export  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from variant import rewrite  # noqa: E402

CTXC = sys.argv[1]
WRONG = "was not read rightly"


class Layer(nn.Module):
    """A block with what blocks have: norms, rotations, attention by its formula, a gate."""

    def __init__(self):
        super().__init__()
        self.norm, self.behind = nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH, eps=1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=i < 2) for i in range(4))
        self.gate, self.up, self.down = nn.Linear(WIDTH, 12), nn.Linear(WIDTH, 12), nn.Linear(12, WIDTH)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.4)

    def forward(self, x):
        t, y = x.shape[1], self.norm(x)
        angles = torch.arange(t)[:, None] * 10.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        q, k = (positions.halves(each(y), angles.cos(), angles.sin()) for each in (self.q, self.k))
        scores = (q @ k.transpose(1, 2)) * 0.35
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        x = x + self.o(scores.softmax(-1) @ self.v(y))
        z = self.behind(x)
        return x + self.down(F.gelu(self.gate(z)) * self.up(z))


def deep():
    return Model(Layer, 3, lambda model, x, ids: x * 1.5)


class Program:
    """What a file says, to be changed."""

    def __init__(self, path):
        self.path = path
        self.original = _program_file.read_program(path)
        self.restart()

    def restart(self):
        self.nodes = copy.deepcopy(self.original["calls"])

    def write(self, path, numbers=None):
        def change(program, own):
            program["calls"] = self.nodes
            if numbers is not None:
                own.clear()
                own.update(numbers)
        rewrite(self.path, path, change)

    def calls(self, op, layer=None):
        """Those of an op, in a layer or anywhere."""
        def is_there(node):
            return layer is None or f"layers.{layer}." in node.get("module", "") + "."
        return [node for node in self.nodes if node["op"].startswith(f"aten.{op}.") and is_there(node)]

    def node(self, op, layer=None, which=0):
        return self.calls(op, layer)[which]


def operation(op, other, layer=None, which=0):
    def change(program):
        node = program.node(op, layer, which)
        node["op"] = node["op"].replace(f"aten.{op}.", f"aten.{other}.")
    return change


def number(op, name, value, layer=None, which=0):
    """Of those calls of which the argument is a number, or is not given."""
    def change(program):
        calls = [node for node in program.calls(op, layer) if not {"tensor", "stored"} & set(node["arguments"].get(name, {}))]
        calls = [node for node in calls if name in node["arguments"] or op == "slice"]
        kind = next(iter(calls[which]["arguments"].get(name, {"int": 0})))
        calls[which]["arguments"][name] = {kind: value}
    return change


def without(op, name, layer=None, which=0):
    def change(program):
        del program.node(op, layer, which)["arguments"][name]
    return change


def exchanged(op, name, others, layer=None):
    """The same argument of two calls, each in the place of the other."""
    def change(program):
        a, b = (program.node(op, layer, which)["arguments"] for which in others)
        a[name], b[name] = b[name], a[name]
    return change


# What was misread: a change, and the first layer whose output is wrong by it; None where that is before the layers, or behind.
MUTANTS = {
    deep: {
        "a factor before the layers": (number("mul", "other", 1.51), None),
        "the epsilon of a norm": (number("layer_norm", "eps", 0.1, 1), "layers.1"),
        "the epsilon of another norm": (number("rms_norm", "eps", 0.1, 2), "layers.2"),
        "a norm without its bias": (without("layer_norm", "bias", 0), "layers.0"),
        "a matrix without its bias": (without("linear", "bias", 1), "layers.1"),
        "a scale of scores": (number("mul", "other", 0.36, 1), "layers.1"),
        "a difference for a sum": (operation("add", "sub", 2, 1), "layers.2"),
        "a sum for a difference": (operation("sub", "add", 0), "layers.0"),
        "sines for cosines": (operation("cos", "sin", 1), "layers.1"),
        "a softplus for a gelu": (operation("gelu", "silu", 2), "layers.2"),
        "queries for keys": (exchanged("linear", "weight", (0, 1), 1), "layers.1"),
        "a gate for what it gates": (exchanged("linear", "weight", (4, 5), 0), "layers.0"),
        "a mask that is one place off": (number("triu", "diagonal", 2, 2), "layers.2"),
        "other angles": (number("arange", "step", 3, 1), "layers.1"),
    },
    positions.CASES["tables first"][0]: {
        "rows from 1 on": (number("slice", "start", 1), None),
    },
    positions.CASES["turns sliced"][0]: {
        "another table": (number("slice", "start", 2, 1, 0), "layers.1"),
        "attention without a mask": (number("scaled_dot_product_attention", "is_causal", False, 0), "layers.0"),
    },
}


def check(path, *options):
    return programs.run([CTXC, "check", path, *options])


def main():
    failures = 0

    def expect(name, holds, run):
        nonlocal failures
        failures += not holds
        print(name, "as expected" if holds else f"FAILS: exit code {run.returncode}: {run.stderr.strip()[-500:]}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # so that what was compared before is compared again
        whole, changed = Path(folder) / "whole.ctxc", Path(folder) / "changed.ctxc"
        for build, mutants in MUTANTS.items():
            torch.manual_seed(0)
            module = build()
            export.export(module, export.inputs_of(module), whole)
            run = check(whole)
            expect("as it is", run.returncode == 0 and not run.stderr, run)
            program = Program(whole)
            for name, (change, layer) in mutants.items():
                program.restart()
                change(program)
                program.write(changed)
                run = check(changed)
                said = layer is None or f"the first layer whose output differs is '{layer}'" in run.stderr
                expect(name, run.returncode == 2 and WRONG in run.stderr and said, run)
                for command in (["verify"], ["patch", "-o", Path(folder) / "patch.safetensors"]):
                    run = programs.run([CTXC, command[0], changed, "--tokens", "3,1,2", *command[1:]])
                    expect(f"{name}, {command[0]}", run.returncode == 2 and WRONG in run.stderr, run)
            run = check(changed, "--no-self-check")
            expect("without the comparison", run.returncode == 0 and "--no-self-check" in run.stderr, run)
            page = Path(folder) / "page.html"
            run = check(changed, "--no-self-check", "--format", "sarif", "--html", page)
            notifications = json.loads(run.stdout)["runs"][0]["invocations"][0].get("toolExecutionNotifications", [])
            expect("without it, for editors", "was turned off" in json.dumps(notifications), run)
            expect("without it, on the page", "Not compared with its source:</b> " in page.read_text(), run)
        # Files that say less.
        program.restart()
        program.write(changed, {"why": "nobody computed them"})
        run = check(changed)
        expect("no numbers", run.returncode == 0 and "nobody computed them" in run.stderr, run)
        program.write(changed, {**json.loads(_program_file.read_header(whole)[0]["__metadata__"]["numbers"]), "weights": "other"})
        run = check(changed)
        expect("other weights", run.returncode == 0 and "its weights are not those" in run.stderr, run)
        torch.export.save(torch.export.export(module, tuple(export.inputs_of(module)), strict=False), Path(folder) / "torch.pt2")
        run = check(Path(folder) / "torch.pt2")
        expect("another program", run.returncode == 0 and "was not written by ctxc" in run.stderr, run)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
