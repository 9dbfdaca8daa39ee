#!/usr/bin/env python3
"""bench/gpu.py from end to end on the stand-in for NVIDIA's driver, whose times mean nothing; and without any
driver: each missing part gets a line with the reason, and never causes a crash."""

import argparse
import gzip
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "gpu")]
import gpu  # noqa: E402
import pack  # noqa: E402
import tables  # noqa: E402


class GpuTest(unittest.TestCase):
    build = work = None

    def script(self, *words, library="", path=os.environ["PATH"]):
        environment = dict(os.environ, LD_LIBRARY_PATH=library, PATH=path)
        return subprocess.run([sys.executable, str(ROOT / "bench/gpu.py"), *map(str, words)],
                              capture_output=True, text=True, env=environment)

    def expect_claim(self, check):
        self.assertTrue(check["good"])
        self.assertEqual((check["difference"], check["notes"]), (0, []))
        claim = check["claim"]
        for run in ("fused", "apply"):
            self.assertLess(claim[run]["l_inf"], 1e-4)
            self.assertTrue(claim[run]["same_token"])
        self.assertGreater(claim["control"]["l_inf"], 100 * claim["apply"]["l_inf"])

    def expect_times(self, model, text):
        # In bfloat16: the matrices of two layers, the head, the norms, and the token's embedding.
        self.assertEqual(model["weight_bytes"],
                         2 * (2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96) + 128 * 64 + 6 * 64))
        self.assertEqual(set(model["runs"]), {"plain", "patch", "apply"})
        for run in model["runs"].values():
            # On the stand-in, each launch takes a millisecond.
            self.assertAlmostEqual(run["median_ms"], run["launches"])
            self.assertEqual(sum(kernel["launches"] for kernel in run["kernels"]), run["launches"])
            self.assertTrue(all(kernel["predicted_ms"] > 0 for kernel in run["kernels"]))
        self.assertIn("| small-llama | 0.00 | ", text)
        plain = model["runs"]["plain"]["median_ms"]
        self.assertIn(f"Together plain: {plain:.3f} of {plain:.3f} ms", text)

    def expect_prompts(self, model, text):
        # A prompt of 12 tokens in chunks of 8, and its patches; the last chunk is also measured
        # alone.
        self.assertEqual(set(model["prompts"]), {"exact", "rounded"})
        exact, rounded = model["prompts"]["exact"], model["prompts"]["rounded"]
        self.assertEqual(exact["operations"], 12 * (model["weight_bytes"] - 2 * 128 * 64))
        self.assertEqual(set(rounded["runs"]), {"prefill", "prefill, last chunk"})
        self.assertEqual(set(exact["runs"]), {"prefill", "prefill, last chunk", "patches",
                                              "patches, last chunk"})
        runs = exact["runs"]
        self.assertEqual(runs["patches"]["runs"], 1)
        self.assertEqual(runs["prefill"]["runs"], 2)  # and the head
        self.assertEqual(exact["patches_ms"],
                         runs["patches"]["median_ms"] + runs["patches, last chunk"]["median_ms"])
        self.assertAlmostEqual(runs["patches"]["median_ms"], runs["patches"]["launches"])
        self.assertTrue(exact["finite"] and rounded["finite"])
        self.assertIn("| small-llama | exact | 12 | ", text)
        self.assertIn("## Kernels of small-llama, exact: patches, last chunk", text)
        self.assertIn("ctxc_rows8_", text)

    def expect_sanitized(self, folder, standin):
        # A complaint of the sanitizer makes the whole call fail.
        tools = self.work / "tools"
        tools.mkdir(exist_ok=True)
        for errors, code in ((0, 0), (1, 1)):
            program = tools / "compute-sanitizer"
            program.write_text(f"#!/bin/sh\necho '========= ERROR SUMMARY: {errors} errors'\n"
                               f"exit {9 * errors}\n")
            program.chmod(0o755)
            done = self.script("run", folder, "--copy-mib", 4, "--repeats", 1, "--minutes", 60,
                               library=standin, path=f"{tools}:{os.environ['PATH']}")
            self.assertEqual(done.returncode, code, done.stderr + done.stdout)
            self.assertIn(f"compute-sanitizer, memcheck, llama f32: ERROR SUMMARY: {errors} errors",
                          done.stdout)

    def expect_difference(self, folder, standin):
        # A result that differs is a failure: the recording gets other code.
        recording = folder / "check-llama-f32.gz"
        content = gzip.decompress(recording.read_bytes())
        self.assertIn(b"add.rn.f32", content)
        recording.write_bytes(gzip.compress(content.replace(b"add.rn.f32", b"sub.rn.f32"), 1))
        done = self.script("run", folder, "--copy-mib", 4, "--repeats", 1, "--minutes", 60,
                           library=standin)
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertIn("llama f32: DIFFERS", done.stdout)

    def expect_broken(self, folder, standin):
        # A broken recording is reported in a line.
        folder.joinpath("manifest.json").write_text(json.dumps([
            dict(kind="check", name="broken", file="broken"),
            dict(kind="time", name="not made", why="no kernel", file="none", context=7)]))
        with gzip.open(folder / "broken.gz", "wb") as file:
            file.write(b"ctxcgpu3\x00\x0a" + bytes(7) + b"cuda:sm_90\x01\xff")
        done = self.script("run", folder, "--copy-mib", 4, library=standin)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("- check of broken: ", done.stdout)
        self.assertIn("- not made: no kernel", done.stdout)

    def test_stand_in(self):
        folder, standin = self.work / "packed", str(self.build / "test/fake-gpu")
        done = self.script("pack", self.build, folder, "--small")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("llama f32            recorded", done.stdout)
        done = self.script("run", folder, "--json", self.work / "a.json", "--markdown",
                           self.work / "a.md", "--repeats", 2, "--copy-mib", 4, "--minutes", 60,
                           library=standin)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        result = json.loads((self.work / "a.json").read_text())
        self.assertEqual(result["device"], "Fake 0")
        self.assertGreater(result["copy_gbps"], 0)
        text = (self.work / "a.md").read_text()
        self.expect_claim(result["checks"]["llama f32"])
        model = result["models"]["small-llama"]
        self.expect_times(model, text)
        self.expect_prompts(model, text)
        for what, why in result["skipped"].items():
            self.assertIn(f"- {what}: {why}", text)

        # What follows tests the checks, not the timing.
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps([entry for entry in json.loads(manifest.read_text())
                                        if entry["kind"] == "check"]))

        self.expect_sanitized(folder, standin)
        self.expect_difference(folder, standin)
        self.expect_broken(folder, standin)
        try:
            import ctypes
            ctypes.CDLL("libcuda.so.1")
            return  # a real driver
        except OSError:
            pass
        done = self.script("run", folder)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("- device-to-device copy and cuBLAS: no driver: libcuda.so.1", done.stdout)
        self.assertIn("# Kernels on no GPU", done.stdout)

    def test_figures(self):
        runs = {"plain": 4.0, "apply": 4.2, "patch": 5.0}
        model = dict(weight_bytes=16e9, pytorch=dict(plain=9.0, algorithm1=80.0,
                                                     algorithm1_tuned=60.0),
                     runs={label: dict(median_ms=ms) for label, ms in runs.items()})
        result = dict(copy_gbps=4000.0)
        self.assertEqual([tables.judged(value, *goal[1:])
                          for value, goal in zip(tables.figures(result, model), tables.GOALS)],
                         ["1.00", "1.05", "1.25 (misses)", "12.00"])
        self.assertEqual(tables.figures({}, {}), [None] * 4)
        model["prompts"] = dict(exact=dict(prefill_ms=100.0, patches_ms=240.0, operations=65e12),
                                rounded=dict(prefill_ms=100.0, operations=65e12))
        result["matrix_tflops"] = 1000.0
        self.assertEqual([tables.judged(value, *goal[1:]) for value, goal in
                          zip(tables.prompt_figures(result, model), tables.PROMPT_GOALS)],
                         ["0.65", "2.40 (misses)"])
        self.assertEqual(tables.prompt_figures({}, {}), [None] * 2)
        self.assertEqual(tables.judged(None, ">=", 1), "open")
        self.assertEqual(tables.judged(0.5, ">=", 0.85), "0.50 (misses)")

    def test_costs(self):
        costs = pack.costs_of("cuda:sm_90: bytes\n\na token  launches weights cache patch a o\n"
                             "forward   517 15 2 0 3 9\n\na kernel  blocks weights cache patch a o\n"
                             "ctxc_a_0  16 8 1 2 3 7\n")
        self.assertEqual(costs["tokens"]["forward"]["weights"], 15)
        self.assertEqual(costs["kernels"]["ctxc_a_0"], dict(weights=8, operations=7, bytes=14))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    args, rest = parser.parse_known_args()
    GpuTest.build, GpuTest.work = args.build, args.work
    args.work.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + rest)
