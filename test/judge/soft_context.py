#!/usr/bin/env python3
"""Judges patches for contexts of embeddings, with transformers' inputs_embeds.

  soft_context.py CTXC CHECKPOINT…

For every checkpoint, `ctxc patch --embeddings` gets embeddings among the tokens: one that is a token's own, one
halfway between those of two tokens, and one with noise. The full run of transformers reads the same embeddings as
inputs_embeds. The last token alone, with the patch in the weights, must give the same logits; without the patch it
must not, and neither must the patch agree with a full run in which an embedding was changed. Exit code: 0 if all of
this holds.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import judge
import programs

TOLERANCE, FACTOR = 1e-3, 100
TOKENS, AT = [5, 17, 3, 8, 22, 9], 2


def own_rows(model, tokens):
    """The embeddings of tokens."""
    return model.get_input_embeddings()(torch.tensor(tokens))


def given_rows(model, generator):
    """The embeddings for inputs_embeds: a token's own, one halfway between two, one with noise."""
    one, two, three, four = own_rows(model, [30, 31, 32, 33])
    noise = torch.randn(four.shape, generator=generator) * four.std()
    return torch.stack([one, (two + three) / 2, four + noise])


def full_run(model, rows):
    tokens = own_rows(model, TOKENS)
    embeds = torch.cat([tokens[:AT], rows, tokens[AT:]])[None]
    if model.config.model_type in judge.ENCODERS:
        return model(inputs_embeds=embeds).logits[0, -1]
    judge.place_local_masks(model, list(range(embeds.shape[1])), [])
    judge.place_slopes(model, list(range(embeds.shape[1])))
    return model(inputs_embeds=embeds, use_cache=False, logits_to_keep=1).logits[0, -1]


def patch(ctxc, checkpoint, rows, folder):
    np.save(folder / "rows.npy", rows.numpy())
    out = folder / "patch.safetensors"
    programs.run(
        [ctxc, "patch", checkpoint, "--tokens", ",".join(map(str, TOKENS)),
         "--embeddings", folder / "rows.npy", "--embeddings-at", str(AT), "-o", out],
        check=True)
    return out


def distance(a, b):
    return (a - b).abs().max().item()


@torch.no_grad()
def judged(ctxc, checkpoint):
    model = judge.load_checkpoint(checkpoint)
    generator = torch.Generator().manual_seed(1)
    rows = given_rows(model, generator)
    # Granite multiplies inputs_embeds by its factor; the embeddings given to ctxc come after it.
    factor = getattr(model.config, "embedding_multiplier", 1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = patch(ctxc, checkpoint, rows * factor, Path(folder))
        with judge.safe_open(path, framework="pt") as file:
            assert file.metadata()["tokens"] == "5,17,row,row,row,3,8,22,9", file.metadata()
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}
    deltas = judge.dense_deltas(path, tensors, model)
    full = full_run(model, rows)
    other = rows.clone()
    other[1] += 0.5 * rows[1].std() * torch.randn(rows[1].shape, generator=generator)
    # Of the tokens, reduced_run reads only the last one and their number.
    places = [0] * (len(TOKENS) + len(rows) - 1) + TOKENS[-1:]
    return {"patched": distance(judge.reduced_run(model, places, [], deltas), full),
            "control": distance(judge.reduced_run(model, places, [], {}), full),
            "other row": distance(full_run(model, other), full)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc")
    parser.add_argument("checkpoints", nargs="+")
    args = parser.parse_args()
    failed = False
    for checkpoint in args.checkpoints:
        found = judged(args.ctxc, checkpoint)
        good = found["patched"] <= TOLERANCE and all(
            found[name] > FACTOR * found["patched"] and found[name] > 0.01
            for name in ("control", "other row"))
        failed |= not good
        print(f"{'good' if good else 'BAD '} {Path(checkpoint).name:12}",
              *(f"{name} {value:.2e}" for name, value in found.items()), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
