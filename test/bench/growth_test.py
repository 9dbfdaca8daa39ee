#!/usr/bin/env python3
"""bench/growth.py goes on where it was killed, and writes tables and pictures of what it measured.

  growth_test.py --build BUILD --work FOLDER
"""

import argparse
import json
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "peers")]
from growing import limits, models, pages  # noqa: E402
from growing.records import Records  # noqa: E402
from growing.studies import Studies  # noqa: E402

# Counts its calls, and kills the script that makes the second one.
KILLER = """#!/bin/sh
echo call >>calls
[ "$(wc -l <calls)" = 2 ] && kill -9 $PPID && exit 1
exec {program} "$@"
"""


class GrowthTest(unittest.TestCase):
    def growth(self, *options):
        model = ROOT / "examples/models/gemma3-kjv-1m"
        return subprocess.run(
            [sys.executable, ROOT / "bench/growth.py", "build", model, "--small", "--rounds", "1", "--tokens", "2",
             "--threads", "1", "--work", "growth", *options], cwd=self.work, capture_output=True, text=True)

    def setUp(self):
        shutil.rmtree(self.work, ignore_errors=True)
        programs = self.work / "build/bin"
        programs.mkdir(parents=True)
        (programs / "ctxc").symlink_to(self.build / "bin/ctxc")
        (programs / "ctxc-bench").write_text(KILLER.format(program=self.build / "bin/ctxc-bench"))
        (programs / "ctxc-bench").chmod(0o755)
        self.records = self.work / "growth/small-records"

    def test_a_killed_run_continues(self):
        killed = self.growth("--only", "layers")
        self.assertEqual(killed.returncode, -9, killed.stderr)
        first = self.records / "layers-1-1t.json"
        self.assertEqual(list(self.records.iterdir()), [first])
        content = first.read_text()
        (self.records / "layers-2-1t.part").write_text(content[:40])  # as if killed while it wrote

        page = self.work / "page.md"
        page.write_text("# Page\n\n## Growth\n\nfrom before\n\n## Other\n\nkept\n")
        done = self.growth("--only", "layers", "--page", "page.md", "--plot", "plots")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(first.read_text(), content)
        self.assertEqual((self.work / "calls").read_text().count("call"), 3)
        self.assertEqual({path.name for path in self.records.iterdir()}, {"layers-1-1t.json", "layers-2-1t.json"})

        text = page.read_text()
        self.assertIn("| layers | MB a token reads |", text)
        for layers in (1, 2):
            found = json.loads((self.records / f"layers-{layers}-1t.json").read_text())["found"]
            self.assertIn(f"\n| {layers} | {pages.megabytes(found['bytes'])} | {pages.number(found['plain'])} |", text)
        self.assertNotIn("from before", text)
        self.assertNotIn("### Context", text)  # has no points
        self.assertTrue(text.endswith("## Other\n\nkept\n"), text)
        self.assertEqual([path.name for path in (self.work / "plots").iterdir()], ["models.svg"])
        ElementTree.parse(self.work / "plots/models.svg")

    def test_a_study_of_each_kind(self):
        (self.work / "calls").write_text("call\n" * 2)  # nothing is killed
        done = self.growth("--only", "context,bits,positions,experts", "--plot", "plots")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list(self.records.iterdir())), 4 + 3 + 2 + 2)
        self.assertEqual({path.name for path in (self.work / "plots").iterdir()},
                         {"context.svg", "bits.svg", "positions.svg", "models.svg"})
        context = json.loads((self.records / "context-llama-16-1t.json").read_text())["found"]
        self.assertEqual(context["cache"], 2 * 16 * 16 * 2 * 4)  # layers, tokens, numbers of k and of v, bytes
        self.assertGreater(context["peak"], context["weights"] + context["cache"])
        positions = json.loads((self.records / "positions-gemma3-kjv-1m-8-1t.json").read_text())["found"]
        self.assertGreater(positions["file"], 7 * 1000)
        self.assertEqual(list((self.work / "growth/models").glob("*.gguf")), [])  # are large, and removed
        again = self.growth("--report")
        self.assertEqual(again.stdout, done.stdout)
        self.assertIn("| Q4_K | integers | ", again.stdout)

    def test_usage(self):
        done = self.growth("--only", "layers,depth")
        self.assertEqual(done.returncode, 2)
        self.assertIn("found 'depth', expected some of context,bits,", done.stderr)

    def test_a_record_of_another_processor_is_measured_again(self):
        folder = self.work / "records"
        Records(folder, {"processor": "one", "threads": 2, "note": ""}).write("a", {"layers": 1}, {"plain": 3})
        other = Records(folder, {"processor": "other", "threads": 2, "note": ""})
        self.assertIsNone(other.read("a"))
        self.assertEqual(other.read("a", anywhere=True)["found"], {"plain": 3})
        self.assertIsNone(Records(folder, {"processor": "one", "threads": 1, "note": ""}).read("a"))

    def test_limits(self):
        # 1 GB of weights and as much of the cache at 20 GB/s take 100 ms.
        found = {"bytes": 10**9, "cache": 10**9, "read_gbps": 20.0, "peak": 3 * 10**9, "weights": 10**9}
        self.assertEqual(limits.milliseconds(found), 50)
        self.assertEqual(limits.of_context(found), 100)
        self.assertEqual(limits.rest(found), 10**9)
        # Both runs: 2 x 4e9 operations at 1 GFLOP/s take longer than reading, at 1000 GFLOP/s they do not.
        self.assertEqual(limits.of_positions(found | {"operations": 4e9, "gflops": 1.0}), 8000)
        self.assertEqual(limits.of_positions(found | {"operations": 4e9, "gflops": 1000.0}), 50)
        self.assertIsNone(limits.of_positions(found | {"operations": 4e9, "gflops": None}))

    def test_what_windows_spare(self):
        full = models.llama(64, 96, 2, 4, 128)  # one group of heads of 16
        windowed = full | {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 10}
        self.assertEqual(models.cache_bytes(full, 100), 200 * 16 * 2 * 4)
        self.assertEqual(models.cache_bytes(windowed, 100), 110 * 16 * 2 * 4)
        matrices = models.matrix_parameters(full)[0]
        # A token's attention: 4 operations for each of 64 numbers of a token that it sees.
        self.assertEqual(Studies.operations(full, 100), 2 * matrices * 100 + 4 * 64 * 2 * 5000)
        self.assertEqual(Studies.operations(windowed, 100), 2 * matrices * 100 + 4 * 64 * (5000 + 950))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    args, rest = parser.parse_known_args()
    GrowthTest.build, GrowthTest.work = args.build.resolve(), args.work.resolve()
    unittest.main(argv=sys.argv[:1] + rest)
