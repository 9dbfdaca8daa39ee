#!/usr/bin/env python3
"""bench/gpu/peer.py on the processor: everything that it times can be run."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

PEER = Path(__file__).resolve().parents[2] / "bench" / "gpu" / "peer.py"


def lines_of(*words):
    done = subprocess.run([sys.executable, str(PEER), *words], capture_output=True, text=True,
                          check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["what"]: line.get("why") for line in lines}


class PeerTest(unittest.TestCase):
    def test_runs(self):
        for model in ("small-llama", "small-gemma-3"):
            lines = lines_of(model, "--context", "9", "--prompt", "17", "--device", "cpu")
            self.assertEqual(lines, dict(pytorch=None, plain=None, prefill=None, algorithm1=None,
                                         algorithm1_tuned=None))

    def test_says_what_it_cannot(self):
        lines = lines_of("small-falcon", "--context", "9", "--prompt", "17", "--device", "cpu")
        self.assertEqual(lines, dict(
            pytorch=None, plain=None, prefill=None,
            algorithm1="bench/peers/algorithm1.py knows gate, up and down projections only"))

    def test_no_device(self):
        import torch
        if torch.cuda.is_available():
            self.skipTest("there is a device")
        self.assertEqual(lines_of("small-llama"), dict(pytorch="PyTorch shows no device"))


if __name__ == "__main__":
    unittest.main()
