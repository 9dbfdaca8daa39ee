#!/usr/bin/env python3
"""Writes the logits of transformers' full run (float32, eager attention), for comparisons.

  full_logits.py CHECKPOINT --tokens 2,818,5279 -o logits.safetensors
  full_logits.py CHECKPOINT --tokens @ids.txt -o logits.safetensors

FILE gets one tensor, `logits` (T, V) float32.
"""

import argparse
import sys
from pathlib import Path

import torch
from judge import BadInput, integers, load_checkpoint
from safetensors.torch import save_file


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="Hugging Face directory")
    parser.add_argument("--tokens", required=True, metavar="IDS",
                        help="comma-separated token ids, or @FILE that holds them")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    args = parser.parse_args()
    try:
        text = Path(args.tokens[1:]).read_text() if args.tokens.startswith("@") else args.tokens
        tokens = integers(text, "--tokens")
        model = load_checkpoint(args.checkpoint)
        if not tokens or min(tokens) < 0 or max(tokens) >= model.config.vocab_size:
            raise BadInput(f"--tokens: expected ids from 0 to {model.config.vocab_size - 1}")
        with torch.no_grad():
            logits = model(torch.tensor([tokens]), use_cache=False).logits[0].contiguous()
        save_file({"logits": logits}, args.output)
        return 0
    except (BadInput, OSError) as error:
        print(f"full_logits: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
