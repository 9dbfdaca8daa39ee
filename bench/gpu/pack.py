"""Records the work of bench/gpu.py, where ctxc is built: `gpu.py pack`."""

import gzip
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import models
from models import CONTEXT

ROOT = Path(__file__).resolve().parent.parent.parent
PROMPT, ROWS = 4096, 1024  # tokens of the prompt, and of a chunk


def output_of(command, **options):
    """The output of the command; an error with its last line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise RuntimeError(lines[-1])
    return done.stdout


def packed(path):
    with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=6) as small:
        shutil.copyfileobj(plain, small)
    path.unlink()


def costs_of(text):
    """The output of --emit=cost as numbers: bytes of weights for a token, and all bytes of each kernel."""
    tokens, kernels = {}, {}
    into = None
    for line in text.splitlines():
        if line.startswith("a token") or line.startswith("a kernel"):
            into = tokens if line.startswith("a token") else kernels
        elif into is not None and line.strip():
            *name, first, weights, cache, patch, activations, operations = line.split()
            into[" ".join(name)] = dict(weights=int(weights), operations=int(operations),
                                        bytes=int(weights) + int(cache) + int(patch) +
                                        int(activations))
    return dict(tokens=tokens, kernels=kernels)


def pack(args):
    build, folder = Path(args.build), Path(args.folder)
    record, ctxc = build / "bin/ctxc-gpu-record", build / "bin/ctxc"
    folder.mkdir(parents=True, exist_ok=True)
    replay = folder / "ctxc-gpu-replay"
    shutil.copy2(build / "bin/ctxc-gpu-replay", replay)
    if strip := shutil.which("strip"):
        subprocess.run([strip, "-s", replay], check=True)
    entries = []
    standin = dict(os.environ, LD_LIBRARY_PATH=str(build / "test/fake-gpu"))
    checked = models.CHECKED[:1] if args.small else models.CHECKED
    for path, dtype in checked if "check" in args.kinds else []:
        entry = dict(kind="check", name=f"{Path(path).name} {dtype}", model=path,
                     file=f"check-{Path(path).name}-{dtype}")
        entries.append(entry)
        try:
            output_of([record, ROOT / path, "-o", folder / entry["file"], "--execute", "--dtype",
                       dtype, "--context", "5", "--target", args.target], env=standin)
            packed(folder / entry["file"])
        except RuntimeError as error:
            entry["why"] = str(error)
    for kind in models.QUANTISED[:1 if args.small else None] if "check" in args.kinds else []:
        entries.append(pack_quantised_check(args, record, folder, kind, standin))
    for kind in models.QUANTISED if "quantised" in args.kinds else []:
        entries.append(pack_quantised(args, record, ctxc, folder, kind))
    timed = {"small-llama": models.SMALL["small-llama"]} if args.small else \
        {name: models.MODELS[name] for name in args.models}
    for name, config in timed.items() if "time" in args.kinds else []:
        context = 7 if args.small else CONTEXT
        entry = dict(kind="time", name=name, file=f"time-{name}", context=context)
        entries.append(entry)
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "config.json").write_text(json.dumps(config))
            try:
                output_of([record, directory, "-o", folder / entry["file"], "--dtype", "bf16",
                           "--context", str(context), "--target", args.target])
                packed(folder / entry["file"])
                entry["cost"] = costs_of(output_of(
                    [ctxc, "compile", directory, "--emit=cost", "--dtype", "bf16",
                     f"--target={args.target}", "-o", "-"]))
            except RuntimeError as error:
                entry["why"] = str(error)
    for name, config in timed.items() if "prompt" in args.kinds else []:
        for rounded in (False, True):
            entries.append(pack_prompt(args, record, ctxc, folder, name, config, rounded))
    (folder / "manifest.json").write_text(json.dumps(entries, indent=1))
    size = sum(file.stat().st_size for file in folder.iterdir())
    for entry in entries:
        print(f"{entry['kind']:6} {entry['name']:20} {entry.get('why', 'recorded')}")
    print(f"{folder}: {size / 2**20:.1f} MiB")


def pack_quantised_check(args, record, folder, kind, standin):
    """A small Llama with random matrices in blocks, executed. Needs the Python package gguf."""
    entry = dict(kind="check", name=f"llama {kind}", file=f"check-llama-{kind}", quantised=True)
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "model.gguf"
        try:
            import numpy
            import sparse_gguf
            sparse_gguf.write(models.CHECKED_LLAMA, kind, model, numpy.random.default_rng(1))
            output_of([record, model, "-o", folder / entry["file"], "--execute", "--context", "5",
                       "--target", args.target], env=standin)
            packed(folder / entry["file"])
        except (ImportError, RuntimeError) as error:
            entry["why"] = str(error)
    return entry


def pack_quantised(args, record, ctxc, folder, kind):
    """Llama with matrices in blocks, as in a GGUF file. Needs the Python package gguf."""
    name, config = ("small-llama", models.SMALL["small-llama"]) if args.small else \
        ("llama-3.1-8b", models.LLAMA_8B)
    if args.small:
        config = config | dict(hidden_size=256, intermediate_size=256, head_dim=64)
    entry = dict(kind="time", name=f"{name} {kind}", file=f"time-{name}-{kind}", quantised=True)
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "model.gguf"
        try:
            import sparse_gguf
            sparse_gguf.write(config, kind, model)
            target = f"--target={args.target}"
            output_of([record, model, "-o", folder / entry["file"], "--context",
                       str(7 if args.small else CONTEXT), target])
            packed(folder / entry["file"])
            entry["cost"] = costs_of(output_of([ctxc, "compile", model, "--emit=cost", target, "-o",
                                                "-"]))
        except (ImportError, RuntimeError) as error:
            entry["why"] = str(error)
    return entry


def pack_prompt(args, record, ctxc, folder, name, config, rounded):
    tokens, rows = (12, 8) if args.small else (PROMPT, ROWS)
    form = "rounded" if rounded else "exact"
    entry = dict(kind="prompt", name=name, form=form, file=f"prompt-{name}-{form}", tokens=tokens,
                 rows=rows)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "config.json").write_text(json.dumps(config))
        common = ["--dtype", "bf16", f"--target={args.target}", "--rows", str(rows)]
        try:
            output_of([record, directory, "-o", folder / entry["file"], "--prompt", str(tokens),
                       *common, *["--round-prompts"] * rounded])
            packed(folder / entry["file"])
            costs = output_of([ctxc, "compile", directory, "--emit=cost", *common[:-1], "1",
                               "-o", "-"])
            head = 2 * config["vocab_size"] * config["hidden_size"]
            # A weight of two bytes takes part in one multiply-add for each token.
            entry["operations"] = tokens * (costs_of(costs)["tokens"]["forward"]["weights"] - head)
        except RuntimeError as error:
            entry["why"] = str(error)
    return entry
