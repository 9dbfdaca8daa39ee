#!/usr/bin/env python3
"""Compares ctxc's logits at chosen positions of a long prompt with transformers' own.

  long_contexts.py CTXC [CHECKPOINT...] [--random] [--tokens N] [--tolerance X]

With --random also a small Llama with random weights, without a window and (as a Mistral) with one. The tokens
are random. Positions are those around the edges of windows, of attention's tiles and of a prompt's chunks, and
the last one: at each, the full run's logits must be transformers', and the token with its patch must give them
without its context. Prints a line of JSON for each model. Exit code: 0 if all of this holds, otherwise 1.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

import judge
import torch
import transformers
from masks import masks
from programs import run
from safetensors.torch import load_file

CHUNK = 1024
SIZES = dict(vocab_size=199, hidden_size=48, intermediate_size=96, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1 << 16)


def random_models(folder):
    torch.manual_seed(7)
    models = {"llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)),
              "mistral": transformers.MistralForCausalLM(
                  transformers.MistralConfig(**SIZES, sliding_window=200))}
    for name, model in models.items():
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:  # large enough that the context matters
                    parameter.normal_(0, parameter.shape[1] ** -0.5)
        model.save_pretrained(Path(folder) / name)
        yield Path(folder) / name


def chosen(config, count):
    edges = {1, 128, CHUNK, 2 * CHUNK, count // 2, count - 1, getattr(config, "sliding_window", None) or 1}
    near = {edge + more for edge in edges for more in (-1, 0, 1)}
    return sorted(position for position in near if 1 <= position < count)


@torch.no_grad()
def expected(model, tokens, positions):
    """transformers' logits at `positions`, chunk by chunk over a cache that keeps all."""
    cache, rows = transformers.DynamicCache(), []
    for begin in range(0, len(tokens), CHUNK):
        end = min(begin + CHUNK, len(tokens))
        mask = masks(model.config, list(range(begin, end)), list(range(end)))
        hidden = model.model(torch.tensor([tokens[begin:end]]), attention_mask=mask, past_key_values=cache,
                             position_ids=torch.arange(begin, end)[None], use_cache=True).last_hidden_state
        rows += [hidden[0, position - begin] for position in positions if begin <= position < end]
    return model.lm_head(torch.stack(rows))


def compare(args, checkpoint, folder):
    model = judge.load_checkpoint(str(checkpoint))
    generator = random.Random(3)
    tokens = [generator.randrange(model.config.vocab_size) for _ in range(args.tokens)]
    positions = chosen(model.config, args.tokens)
    ids, logits = Path(folder) / "ids.txt", Path(folder) / "logits.safetensors"
    ids.write_text(",".join(map(str, tokens)))
    done = run([args.ctxc, "verify", checkpoint, "--tokens", f"@{ids}", "--dtype", "f32", "--positions",
                ",".join(map(str, positions)), "--logits", logits])
    if done.returncode not in (0, 1):
        sys.exit(f"long_contexts: ctxc verify gives exit code {done.returncode}\n{done.stderr}")
    found = load_file(logits)
    linf = (found["full"] - expected(model, tokens, positions)).abs().max().item()
    control = (found["full"] - found["control"]).abs().max().item()
    good = done.returncode == 0 and linf <= args.tolerance < control
    print(json.dumps({"model": checkpoint.name, "tokens": args.tokens, "positions": positions, "linf": linf,
                      "controlLinf": control, "verified": done.returncode == 0, "good": good}))
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="*", type=Path)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--tokens", type=int, default=2500)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = args.checkpoints + (list(random_models(folder)) if args.random else [])
        return 0 if all([compare(args, model, folder) for model in models]) else 1


if __name__ == "__main__":
    sys.exit(main())
