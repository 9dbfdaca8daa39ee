#!/usr/bin/env python3
"""Measures how the cost of ctxc grows with the model: time per token, compile time, odd widths.

  tools/build.sh ctxc-bench
  bench/growth.py build/bin

Llamas with random weights, made on the spot, in bfloat16. Prints three tables, and with --page writes them
into the page's section:

  sizes   1 M to 1 B parameters: milliseconds per token, and GB/s of weights beside memory's bandwidth
  depth   2 to 64 layers: seconds of compiling, with an empty cache
  widths  a model whose widths are multiples of the vector width, and one with the next odd widths
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from page import publish, table  # noqa: E402
from programs import output_of, run  # noqa: E402

#        hidden, intermediate, layers, heads, vocabulary
SIZES = [(128, 384, 4, 4, 1024), (256, 768, 8, 4, 4096), (512, 1536, 12, 8, 16000),
         (768, 2048, 20, 12, 32000), (1280, 3584, 28, 20, 32000), (1792, 5120, 24, 28, 32000)]
DEPTHS = [2, 8, 32, 64]
WIDTHS = [("multiples of 32", (1024, 3072, 8, 8, 32000)), ("odd", (1023, 3071, 8, 8, 31999))]


def make_model(build, folder, shape):
    """The model as an .mlir file, whose weights may be random."""
    hidden, intermediate, layers, heads, vocabulary = shape
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": intermediate, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads // 4 or 1,
        "head_dim": hidden // heads // 2 * 2, "vocab_size": vocabulary, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
        "max_position_embeddings": 4096, "attention_bias": False, "mlp_bias": False}))
    model = folder / "model.mlir"
    output_of([build / "ctxc", "compile", folder, "--dtype", "bf16", "--emit=xf", "-o", model])
    return model


def decode(build, model, threads):
    """Medians of ctxc-bench."""
    return json.loads(output_of(
        [build / "ctxc-bench", model, "--weights", "random:1", "--threads", threads, "--rounds", 3,
         "--prefill", 8, "--json", "-"]))


def compile_seconds(build, model):
    def once():
        with tempfile.TemporaryDirectory() as cache:
            text = output_of([build / "ctxc", "verify", model, "--weights", "random:1", "--tokens",
                              "2,5,7"], env=os.environ | {"XDG_CACHE_HOME": cache})
        return float(re.search(r"compile ([\d.]+) s", text)[1])
    return statistics.median(once() for _ in range(3))


HEAD = ["parameters a token reads", "ms a token", "ms a patch", "GB/s", "memory's", "share"]


def decode_row(args, work, name, shape):
    found = decode(args.build, make_model(args.build, work, shape), args.threads)
    medians, weights = found["medians"], found["weight_bytes"]
    rate = weights / medians["plain_ms"] / 1e6
    return [name, f"{weights / 2e6:.1f} M", f"{medians['plain_ms']:.2f}",
            f"{medians['patch_ms']:.2f}", f"{rate:.1f}", f"{medians['read_gbps']:.1f}",
            f"{100 * rate / medians['read_gbps']:.0f} %"]


def depth_row(args, work, depth):
    model = make_model(args.build, work, (256, 768, depth, 4, 4096))
    return [depth, f"{compile_seconds(args.build, model):.2f}"]


HEADING = "## Growth"
TEXT = HEADING + """

Llamas with random weights in bfloat16, {threads} threads. From one million to a billion weights, a token takes
about as long as reading its weights from memory; *share* compares its bandwidth with memory's in the same
round. (Small models stay in the caches, which are faster. On a shared machine, the speed of memory also changes
within a round.)

```sh
tools/build.sh ctxc-bench && bench/growth.py build/bin --page docs/measurements.md
```

{sizes}

Seconds to compile with an empty cache: a block is compiled once, no matter how many layers share
it.

{depths}

Widths that are not a multiple of the SIMD width:

{widths}
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD/BIN", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="docs/measurements.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "model"
        sizes = table(["hidden"] + HEAD,
                      [decode_row(args, work, shape[0], shape) for shape in SIZES])
        depths = table(["layers", "seconds"], [depth_row(args, work, depth) for depth in DEPTHS])
        widths = table(["widths"] + HEAD,
                       [decode_row(args, work, name, shape) for name, shape in WIDTHS])
    section = TEXT.format(threads=args.threads, sizes=sizes, depths=depths, widths=widths)
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    run(main)
