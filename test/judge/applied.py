#!/usr/bin/env python3
"""Judges checkpoints to which `ctxc apply` added an adapter: by PEFT on transformers' original model.

  applied.py CTXC CHECKPOINT…

transformers loads the directory, and its logits are those of the original model with the adapter, which PEFT adds:
of an adapter that `ctxc distil` fitted, with norms' scales and with a token in front; of a half of it
(--strength, against what `ctxc distil --strength` wrote); and of one that PEFT made, with rsLoRA's scale, other
ranks and alphas for some modules, and a norm as a whole (modules_to_save). As the control, the original model without
the adapter, and with the half in the place of the whole, differs a hundred times as much. Stored in 16 bits, it differs by
no more than rounding. Exit code: 0 if all of this holds.
"""
import argparse
import json
import random
import sys
import tempfile
import warnings
from pathlib import Path

import peft
import torch
import transformers

import judge
import lasting
import programs

TOLERANCE, FACTOR = 1e-4, 100
CONTEXT = random.Random(5).choices(range(3, 70), k=12)
TOKENS = random.Random(6).choices(range(3, 70), k=16)


@torch.no_grad()
def logits(model):
    return model(torch.tensor([TOKENS])).logits[0].double()


def load_whole(directory):
    """A directory that must be a whole model: transformers only warns of a tensor that is missing or left over."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, info = judge.load_checkpoint(directory, output_loading_info=True)
    problems = {key: value for key, value in info.items() if value}
    if problems:
        raise ValueError(f"{directory}: {problems}")
    return model.eval()


def applied(ctxc, checkpoint, adapter, out, *options):
    done = programs.run([ctxc, "apply", checkpoint, adapter, "-o", out, *options])
    if done.returncode:
        raise ValueError(f"ctxc apply: {done.stderr}")
    return logits(load_whole(out))


def distilled(ctxc, checkpoint, folder, out, *options):
    programs.run([ctxc, "distil", checkpoint, "--context-tokens", ",".join(map(str, CONTEXT)),
                  "--text", folder / "train.jsonl", "--held-out", folder / "train.jsonl", "--rank", "4",
                  "--anyway", "-o", out, *options], check=True)


def made_by_peft(checkpoint, modules, norm, folder):
    """An adapter of rsLoRA with two ranks and alphas, and of a norm as a whole."""
    model = judge.load_checkpoint(checkpoint)
    first = sorted(modules)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = peft.LoraConfig(
            r=3, lora_alpha=5, use_rslora=True, target_modules=modules, rank_pattern={first: 2},
            alpha_pattern={first: 7}, modules_to_save=[norm] if norm else None, task_type="CAUSAL_LM")
        adapted = peft.get_peft_model(model, config)
        torch.manual_seed(1)
        with torch.no_grad():
            for name, parameter in adapted.named_parameters():
                if "lora_" in name or "modules_to_save" in name:
                    parameter.add_(0.1 * torch.randn_like(parameter))
        adapted.save_pretrained(folder, save_embedding_layers=False)


def verdict(what, found, expected, controls):
    error = (found - expected).abs().max().item()
    nearest = min((found - control).abs().max().item() for control in controls)
    good = error <= TOLERANCE and nearest > FACTOR * error and nearest > FACTOR * TOLERANCE
    print(f"  {'' if good else 'WRONG: '}{what}: L∞ {error:.2g}, from the nearest control {nearest:.3g}",
          flush=True)
    return good


def judge_checkpoint(ctxc, checkpoint):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lasting.write_lines(folder / "train.jsonl", lasting.texts(1, 12, 70))
        distilled(ctxc, checkpoint, folder, folder / "whole", "--keep-share", "0.1")
        distilled(ctxc, checkpoint, folder, folder / "half", "--keep-share", "0.1", "--strength", "0.5")
        original = logits(judge.load_checkpoint(checkpoint))
        whole = logits(lasting.load(checkpoint, folder / "whole")[1])
        half = logits(lasting.load(checkpoint, folder / "half")[1])
        good = verdict("distilled", applied(ctxc, checkpoint, folder / "whole", folder / "a"), whole,
                       [original, half])
        good &= verdict("a half of it", applied(ctxc, checkpoint, folder / "whole", folder / "b",
                                                "--strength", "0.5"), half, [original, whole])
        rounded = (applied(ctxc, checkpoint, folder / "whole", folder / "c", "--dtype", "f16") - whole)
        if rounded.abs().max() > 0.05 * (whole - original).abs().max():
            print(f"  WRONG: in float16: L∞ {rounded.abs().max().item():.2g}")
            good = False
        config = json.loads((folder / "whole" / "adapter_config.json").read_text())
        norms = config.get("modules_to_save") or []
        # PEFT names parameters in the place of modules where a model has experts.
        modules = config["target_modules"] or [
            name.removesuffix(".weight") for name in config["target_parameters"]]
        made_by_peft(checkpoint, modules, norms[0] if norms else None, folder / "peft")
        good &= verdict("made by PEFT", applied(ctxc, checkpoint, folder / "peft", folder / "d"),
                        logits(lasting.load(checkpoint, folder / "peft")[1]), [original])
        return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    good = True
    for checkpoint in args.checkpoints:
        print(checkpoint, flush=True)
        good &= judge_checkpoint(args.ctxc, checkpoint)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
