#!/usr/bin/env python3
"""Judges the adapters that ctxc writes: PEFT's logits in transformers, and GGUF's numbers.

  adapters.py CTXC CHECKPOINT… [--tokens N]

For every checkpoint and every plan that `ctxc check --plans` lists except fragile ones, and for the last plan
also with a kept token:
  peft       PEFT loads the directory onto transformers' model, whose files are as they were; the last
             token alone gives the full run's logits, and without the adapter it does not
  gguf-lora  the gguf package reads the file; its names are those of the package's own map, and B A is the
             patch file's u v^T (transposed where the checkpoint stores inputs first), bit for bit
A plan that patches a vector or an expert must be refused in both formats; the message must name a plan that
would be accepted, or say that there is none. Exit code: 0 if all of this holds.
"""
import argparse
import json
import re
import sys
import tempfile
import warnings
from pathlib import Path

import gguf
import numpy as np
import peft
import torch
import transformers
from safetensors.numpy import load_file

import judge
import programs

TOLERANCE, FACTOR = 1e-3, 100


def plans(ctxc, checkpoint):
    """The parameters of each plan that all layers have."""
    report = json.loads(programs.run(
        [ctxc, "check", checkpoint, "--plans", "--format", "json"], check=True).stdout)
    lists = [[",".join(plan["parameters"]) for plan in group["plans"] if "fragility" not in plan]
             for group in report["groups"]]
    return [plan for plan in lists[0] if all(plan in others for others in lists)]


def patch(ctxc, checkpoint, out, form, options):
    return programs.run([ctxc, "patch", checkpoint, *options, "--backend", "reference",
                         f"--format={form}", "-o", out])


@torch.no_grad()
def peft_logits(checkpoint, adapter):
    """The errors of the last token's logits with the adapter and without it."""
    model = judge.load_checkpoint(checkpoint)
    with judge.safe_open(adapter / "adapter_model.safetensors", framework="pt") as file:
        meta = file.metadata()
    tokens = judge.integers(meta["tokens"], "tokens")
    kept = judge.integers(meta["kept"], "kept")
    full = judge.full_run(model, tokens)
    control = judge.last_token(model, tokens, kept, judge.kept_cache(model, tokens, kept), {})
    cache = judge.kept_cache(model, tokens, kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("error", UserWarning)  # a key that is missing or left over is a warning only
        adapted = peft.PeftModel.from_pretrained(model, adapter).eval()
    found = judge.last_token(adapted, tokens, kept, cache, {})
    return (found - full).abs().max().item(), (control - full).abs().max().item()


def gguf_architecture(checkpoint):
    """The gguf package's architecture of this name, if there is one."""
    name = json.loads((Path(checkpoint) / "config.json").read_text())["model_type"].replace("_", "")
    return next((arch for arch in gguf.MODEL_ARCH_NAMES.values()
                 if arch.replace("-", "").replace("_", "") == name), None)


def gguf_problem(checkpoint, path, patch_file):
    """The errors in the GGUF file."""
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    reader = gguf.GGUFReader(path)
    fields = {key: field.contents() for key, field in reader.fields.items()}
    if (fields["general.type"], fields["adapter.type"], fields["adapter.lora.alpha"]) != (
            "adapter", "lora", 1.0):
        return f"fields {fields}"
    arch = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[fields["general.architecture"]]
    names = gguf.get_tensor_name_map(arch, config.get("num_hidden_layers", config.get("n_layer")))
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    expected = load_file(patch_file)
    for key, u in expected.items():
        if not key.endswith(".u"):
            continue
        v, module = expected[key[:-1] + "v"], key[:-len(".weight.u")]
        name = names.get_name(module) or names.get_name(f"transformer.{module}") \
            or names.get_name(module.removeprefix("bert."))
        a, b = tensors.pop(f"{name}.weight.lora_a"), tensors.pop(f"{name}.weight.lora_b")
        change = u @ v.T
        if config["model_type"] == "gpt2":
            change = change.T
        if not np.array_equal(b @ a, change):
            return f"{name}: B A is not the patch"
    return f"more tensors than the patch: {sorted(tensors)}" if tensors else ""


def is_matrix(checkpoint, parameter):
    shapes = judge.stored_shapes(checkpoint)
    found = [shape for name, shape in shapes.items() if name.endswith(f".0.{parameter}")]
    is_bank = "*" in parameter or ".experts." in parameter  # of matrices, or of biases
    return not is_bank and found != [] and all(len(shape) == 2 for shape in found)


def check_refusals(ctxc, checkpoint, plan, options, holdable, folder):
    good = True
    for form in ("peft", "gguf-lora"):
        out = folder / "refused"
        done = patch(ctxc, checkpoint, out, form, options)
        advice = re.search(r"expected --plan (\S+)", done.stderr)
        right = advice and advice[1] in holdable if holdable else "no plan of this model" in done.stderr
        if done.returncode != 2 or not right or out.exists() or list(folder.glob("refused*")):
            print(f"  {plan}: {form}: not refused as it should be: {done.returncode} {done.stderr}")
            good = False
    return good


def check_adapters(ctxc, checkpoint, plan, options, folder):
    files = {form: folder / form for form in ("patch", "peft", "gguf-lora")}
    for form, out in files.items():
        done = patch(ctxc, checkpoint, out, form, options)
        if "no GGUF architecture is known" in done.stderr and not gguf_architecture(checkpoint):
            continue
        if done.returncode:
            print(f"  {plan}: {form}: {done.stderr}")
            return False
    error, control = peft_logits(checkpoint, files["peft"])
    problem = ""
    if files["gguf-lora"].exists():
        problem = gguf_problem(checkpoint, files["gguf-lora"], files["patch"])
    good = error <= TOLERANCE and control > FACTOR * error and not problem
    print(f"  {'' if good else 'WRONG: '}{plan}: PEFT L∞ {error:.2g}, without it {control:.3g}"
          f"{'; GGUF: ' + problem if problem else ''}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    parser.add_argument("--tokens", default="5,17,3,60,22,41")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    good, judged = True, 0
    for checkpoint in args.checkpoints:
        print(checkpoint, flush=True)
        every = plans(args.ctxc, checkpoint)
        holdable = [plan for plan in every
                    if all(is_matrix(checkpoint, parameter) for parameter in plan.split(","))]
        for plan in every:
            options = ["--tokens", args.tokens, "--plan", plan]
            with tempfile.TemporaryDirectory() as folder:
                if plan not in holdable:
                    good &= check_refusals(args.ctxc, checkpoint, plan, options, holdable, Path(folder))
                    continue
                good &= check_adapters(args.ctxc, checkpoint, plan, options, Path(folder))
                judged += 1
        if holdable and not judge.is_encoder(checkpoint):
            with tempfile.TemporaryDirectory() as folder:
                good &= check_adapters(args.ctxc, checkpoint, f"{holdable[-1]}, a token kept",
                                       ["--tokens", args.tokens, "--plan", holdable[-1], "--keep", "1"],
                                       Path(folder))
    print(f"{judged} plans judged")
    return 0 if good and judged else 1


if __name__ == "__main__":
    sys.exit(main())
