#!/usr/bin/env python3
"""Judges joint patches: one LoRA that is exact for every token of a text, by PEFT on transformers' model.

  joint.py CTXC CHECKPOINT… [--tokens K,…] [--context N] [--difference X] [--bf16]

For every checkpoint `ctxc patch --joint` makes a patch of K tokens behind a context. PEFT loads it onto transformers' model,
which then reads the text without the context: the logits of every token are those of transformers' own model behind the
context, with K tokens, and at least a thousand times nearer than without the patch. The first j ranks of a patch are that of
the first j tokens. One token more than the capacity that ctxc names is refused, and two texts whose first tokens collide with
a kept one are, by their names. With --bf16 the checkpoint is rounded to bfloat16 first: transformers reads the same
numbers, in float32; and in bfloat16's arithmetic the likeliest token has to be the same wherever its lead is more than what
these roundings change of the model with the context itself; the context's first token then stays in front, since attention rests
on it. Exit code: 0 if all agree."""
import argparse
import json
import random
import re
import sys
import tempfile
import warnings
from pathlib import Path

import judge
import peft
import programs
import torch
from safetensors.torch import load_file, save_file

# In which two equal tokens at the beginning read different things: by their positions, or by sinks of each head.
DISTINGUISHES = ["gpt2", "opt", "gpt_oss"]


def tokens(seed, count, vocabulary):
    source = random.Random(seed)
    return [source.randrange(3, vocabulary) for _ in range(count)]


def patch(ctxc, checkpoint, context, texts, out, *options):
    lines = out.with_suffix(".jsonl")
    lines.write_text("".join(json.dumps({"prompt": [], "answer": text}) + "\n" for text in texts))
    return programs.run([ctxc, "patch", checkpoint, "--joint", "--context-tokens", ",".join(map(str, context)), "--text", lines,
                         "-o", out, *options])


@torch.no_grad()
def logits_behind(model, front, text):
    return model(torch.tensor([front + text])).logits[0, len(front):].double()


def cut(adapter, ranks, out):
    """The adapter of the first ranks alone."""
    out.mkdir()
    config = json.loads((adapter / "adapter_config.json").read_text())
    config["rank_pattern"] = config["alpha_pattern"] = {}
    config["r"] = config["lora_alpha"] = ranks
    (out / "adapter_config.json").write_text(json.dumps(config))
    tensors = load_file(adapter / "adapter_model.safetensors")
    save_file({name: (each[:ranks] if ".lora_A." in name else each[:, :ranks]).contiguous() for name, each in tensors.items()},
              out / "adapter_model.safetensors")
    return out


def expect_bf16(args, checkpoint, expect):
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "stored"
        judge.load_checkpoint(checkpoint).to(torch.bfloat16).save_pretrained(stored)
        base = judge.load_checkpoint(stored).eval()
        vocabulary = base.config.get_text_config().vocab_size
        for count in map(int, args.tokens.split(",")):
            context, text = tokens(1, args.context, vocabulary), tokens(2, count, vocabulary)
            out = Path(folder) / f"{count}"
            run = patch(args.ctxc, stored, context, [text], out, "--keep", "0")
            if run.returncode != 0:
                expect(False, f"{checkpoint.name} in bf16, {count}: {run.stderr.strip()}")
                continue
            full, plain = logits_behind(base, context, text), logits_behind(base, context[:1], text)
            model = peft.PeftModel.from_pretrained(base, out).eval()
            found = logits_behind(model, context[:1], text)
            error, control = ((each - full).abs().max().item() for each in (found, plain))
            same = (found.argmax(-1) == full.argmax(-1)).sum().item()
            expect(error < args.difference and control > 1000 * error and same == count,
                   f"{checkpoint.name} in bf16, {count} tokens: {error:.1e}, without the patch {control:.2g}, "
                   f"likeliest token the same at {same} of {count}")
            base = model.unload()
            narrow = base.to(torch.bfloat16)
            rounded = logits_behind(narrow, context, text)
            model = peft.PeftModel.from_pretrained(narrow, out).eval()
            found = logits_behind(model, context[:1], text)
            lead = rounded.topk(2).values
            clear = lead[:, 0] - lead[:, 1] > 2 * (rounded - full).abs().amax(-1)
            same = found.argmax(-1) == rounded.argmax(-1)
            expect((same | ~clear).all(),
                   f"{checkpoint.name} in bf16's arithmetic, {count} tokens: likeliest token the same at {same.sum().item()} of "
                   f"{count}, {clear.sum().item()} of which lead clearly")
            base = model.unload().float()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc")
    parser.add_argument("checkpoints", nargs="+", type=Path)
    parser.add_argument("--tokens", default="8")
    parser.add_argument("--context", type=int, default=12)
    parser.add_argument("--difference", type=float, default=1e-3)
    parser.add_argument("--bf16", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    failures = 0

    def expect(holds, text):
        nonlocal failures
        failures += not holds
        print(text, "" if holds else "FAILS", flush=True)

    for checkpoint in args.checkpoints:
        if args.bf16:
            expect_bf16(args, checkpoint, expect)
            continue
        base = judge.load_checkpoint(checkpoint).eval()
        vocabulary = base.config.get_text_config().vocab_size
        with tempfile.TemporaryDirectory() as folder:
            for count in map(int, args.tokens.split(",")):
                context, text = tokens(1, args.context, vocabulary), tokens(2, count, vocabulary)
                out = Path(folder) / f"{count}"
                run = patch(args.ctxc, checkpoint, context, [text], out)
                if run.returncode != 0:
                    expect(False, f"{checkpoint.name}, {count}: {run.stderr.strip()}")
                    continue
                front = json.loads((out / "joint.json").read_text())["prefix"]  # where attention rests on a run's first token
                full = logits_behind(base, context, text)
                plain = logits_behind(base, front, text)
                model = peft.PeftModel.from_pretrained(base, out).eval()
                found = logits_behind(model, front, text)
                error, control = ((each - full).abs().max().item() for each in (found, plain))
                same = (found.argmax(-1) == full.argmax(-1)).sum().item()
                expect(error < args.difference and control > 1000 * error and same == count,
                       f"{checkpoint.name}, {count} tokens: {error:.1e}, without the patch {control:.2g}, "
                       f"likeliest token the same at {same} of {count}")
                base = model.unload()
                # The first ranks are the patch of the first tokens.
                half = count // 2
                if half:
                    model = peft.PeftModel.from_pretrained(base, cut(out, half, Path(folder) / f"{count}-half")).eval()
                    error = (logits_behind(model, front, text)[:half] - full[:half]).abs().max().item()
                    expect(error < args.difference, f"{checkpoint.name}, its first {half} ranks: {error:.1e}")
                    base = model.unload()
            run = patch(args.ctxc, checkpoint, context, [tokens(3, 1 << 14, vocabulary)], Path(folder) / "much")
            most = re.search(r"exact for at most as many tokens; found", run.stderr)
            expect(run.returncode == 2 and most, f"{checkpoint.name}, too many: {run.stderr.strip()[-200:]}")
            run = patch(args.ctxc, checkpoint, context, [context[:1] + text[:2]], Path(folder) / "twice", "--keep", "0")
            if base.config.model_type in DISTINGUISHES:
                expect(run.returncode == 0, f"{checkpoint.name}, the kept token again: {run.stderr.strip()}")
            else:
                expect(run.returncode == 2 and re.search("it reads the same for .* in front and for .* at place 0", run.stderr),
                       f"{checkpoint.name}, the kept token again: {run.stderr.strip()[-300:]}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
