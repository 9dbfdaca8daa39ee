"""Each op of a program keeps the lines of the code from which it comes.

  lines_test.py PACKAGE"""
import tempfile
import unittest
from pathlib import Path

import package  # noqa: F401 — before ctxc, which it finds

from ctxc import export, small_configs

HELPERS = '''def gate(x, y):
    return (x /
            y)


def gated(x): return gate(x, x.sigmoid())
'''
HELPED = '''import torch
from helpers_of_mine import gated
from transformers.models.llama.modeling_llama import LlamaRMSNorm


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(8, 8), LlamaRMSNorm(8)

    def joined(self, x):
        return x + self.linear(x)

    def forward(self, x):
        return gated(self.norm(self.joined(x)))


def build(): return torch.nn.Sequential(Inner()), torch.randn(1, 6, 8)
'''


class Lines(unittest.TestCase):
    """Each op keeps the lines that a person wrote: those of her helpers, within one call of a module, and with her expression."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        Path(cls.folder.name, "helpers_of_mine.py").write_text(HELPERS)
        Path(cls.folder.name, "helped.py").write_text(HELPED)
        module, inputs = export.built_module(f"{cls.folder.name}/helped.py:build")
        program = export.exported(module.eval(), inputs, ["input"])
        cls.traces = {}
        for node in program.graph.nodes:
            if node.op == "call_function":
                cls.traces.setdefault(str(node.target).split(".")[1], cls.frames_of(node.meta["stack_trace"]))

    @staticmethod
    def frames_of(trace):
        """File, line and marked expression of each frame."""
        lines, frames = trace.splitlines(), []
        for line, text, marks in zip(lines, lines[1:], lines[2:]):
            if line.lstrip().startswith("File "):
                file, number = line.split('"')[1], int(line.split(", line ")[1].split(",")[0])
                frames.append((Path(file).name, number, text[marks.index("^"):len(marks)]))
        return frames

    def test_helpers(self):
        self.assertEqual(self.traces["div"], [("helped.py", 15, "gated(self.norm(self.joined(x)))"), ("helpers_of_mine.py", 6, "gate(x, x.sigmoid())"),
                                              ("helpers_of_mine.py", 2, "x /")])
        self.assertEqual(self.traces["add"], [("helped.py", 15, "self.joined(x)"), ("helped.py", 12, "x + self.linear(x)")])

    def test_code_of_packages(self):
        self.assertEqual(self.traces["linear"], [("helped.py", 15, "self.joined(x)"), ("helped.py", 12, "self.linear(x)")])
        self.assertEqual(self.traces["rsqrt"], [("helped.py", 15, "self.norm(self.joined(x))")])

    def test_a_package_alone(self):
        module, inputs, names, _ = export.model_of(small_configs.small_config("llama"))
        program = export.exported(module, inputs, names)
        traces = [node.meta.get("stack_trace") or "" for node in program.graph.nodes if "rsqrt" in str(node.target)]
        self.assertTrue(traces)
        for trace in traces:
            (file, _, expression), = self.frames_of(trace)
            self.assertEqual((file, expression), ("modeling_llama.py", "torch.rsqrt(variance + self.variance_epsilon)"))


if __name__ == "__main__":
    unittest.main()
