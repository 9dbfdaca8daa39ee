#!/usr/bin/env python3
"""Measures ctxc's kernels on an NVIDIA GPU, in one call of under nine minutes.

Where ctxc is built, no GPU needed:

  bench/gpu.py pack build gpu-work

writes recordings of the work (bench/gpu/Recording.h) and the program that replays them: a folder of a
few MB, which has to be copied to the GPU's machine together with this repository. There,

  bench/gpu.py run gpu-work --json gpu.json --markdown gpu.md

needs Python and the driver; cuBLAS, PyTorch with transformers, and compute-sanitizer are used
where they are found. Whatever is missing gets a line in the table, with the reason.
"""

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "gpu")]
import driver  # noqa: E402
from models import MODELS  # noqa: E402
from pack import PROMPT, output_of, pack  # noqa: E402
from tables import markdown  # noqa: E402

TOLERANCE = 1e-3  # relative to the largest element of a result
MINUTES = 8.5


class Session:
    def __init__(self, args):
        self.folder = Path(args.folder).resolve()
        self.whole = 60 * args.minutes
        self.end = time.monotonic() + self.whole
        self.repeats = args.repeats
        self.entries = json.loads((self.folder / "manifest.json").read_text())
        self.result = dict(skipped={}, checks={}, models={}, sanitizer={})
        self.scratch = tempfile.TemporaryDirectory()

    def left(self):
        return self.end - time.monotonic()

    def skip(self, what, why):
        self.result["skipped"][what] = why
        print(f"skipped: {what}: {why}", flush=True)

    def tell(self, what, text):
        print(f"{what}: {text}", flush=True)

    def recording(self, entry):
        path = Path(self.scratch.name) / entry["file"]
        if not path.exists():
            with gzip.open(self.folder / f"{entry['file']}.gz") as small, open(path, "wb") as plain:
                shutil.copyfileobj(small, plain)
        return path

    def command(self, *words, limit):
        """The JSON that a program prints, or None and the reason. `limit` is its share, in seconds, of MINUTES."""
        limit *= self.whole / (60 * MINUTES)
        try:
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                                  timeout=max(1, min(limit, self.left())))
        except subprocess.TimeoutExpired:
            return None, f"took more than {limit:.0f} s, or the call's time was over"
        except OSError as error:
            return None, str(error)
        try:
            return json.loads(done.stdout), done.stderr.strip()
        except json.JSONDecodeError:
            last = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
            return None, last[-1]

    def replay(self, entry, *options, limit=90):
        if "why" in entry:
            return None, entry["why"]
        found, why = self.command(self.folder / "ctxc-gpu-replay", self.recording(entry), *options,
                                  limit=limit)
        if found and "error" in found:
            return None, found["error"].split(": ", 1)[-1]
        return found, why

    # Measurements

    def bandwidth(self, size):
        try:
            device = driver.Driver()
        except driver.Missing as error:
            return self.skip("device-to-device copy and cuBLAS", str(error))
        self.result["device"] = device.name
        try:
            self.result["copy_gbps"] = device.copy_gbps(size)
            self.tell("copy", f"{self.result['copy_gbps']:.0f} GB/s")
        except driver.Missing as error:
            self.skip("device-to-device copy", str(error))
        try:
            cublas = driver.Cublas(device)
            gemv = self.result["gemv"] = []
            for rows, columns in ((14336, 4096), (4096, 14336), (4096, 4096), (128256, 4096),
                                  (6912, 1152), (10240, 2560), (18176, 4544)):
                matrices = max(1, 600_000_000 // (2 * rows * columns))
                milliseconds = cublas.gemv_ms(rows, columns, matrices)
                gemv.append(dict(rows=rows, columns=columns, ms=milliseconds,
                                 gbps=2 * rows * columns / milliseconds / 1e6))
        except (driver.Missing, AttributeError, ZeroDivisionError) as error:
            self.skip("cuBLAS gemv", str(error))
        try:
            cublas = driver.Cublas(device)
            gemm = self.result["gemm"] = []
            for rows, columns in ((14336, 4096), (4096, 14336), (4096, 4096)):
                milliseconds = cublas.gemm_ms(rows, columns, PROMPT)
                gemm.append(dict(rows=rows, columns=columns, vectors=PROMPT, ms=milliseconds,
                                 tflops=2 * rows * columns * PROMPT / milliseconds / 1e9))
            self.result["matrix_tflops"] = max(g["tflops"] for g in gemm)
            self.tell("cuBLAS gemm", f"{self.result['matrix_tflops']:.0f} TFLOP/s")
        except (driver.Missing, AttributeError, ZeroDivisionError) as error:
            self.skip("cuBLAS gemm", str(error))
        device.close()

    def checks(self):
        for entry in self.entries:
            if entry["kind"] != "check":
                continue
            found, why = self.replay(entry, "--repeats", "2")
            if not found:
                self.skip(f"check of {entry['name']}", why)
                continue
            good = found["largest_difference"] <= TOLERANCE and found["compared_bytes"] > 0
            self.result["checks"][entry["name"]] = dict(
                good=good, difference=found["largest_difference"], notes=found["notes"],
                claim=found.get("against_full", {}))
            self.tell(entry["name"], f"{'agrees' if good else 'DIFFERS'}, "
                                     f"{found['largest_difference']:.2g}")

    def times(self):
        for entry in self.entries:
            if entry["kind"] != "time":
                continue
            found, why = self.replay(entry, "--repeats", self.repeats, "--kernels")
            if not found:
                self.skip(entry["name"], why)
                continue
            runs = {run["label"]: run for run in found["runs"]}
            model = self.result["models"][entry["name"]] = dict(
                weight_bytes=entry.get("cost", {}).get("tokens", {}).get("forward", {}).get(
                    "weights", found["drawn_bytes"]),
                finite=found["finite"], runs=runs)
            for note in found["notes"]:
                self.skip(f"{entry['name']}, {note['what']}", note["why"])
            self.predict(entry, model)
            self.tell(entry["name"], ", ".join(
                f"{label} {run['median_ms']:.3f} ms" for label, run in runs.items()))

    def prompts(self):
        for entry in self.entries:
            if entry["kind"] != "prompt":
                continue
            what = f"{entry['name']}, {entry['form']} prompt"
            if self.left() < self.whole * 0.5:  # the rest is for the sanitizer and PyTorch
                self.skip(what, "its share of the time was over")
                continue
            found, why = self.replay(entry, "--repeats", min(3, self.repeats), "--kernels",
                                     limit=60)
            if not found:
                self.skip(what, why)
                continue
            for note in found["notes"]:
                self.skip(f"{what}, {note['what']}", note["why"])
            runs = {run["label"]: run for run in found["runs"]}
            prompt = dict(tokens=entry["tokens"], operations=entry["operations"],
                          finite=found["finite"], runs=runs)
            for label in ("prefill", "patches"):
                parts = [run["median_ms"] for run in runs.values()
                         if run["label"].split(",")[0] == label]
                if parts:
                    prompt[f"{label}_ms"] = sum(parts)
            self.result["models"].setdefault(entry["name"], {}).setdefault(
                "prompts", {})[entry["form"]] = prompt
            self.tell(what, ", ".join(f"{key[:-3]} {prompt[key]:.1f} ms"
                                      for key in ("prefill_ms", "patches_ms") if key in prompt))

    def predict(self, entry, model):
        """Adds to each kernel's time the time that a copy of as many bytes would take."""
        copy, costs = self.result.get("copy_gbps"), entry.get("cost", {}).get("kernels", {})
        for run in model["runs"].values():
            for kernel in run["kernels"]:
                cost = costs.get(kernel["function"])
                if copy and cost:
                    kernel["predicted_ms"] = \
                        kernel["launches"] * cost["bytes"] / copy / 1e6

    def pytorch(self):
        for entry in self.entries:
            name = entry["name"]
            if entry["kind"] != "time" or name == "mixtral-8x7b" or entry.get("quantised"):
                continue
            if self.left() < 40:
                self.skip(f"PyTorch, {name}", "the call's time was over")
                continue
            lines, why = self.peer(name, entry["context"], min(90, self.left() - 20))
            for line in lines:
                if "why" in line:
                    self.skip(f"PyTorch, {name}, {line['what']}", line["why"])
            if why:
                self.skip(f"PyTorch, {name}, the rest", why)
            times = {line["what"]: line["ms"] for line in lines if "ms" in line}
            if times:
                self.result["models"].setdefault(name, {})["pytorch"] = times
                self.tell(f"PyTorch, {name}", ", ".join(f"{k} {v:.2f} ms" for k, v in times.items()))

    def peer(self, name, context, limit):
        command = [sys.executable, str(ROOT / "bench/gpu/peer.py"), name, "--context", str(context)]
        output, why = "", ""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            output = done.stdout
            if done.returncode:
                why = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else \
                error.stdout or ""
            why = f"took more than {limit:.0f} s"
        return [json.loads(line) for line in output.splitlines() if line.endswith("}")], why

    def sanitizer(self):
        program = shutil.which("compute-sanitizer") or next(
            map(str, Path("/usr/local").glob("cuda*/bin/compute-sanitizer")), None)
        if not program:
            return self.skip("compute-sanitizer", "is not there")
        entries = [e for e in self.entries if e["kind"] == "check" and "why" not in e
                   and not e.get("model", "").startswith("examples")]
        in_blocks = [e for e in entries if e.get("quantised")][:2]
        for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
            for entry in [*entries[:3], *in_blocks] if tool == "memcheck" else entries[:1]:
                self.sanitize(program, tool, entry)

    def sanitize(self, program, tool, entry):
        what = f"{tool}, {entry['name']}"
        if self.left() < self.whole * 0.4:  # the rest is for PyTorch
            return self.skip(f"compute-sanitizer, {what}", "its share of the time was over")
        try:
            done = subprocess.run(
                [program, "--tool", tool, "--error-exitcode", "9",
                 str(self.folder / "ctxc-gpu-replay"), str(self.recording(entry)), "--repeats",
                 "1"], capture_output=True, text=True, timeout=40)
        except subprocess.TimeoutExpired:
            return self.skip(f"compute-sanitizer, {what}", "took more than 40 s")
        summary = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
        if not summary:
            last = (done.stdout + done.stderr).strip().splitlines() or ["it said nothing"]
            return self.skip(f"compute-sanitizer, {what}", last[-1].strip("= "))
        said = self.result["sanitizer"][what] = dict(good=done.returncode == 0,
                                                     said=summary[-1].strip("= "))
        self.tell(f"compute-sanitizer, {what}", said["said"])


def run(args):
    session = Session(args)
    session.bandwidth(args.copy_mib << 20)
    session.checks()
    session.times()
    session.prompts()
    session.sanitizer()
    session.pytorch()
    if args.json:
        Path(args.json).write_text(json.dumps(session.result, indent=1))
    text = markdown(session.result)
    if args.markdown:
        Path(args.markdown).write_text(text)
    print(text)
    return 0 if all(c["good"] for part in ("checks", "sanitizer")
                    for c in session.result[part].values()) else 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="record the work, where ctxc is built")
    packing.add_argument("build")
    packing.add_argument("folder")
    packing.add_argument("--target", default="cuda:sm_90")
    packing.add_argument("--kinds", type=lambda text: text.split(","), default="check,time,quantised,prompt",
                         help="of work: any of check, time, quantised, prompt")
    packing.add_argument("--models", type=lambda text: text.split(","),
                         default=",".join(MODELS), help="that are timed")
    packing.add_argument("--small", action="store_true", help="small models, to try the script")
    running = verbs.add_parser("run", help="measure, where the GPU is")
    running.add_argument("folder")
    running.add_argument("--json")
    running.add_argument("--markdown")
    running.add_argument("--minutes", type=float, default=MINUTES,
                         help="after which nothing is begun; single steps' limits grow with it")
    running.add_argument("--repeats", type=int, default=30)
    running.add_argument("--copy-mib", type=int, default=4096, help="of the copy that is timed")
    args = parser.parse_args()
    if args.verb == "pack":
        return pack(args)
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
