#!/usr/bin/env python3
"""Judges joint patches of GGUF files by llama.cpp, which adds the LoRA to quantised weights.

  joint_gguf.py CTXC LLAMA.CPP FILE.gguf [--tokens K,…] [--context N]

`ctxc patch FILE.gguf --joint` makes a patch of K tokens behind a context. llama.cpp reads these tokens without the context
and with the LoRA: its likeliest tokens have to be those that it gives behind the context, and its logits at least ten times
nearer to those than without the LoRA. llama.cpp rounds activations to 8 bits where weights are quantised, in either run, so that
only tokens count whose likeliest one leads by more than LEAD. The context's first token stays in front: attention rests on
it, and no patch has to take its giant state back, of which such roundings would be left. Exit code: 0 if all agree."""
import argparse
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from joint import patch, tokens
from llama_cpp import LlamaCpp

LEAD = 0.3  # of a logit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc")
    parser.add_argument("llama", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--tokens", default="16,64")
    parser.add_argument("--context", type=int, default=40)
    args = parser.parse_args()
    llama = LlamaCpp(args.llama / "llama.so")
    vocabulary = len(gguf.GGUFReader(args.file).fields["tokenizer.ggml.tokens"].data)
    failures = 0
    for count in map(int, args.tokens.split(",")):
        context, text = tokens(1, args.context, vocabulary), tokens(2, count, vocabulary)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "lora.gguf"
            run = patch(args.ctxc, args.file, context, [text], out, "--keep", "0")
            if run.returncode != 0:
                print(f"{args.file.name}, {count} tokens: {run.stderr.strip()} FAILS")
                failures += 1
                continue

            def behind(front, adapter=None):
                data = llama.each(args.file, front + text, adapter)
                return np.frombuffer(data, np.float32).reshape(len(front) + count, -1)[len(front):].astype(np.float64)

            full, plain, found = behind(context), behind(context[:1]), behind(context[:1], out)
        error, control = np.abs(found - full).max(), np.abs(plain - full).max()
        same = found.argmax(-1) == full.argmax(-1)
        ordered = np.sort(full, -1)
        clear = ordered[:, -1] - ordered[:, -2] > LEAD
        holds = control > 10 * error and (same | ~clear).all()
        failures += not holds
        print(f"{args.file.name}, {count} tokens: {error:.1e}, without the patch {control:.2g}, likeliest token the same at "
              f"{same.sum()} of {count}, {clear.sum()} of which lead clearly {'' if holds else 'FAILS'}", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
