#!/usr/bin/env python3
"""llama.cpp judges the adapters that `ctxc distil --gguf` writes for it.

  lora_judge.py CTXC LLAMA MODEL --context FILE --text FILE --held-out FILE [-- OPTION…]

LLAMA is the folder of build_llama_cpp.sh. MODEL, a checkpoint, is converted to a GGUF file in float32 by llama.cpp's own
converter. `ctxc distil` makes adapters of the context: with nothing in front, with some of its tokens as text, and with
their keys and values (--keep-cache). llama.cpp computes the logits of the held-out answers: with the context in front,
without it, and with the adapter. The card's mean KL, of the adapter and without it, is computed again from these. Exit
code: 0 if they differ by at most 0.001 nats. FILE of the context has token ids, and the texts are JSON
lines with ids; OPTIONs are those of `ctxc distil`. The Python has to be one with llama.cpp's needs: torch, transformers
and sentencepiece.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TOLERANCE = 1e-3  # nats
KINDS = {"nothing in front": [], "15 % in front": ["--keep-share", "0.15"],
         "15 % in the cache": ["--keep-share", "0.15", "--keep-cache"]}


def converted(model, llama, folder):
    """MODEL as a GGUF file in float32."""
    file = folder / f"{model.name}-f32.gguf"
    if not file.exists():
        source = llama / "source"
        environment = {**os.environ, "PYTHONPATH": str(source / "gguf-py")}
        subprocess.run([sys.executable, source / "convert_hf_to_gguf.py", model, "--outtype", "f32",
                        "--outfile", file], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=environment)
    return file


def log_probabilities(llama, gguf, adapter, front, dropped, lines):
    """Of each answer's tokens, after those before it."""
    text = ""
    for line in lines:
        tokens = line["prompt"] + line["answer"]
        # The last token of the answer predicts nothing here; a first one without a prompt is predicted by nothing.
        count = len(line["answer"]) - (not line["prompt"])
        text += f"{count}; {ids(front)}; {ids(dropped)}; {ids(tokens[:-1])}\n"
    found = subprocess.run([llama / "bin" / "llama-logits", gguf, *([adapter] if adapter else [])],
                           input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    rows = sum(len(line["answer"]) - (not line["prompt"]) for line in lines)
    logits = np.frombuffer(found, np.float32).reshape(rows, -1)
    result = np.empty_like(logits)
    for row, out in zip(logits, result):
        wide = row.astype(np.float64) - row.max()
        out[:] = wide - np.log(np.exp(wide).sum())
    return result


def ids(tokens):
    return " ".join(map(str, tokens))


def divergence(truth, other):
    return float(np.mean([(np.exp(p.astype(np.float64)) * (p.astype(np.float64) - q)).sum()
                          for p, q in zip(truth, other)]))


def judge(args, kind, options, gguf, context, front, lines, runs, folder):
    directory = folder / kind.replace(" ", "-").replace("%", "percent")
    subprocess.run([args.ctxc, "distil", args.model, "--context-tokens", "@" + str(args.context),
                    "--text", args.text, "--held-out", args.held_out, "--gguf", "-o", directory,
                    *options, *args.options], check=True, stdout=subprocess.DEVNULL)
    card = json.loads((directory / "card.json").read_text())
    prefix = card["prefix"]
    dropped = sorted(set(range(len(prefix))) - set(card["seen"])) if "seen" in card else []
    if "seen" not in card and len(prefix) > len(front):  # text in front is read with the adapter
        lines = [{**line, "prompt": prefix + line["prompt"]} for line in lines]
        prefix = []
    elif "seen" not in card:
        lines = [{**line, "prompt": front + line["prompt"]} for line in lines]
        prefix = []
    adapted = log_probabilities(args.llama, gguf, directory / "adapter.gguf", prefix, dropped, lines)
    found = {"kl_without": divergence(runs["full"], runs["plain"]),
             "kl_adapted": divergence(runs["full"], adapted)}
    errors = {name: abs(card["all"][name] - value) for name, value in found.items()}
    good = max(errors.values()) <= TOLERANCE
    print(f"{'' if good else 'WRONG: '}{kind}: KL {found['kl_adapted']:.5f} by llama.cpp, "
          f"{card['all']['kl_adapted']:.5f} by ctxc; without {found['kl_without']:.5f}, "
          f"{card['all']['kl_without']:.5f}; recovered {100 * card['share_recovered']:.1f} %", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc")
    parser.add_argument("llama", type=Path)
    parser.add_argument("model", type=Path)
    for name in ("--context", "--text", "--held-out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="for the model in GGUF, which stays")
    parser.add_argument("--kinds", default="0,1,2", help="which of the three adapters")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:end])
    args.options = sys.argv[end + 1:]
    context = [int(word) for word in re.split(r"[,\s]+", args.context.read_text().strip())]
    config = json.loads((args.model / "config.json").read_text())
    front = context[:1] if context[0] == config.get("bos_token_id") else []
    lines = [json.loads(line) for line in args.held_out.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gguf = converted(args.model, args.llama, args.folder or folder)
        runs = {which: log_probabilities(args.llama, gguf, None, tokens, [], lines)
                for which, tokens in (("full", context), ("plain", front))}
        kinds = [list(KINDS.items())[int(number)] for number in args.kinds.split(",")]
        good = [judge(args, kind, options, gguf, context, front, lines, runs, folder)
                for kind, options in kinds]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
