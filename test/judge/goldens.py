#!/usr/bin/env python3
"""Judges every family by transformers: ctxc's full run and its patches, for each golden.

  goldens.py CTXC GOLDENS PAGE [--only NAME...] [--rounded NAME...] [--shard I/N]

GOLDENS is a folder of checkpoints; one without golden.safetensors has a config alone and is left out.
For the default plan and for that of --objective fewest-parameters:
  - `ctxc verify` of three tokens: each full run's logits against transformers', each patched run's
    against ctxc's own
  - `ctxc patch` without kept tokens, with contiguous ones and with gaps, and, of the default plan,
    with the other update and the other split where it has them; each file is judged (judge.py)
and once more, with the default plan, on the weights rounded to bf16 and to f16, of all or of those that --rounded
names. Of an encoder one token is verified, and none kept.

PAGE, docs/judged-families.md, must have a row for each golden and plan; with CTXC_WRITE_DOCS=1 in the
environment the rows are written. Exit code: 0 when all of it holds, else 1.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import figures
import judge
import programs
import torch
import transformers
from figures import Row, figure
from safetensors.torch import load_file, safe_open, save_file

TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"
STEPS = 3
CONTEXTS = [[], ["--keep", "0-3"], ["--keep", "1,4-5,9"]]
# The options that a plan may leave open, and the words with which ctxc says that one does not
# apply.
VARIANTS = [["--update", "balanced"], ["--split", "least-norm"]]
PLANS = {"default": [], "fewest-parameters": ["--objective", "fewest-parameters"]}
STORAGE = {"bf16": torch.bfloat16, "f16": torch.float16}


class Failed(Exception):
    """A run of ctxc that gave no figure; its text is the whole message."""


class Ctxc:
    """ctxc on one checkpoint; its runs write their files to `folder`."""

    def __init__(self, program, checkpoint, folder):
        self.program, self.checkpoint, self.folder = program, str(checkpoint), Path(folder)
        self.files = 0
        encoder = judge.is_encoder(checkpoint)
        self.steps, self.contexts = (1, [[]]) if encoder else (STEPS, CONTEXTS)

    def run(self, command, *options):
        return programs.run([self.program, command, self.checkpoint, "--threads", "1", *options])

    def new_file(self):
        self.files += 1
        return self.folder / f"file-{self.files}"

    def verify(self, options):
        """The report, and the logits of the full runs."""
        report, logits = self.new_file(), self.new_file()
        done = self.run("verify", "--tokens", TOKENS, "--generate", str(self.steps), "--json", report,
                        "--logits", logits, *options)
        if done.returncode:
            raise Failed(f"ctxc verify {' '.join(options)}: exit code {done.returncode}: {done.stderr}")
        return json.loads(report.read_text()), load_file(logits)["full"]

    def patch(self, options):
        """A patch file; None where an option of VARIANTS does not apply."""
        file = self.new_file()
        done = self.run("patch", "--tokens", TOKENS, "-o", file, *options)
        if any(f"{variant[0]}: applies to" in done.stderr for variant in VARIANTS):
            return None
        if done.returncode:
            raise Failed(f"ctxc patch {' '.join(options)}: exit code {done.returncode}: {done.stderr}")
        return file


def full_error(model, report, logits, steps):
    """The largest difference of the full runs' logits from transformers'."""
    tokens, worst = list(report["settings"]["tokens"]), 0.0
    for step, found in zip(report["steps"], logits):
        worst = max(worst, (found - judge.full_run(model, tokens)).abs().max().item())
        tokens.append(step["next"])
    return worst if len(logits) == steps else float("nan")


def has_experts(checkpoint):
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    return "num_experts_per_tok" in config


def judge_patches(judged, files, problems):
    """The largest error of the patch files in transformers, and the smallest error without them."""
    patched, control = [], []
    for what, file in files:
        measured = judged.measure(judge.read_patch(file, judged.model))
        patched.append(measured["linf_patched"])
        control.append(measured["linf_control"])
        if not (patched[-1] <= figures.REPLAY and control[-1] > figures.CONTROL
                and control[-1] > figures.FACTOR * patched[-1]):
            problems.append(f"patch {what}: L∞ {figure(patched[-1])}, without it "
                            f"{figure(control[-1])}")
        if has_experts(judged.model.name_or_path) and not measured.get("routed_apart_control", 0):
            problems.append(f"patch {what}: full run and control select the same experts")
    return max(patched), min(control)


def patch_files(ctxc, options, contexts=None, variants=VARIANTS):
    """(description, file) of each patch: all contexts, and all variants without kept tokens."""
    every = [context + options for context in contexts or ctxc.contexts] + [options + variant for variant in variants]
    files = [(" ".join(each) or "by default", ctxc.patch(each)) for each in every]
    return [(what, file) for what, file in files if file]


def plan_text(report):
    """The patched parameters as `ctxc` lists them, F; G. Layers are named where they differ."""
    parts = [part.strip() for part in report["settings"]["plan"].splitlines()]
    if len(parts) == 1:
        parts = [parts[0].partition(": ")[2]]
    return "<br>".join(part.replace("*", "\\*") for part in parts)


def cast(checkpoint, folder, dtype):
    """Writes the checkpoint with its floating-point tensors as `dtype` to `folder`. Returns the reason if that
    is not possible."""
    for path in judge.weight_files(checkpoint):
        with safe_open(path, framework="pt") as file:
            types = {file.get_slice(name).get_dtype() for name in file.keys()}
        if not types <= {"F32", "F16", "BF16", "F64", "BOOL", "I32", "I64"}:
            return "stored quantised"
    folder.mkdir()
    for path in Path(checkpoint).glob("*.json"):
        shutil.copy(path, folder)
    config = json.loads((folder / "config.json").read_text())
    for key in ("dtype", "torch_dtype"):
        if key in config:
            config[key] = str(dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps(config))
    for path in judge.weight_files(checkpoint):
        tensors = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor
                   for name, tensor in load_file(path).items()}
        save_file(tensors, folder / path.name, metadata={"format": "pt"})
    return None


def judge_storage(program, checkpoint, name, problems):
    """The cell of a storage type."""
    with tempfile.TemporaryDirectory() as folder:
        rounded = Path(folder) / "rounded"
        reason = cast(checkpoint, rounded, STORAGE[name])
        if reason:
            return reason
        ctxc, judged = Ctxc(program, rounded, folder), judge.Judge(rounded)
        report, logits = ctxc.verify([])
        if report["settings"]["dtype"] != name:
            problems.append(f"{name}: ctxc runs it as {report['settings']['dtype']}")
        full = full_error(judged.model, report, logits, ctxc.steps)
        files = patch_files(ctxc, [], contexts=[[]], variants=[])
        return f"{figure(full)} / {figure(judge_patches(judged, files, problems)[0])}"


def judge_golden(program, checkpoint, storages):
    """The rows of one checkpoint, and the errors in them."""
    rows, problems = [], []
    with tempfile.TemporaryDirectory() as folder:
        ctxc, judged = Ctxc(program, checkpoint, folder), judge.Judge(checkpoint)
        for plan, options in PLANS.items():
            report, logits = ctxc.verify(options)
            if rows and plan_text(report) == rows[0].cells["patched"]:
                rows[0].plan = ", ".join(PLANS)
                continue
            # judge.plans judges every plan with both splits.
            files = patch_files(ctxc, options, variants=[] if rows else VARIANTS)
            patched, control = judge_patches(judged, files, problems)
            rows.append(Row(checkpoint.name, plan, {
                "patched": plan_text(report),
                "full run": figure(full_error(judged.model, report, logits, ctxc.steps)),
                "same process": figure(report["summary"]["linf"]),
                "predicted": figure(report["summary"]["replayError"]),
                "other program": figure(patched), "control": figure(control),
                "bf16": "", "f16": ""}))
    for name in storages:
        rows[0].cells[name] = judge_storage(program, checkpoint, name, problems)
    return rows, problems + [f"{row.plan}: {text}" for row in rows
                             for text in figures.beyond_limits(row)]


def judge_all(program, goldens, rounded):
    rows, good = [], True
    for checkpoint in goldens:
        try:
            storages = STORAGE if rounded is None or checkpoint.name in rounded else ()
            found, problems = judge_golden(program, checkpoint, storages)
        except (Failed, judge.BadInput) as error:
            found, problems = [], [str(error)]
        for row in found:
            print(row.line(), flush=True)
        for text in problems:
            print(f"WRONG: {checkpoint.name}: {text}", flush=True)
        rows += found
        good = good and not problems
    return rows, good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("goldens", metavar="GOLDENS", type=Path)
    parser.add_argument("page", metavar="PAGE", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--rounded", nargs="+", metavar="NAME")
    parser.add_argument("--shard", default="0/1", metavar="I/N")
    args = parser.parse_args()
    if os.environ.get("CTXC_WRITE_DOCS"):
        args.only = args.rounded = None  # the page has all of all
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    families = sorted(path.parent.name for path in args.goldens.glob("*/golden.safetensors"))
    index, parts = map(int, args.shard.split("/"))
    chosen = [name for name in families if not args.only or name in args.only][index::parts]
    rows, good = judge_all(args.ctxc, [args.goldens / name for name in chosen], args.rounded)
    if os.environ.get("CTXC_WRITE_DOCS"):
        figures.write(args.page, rows, families)
    stale = figures.faults(args.page, rows, families)
    for text in stale:
        print(f"{args.page}: {text}; CTXC_WRITE_DOCS=1 ctest -R judge.goldens writes it")
    programs.close()
    seconds = [resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{len(chosen)} goldens; {seconds[0]:.0f} s here, {seconds[1]:.0f} s in ctxc")
    return 0 if good and rows and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
