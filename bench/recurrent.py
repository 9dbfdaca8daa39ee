#!/usr/bin/env python3
"""Decodes a Mamba of 211 million parameters with random weights, and compares a token's time with what memory allows.

  build/judges/bin/python bench/recurrent.py build/bin/ctxc-bench FOLDER [--rounds N]

FOLDER keeps the model. In each round memory is read and then 16 tokens are decoded; the limit is the time in which memory
delivers the weights. Prints the rows of the table of docs/measurements.md."""

import argparse
import json
import statistics
import subprocess
from pathlib import Path

import torch
import transformers

# The width of mamba-370m, half as deep.
CONFIG = dict(vocab_size=50280, hidden_size=1024, num_hidden_layers=24, state_size=16)


@torch.no_grad()
def make(folder):
    paths = {dtype: folder / f"mamba-210m-{dtype}" for dtype in ("bf16", "f32")}
    if all((path / "config.json").is_file() for path in paths.values()):
        return paths
    torch.manual_seed(1)
    model = transformers.MambaForCausalLM(transformers.MambaConfig(**CONFIG))
    for name, parameter in model.named_parameters():
        if parameter.dim() >= 2 and "A_log" not in name and "conv" not in name:
            parameter.normal_(0, 0.08 if "embed" in name else parameter.shape[1] ** -0.5)
    for dtype, path in paths.items():
        model.to(torch.float32 if dtype == "f32" else torch.bfloat16).save_pretrained(path)
    return paths


def measured(bench, path, threads, rounds):
    run = subprocess.run([bench, str(path), "--sites", "all", "--threads", str(threads), "--ask"], text=True, check=True,
                         input="read\nplain\n" * rounds, stdout=subprocess.PIPE)
    found = {}
    for line in run.stdout.splitlines():
        for name, value in json.loads(line).items():
            found.setdefault(name, []).append(value)
    limits = [found["weight_bytes"][0] / 1e6 / speed for speed in found["read_gbps"]]
    return found["plain_ms"], limits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    print("| weights | threads | a token, ms | limit, ms | limit ÷ token |\n|---|---:|---:|---:|---:|")
    for dtype, path in make(args.folder).items():
        for threads in (2, 1):
            times, limits = measured(args.bench, path, threads, args.rounds)
            share = statistics.median(limit / time for limit, time in zip(limits, times))
            print(f"| {dtype} | {threads} | {statistics.median(times):.1f} | {statistics.median(limits):.1f} | {share:.0%} |", flush=True)


if __name__ == "__main__":
    main()
