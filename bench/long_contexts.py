#!/usr/bin/env python3
"""Measures prompts of several lengths beside PyTorch, and decoding behind them beside memory.

  tools/build.sh ctxc-bench
  build/judges/bin/python bench/long_contexts.py build MODEL

MODEL is a Hugging Face directory. Each round reads the prompt with ctxc and with PyTorch, one after the other, and
then decodes behind it and reads memory; ratios are of neighbours, and of them the median is printed. The limit of
decoding is to read the weights once, and what the layers keep of the tokens that they see. With --page the table
goes into the page's section. A machine that does other work is to be named with --note.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import transformers  # noqa: E402
from page import publish, table  # noqa: E402
from programs import Ours, PyTorch, Setup, run  # noqa: E402


def cache_bytes(config, tokens):
    """The bytes of keys and values that a token behind `tokens` others sees, in float32."""
    layers = config.num_hidden_layers
    types = getattr(config, "layer_types", None) or ["full_attention"] * layers
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    seen = sum(min(tokens, config.sliding_window) if kind == "sliding_attention" else tokens
               for kind in types)
    return seen * config.num_key_value_heads * width * 2 * 4


def measure(args, length):
    def setup(context):
        return Setup(args.model.name, args.model, args.dtype, args.threads,
                     SimpleNamespace(context=context, tokens=8, prefill=length))
    ours, torch = Ours(args.build, setup(length)), PyTorch(setup(64))
    weights = ours.about["weight_bytes"]
    bytes_ = weights + cache_bytes(transformers.AutoConfig.from_pretrained(args.model).get_text_config(), length)
    rounds = []
    try:
        for _ in range(args.rounds):
            prefill, other = ours.measure("prefill")["prefill"], torch.measure("prefill")
            decoded, read = ours.measure("plain")["plain"], ours.measure("read")["read_gbps"]
            rounds.append((prefill, other / prefill, decoded, bytes_ / read / 1e6 / decoded))
    finally:
        ours.close()
        torch.close()
    prefill, ratio, decoded, share = (statistics.median(values) for values in zip(*rounds))
    print(f"{length} tokens: {ratio:.2f} x PyTorch's speed, decoding at {100 * share:.0f} % of the limit",
          file=sys.stderr)
    return [f"{length:,}", f"{prefill / 1e3:.2f}", f"{ratio:.2f} ×", f"{decoded:.1f}",
            f"{(bytes_ - weights) / 1e6:.0f}", f"{100 * share:.0f} %"]


HEADING = "## Long contexts"
TEXT = HEADING + """

{model} in {dtype}, {threads} threads, {rounds} rounds, medians{note}. *Speed* is PyTorch's time for the prompt (sdpa)
divided by ctxc's, taken one after the other. *Limit* is the time in which memory can deliver the weights and the part
of the cache that a token sees, at the bandwidth measured in the same round, divided by the time of a token.

```sh
tools/build.sh ctxc-bench && build/judges/bin/python bench/long_contexts.py build MODEL --page docs/measurements.md
```

{table}
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path)
    parser.add_argument("model", metavar="MODEL", type=Path)
    parser.add_argument("--lengths", nargs="+", type=int, default=[512, 2048, 8192, 32768])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--note", default="", help="what else the machine did")
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    rows = [measure(args, length) for length in args.lengths]
    head = ["tokens", "prompt, s", "speed", "a token, ms", "cache that it sees, MB", "limit"]
    section = TEXT.format(model=args.model.name, dtype=args.dtype, threads=args.threads, rounds=args.rounds,
                          note=f" ({args.note})" if args.note else "", table=table(head, rows))
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    run(main)
