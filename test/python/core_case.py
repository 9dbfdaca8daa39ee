"""What the tests of core_test.py share."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import ctxc

CTXC, ROOT = sys.argv[1], Path(sys.argv[2])
MODEL = ROOT / "examples/models/gemma3-kjv-1m"
PROMPT = "And David said unto Saul"
NIGHT = os.environ.get("CTXC_KERNEL_OPT") == "3"
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
GOLDENS = sorted(path.parent for path in (ROOT / "test/goldens").glob("*/golden.safetensors"))


def command(*words):
    # A sanitized command has the sanitizers inside.
    return subprocess.run([CTXC, *map(str, words)], capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": ""})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = ctxc.load(MODEL)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def file(self, name):
        return Path(self.folder.name) / name
