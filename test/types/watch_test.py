"""`ctxc check --watch mine.py:build`, beside a person who saves her file, and `ctxc check mine.py:build`.

  watch_test.py CTXC"""
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

CTXC = os.path.abspath(sys.argv.pop(1))
PACKAGE = str(Path(__file__).resolve().parents[2] / "python")
MINE = """import torch
from parts import joined


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.up, self.down = (torch.nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x):
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = (self.mix(x) @ x.transpose(1, 2)).masked_fill(~seen, float("-inf"))
        return joined(x + scores.softmax(-1) @ x, lambda z: self.down(self.up(z).relu()))


def build(): return Block(), torch.zeros(1, 13, 8)
"""
PARTS = """import torch


def normed(z):
    return z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6)


def joined(x, mlp):
    return x + normed(mlp(x))
"""


class Watched(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.save("mine.py", MINE)
        self.save("parts.py", PARTS)

    def save(self, name, text):
        new = self.folder / f".{name}"
        new.write_text(text)
        new.replace(self.folder / name)  # as editors save

    def run_check(self, *words):
        return [CTXC, "check", *words, "--python", sys.executable], \
            {"cwd": self.folder, "env": {**os.environ, "PYTHONPATH": PACKAGE}, "text": True}

    def test_once(self):
        words, options = self.run_check("mine.py:build")
        told = subprocess.run(words, capture_output=True, **options)
        self.assertEqual(told.returncode, 1, told.stderr)
        self.assertIn("block 'model': rejected [bounded-output]", told.stdout)
        # Her helper's line and expression, and where it is called.
        first, line, marks, caller, *_ = told.stderr.splitlines()
        self.assertTrue(first.startswith(f"{self.folder}/parts.py:5:12: error: block 'model' cannot take"), first)
        self.assertEqual(line[marks.index("^"):len(marks)], "z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6)")
        self.assertEqual(caller, f"{self.folder}/parts.py:9:16: note: called here")
        self.assertIn(f"{self.folder}/mine.py:13:16: note: called here", told.stderr)

    def test_what_is_wrong_is_a_line(self):
        for source, said in {"mine.py:bild": "mine.py has no function 'bild'; expected one of: build",
                             "mein.py:build": "there is no module 'mein'"}.items():
            words, options = self.run_check(source)
            told = subprocess.run(words, capture_output=True, **options)
            self.assertEqual((told.returncode, told.stdout, len(told.stderr.splitlines())), (2, "", 1), told.stderr)
            self.assertIn(said, told.stderr)

    def test_each_save(self):
        words, options = self.run_check("--watch", "mine.py:build")
        watching = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, **options)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in watching.stdout], daemon=True).start()

        def wait_for(wanted):
            while wanted not in (line := lines.get(timeout=120)):
                pass
            return line
        try:
            wait_for("parts.py:5:12: error: block 'model' cannot take")
            wait_for("block 'model': rejected [bounded-output]")
            self.save("parts.py", PARTS.replace("x + normed(mlp(x))", "normed(x + mlp(x))"))
            wait_for("== mine.py:build at ")
            wait_for("block 'model': controllable")
            self.save("mine.py", MINE.replace("def forward(self, x):", "def forward(self, x:"))
            wait_for("mine.py:10: def forward(self, x:")
            self.save("mine.py", "\n" + MINE)
            wait_for("block 'model': controllable")
            self.save("parts.py", "# A line more.\n" + PARTS)
            wait_for("parts.py:6:12: error: block 'model' cannot take")
        finally:
            os.killpg(watching.pid, signal.SIGINT)
            self.assertEqual(watching.wait(timeout=60), -signal.SIGINT)
            watching.stdout.close()


if __name__ == "__main__":
    unittest.main()
