"""What cannot be exported, and what is not installed, is said with what to do.

  errors_test.py PACKAGE"""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
from package import PACKAGE

from ctxc import export

WRONG = '''import numpy
import torch


class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.inner = kind, torch.nn.Linear(8, 8)

    def gated(self, x):
        if x.sum() > 0:
            return x * 2
        return x

    def forward(self, x):
        if self.kind == "branch":
            return x + self.inner(self.gated(x))
        if self.kind == "size":
            return x + self.inner(x) * torch.ones(int(x.max().item()) + 1).sum()
        if self.kind == "numpy":
            return x + torch.from_numpy(numpy.tanh(x.numpy()))
        return x + torch.nn.functional.linear(x, torch.ones(7, 7))


def branch(): return Block("branch"), torch.randn(1, 6, 8)
def size(): return Block("size"), torch.randn(1, 6, 8)
def by_numpy(): return Block("numpy"), torch.randn(1, 6, 8)
def shapes(): return Block("shapes"), torch.randn(1, 6, 8)
'''


class Errors(unittest.TestCase):
    """What cannot be exported is said in a few lines, at the module's own lines, with what to write instead."""

    def said_of(self, function):
        told = subprocess.run([sys.executable, "-m", "ctxc.export", f"wrong_ones:{function}", "-o", "out.ctxc"], cwd=self.folder.name,
                              env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True)
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertLessEqual(len(told.stderr.splitlines()), 10, told.stderr)
        return told.stderr

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        (Path(self.folder.name) / "wrong_ones.py").write_text(WRONG)

    def test_lines(self):
        for function, lines in {
            "branch": ["wrong_ones:branch: the module cannot be exported", "wrong_ones.py:17: in forward: return x + self.inner(self.gated(x))",
                       "wrong_ones.py:11: in gated: if x.sum() > 0:", "expected torch.where"],
            "size": ["wrong_ones.py:19: in forward: return x + self.inner(x) * torch.ones(", "expected a constant, a size of a tensor"],
            "by_numpy": ["wrong_ones.py:21: in forward", "leave torch for NumPy", "expected torch's own function"],
            "shapes": ["the module fails on its example inputs", "wrong_ones.py:22: in forward", "shapes cannot be multiplied"],
        }.items():
            said = self.said_of(function)
            for line in lines:
                self.assertIn(line, said, function)

    def test_what_fails_before_there_is_a_module(self):
        write = Path(self.folder.name, "wrong_ones.py").write_text
        write("def build():\n    return helper()\n")
        self.assertRegex(self.said_of("build"), r"^ctxc.export: wrong_ones:build: build\(\) fails\n  wrong_ones.py:2: in build: return helper\(\)\n")
        write("def build(:\n    pass\n")
        self.assertRegex(self.said_of("build"), r"^ctxc.export: wrong_ones:build: the file cannot be imported\n  wrong_ones.py:1: def build\(:\n")

    def test_one_line(self):
        write = Path(self.folder.name, "wrong_ones.py").write_text
        write("def other(): pass\ndef number(): return 3\n")
        for function, line in {"nothing": "wrong_ones has no function 'nothing'; expected one of: other, number",
                               "number": "number() gives a int; expected a torch.nn.Module, or a module and its example inputs"}.items():
            self.assertEqual(self.said_of(function), f"ctxc.export: wrong_ones:{function}: {line}\n")
        write("import torch\n")
        bare = subprocess.run([sys.executable, "-S", "-m", "ctxc.export", "wrong_ones:build", "-o", "out.ctxc"], cwd=self.folder.name,
                              env={"PYTHONPATH": PACKAGE}, capture_output=True, text=True)
        self.assertEqual(bare.stderr, f"ctxc.export: torch is not installed for {sys.executable}; expected a Python with torch: pip install torch\n")

    def test_a_module_that_is_not_there(self):
        for source in ("no_such_file:build", "no_such_package.file:build"):
            with self.assertRaisesRegex(SystemExit, f"{source}: there is no module '{source.split(':')[0].split('.')[0]}'"):
                export.built_module(source)

    def test_what_the_module_prints(self):
        class Prints(torch.nn.Module):
            def forward(self, x):
                print("mine")
                return x * 2
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            export.exported(Prints(), [torch.randn(1, 4, 8)], ["x"])
        self.assertIn("mine", written.getvalue())


class WhatIsMissing(unittest.TestCase):
    """Without its compiled part, or what that needs, the package says what to install where something is asked of it."""

    def said_of(self, code, folder):
        told = subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)
        return (told.stdout + told.stderr).strip().splitlines()[-1]

    def test_not_compiled(self):
        for code in ("import ctxc; ctxc.check", "from ctxc import check"):
            self.assertRegex(self.said_of(code, PACKAGE), "^ImportError: ctxc.check: the package is not compiled here: .* PYTHONPATH=build/python$")
        self.assertEqual(self.said_of("import ctxc; print(hasattr(ctxc, 'no_such'))", PACKAGE), "False")

    def test_without_the_backend(self):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "ctxc")
            made.mkdir()
            (made / "__init__.py").write_text(Path(PACKAGE, "ctxc/__init__.py").read_text())
            (made / "_core.py").write_text("raise ImportError('the nanobind backend module is not installed')")
            self.assertEqual(self.said_of("import ctxc; ctxc.load", folder), f"ImportError: ctxc.load: nanobind-backend is not installed for "
                             f"{sys.executable}: pip install 'nanobind-backend>=1.0,<2' 'numpy>=1.26'")


if __name__ == "__main__":
    unittest.main()
