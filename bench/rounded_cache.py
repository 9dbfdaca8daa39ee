#!/usr/bin/env python3
"""Measures what keys and values in bfloat16 (--cache bf16) do to logits.

  build/judges/bin/python bench/rounded_cache.py build/bin/ctxc MODEL --prompts FILE

For each line of FILE, and for the beginning of all of them together that has --tokens tokens: how far the full run's
logits are from those with a cache in float32, how far the patched run is from its full run with either cache, and the
cache's bytes. With --page the table goes into the page's section.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from long_contexts import cache_bytes  # noqa: E402
from page import publish, table  # noqa: E402
from programs import output_of, run  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
import transformers  # noqa: E402


def verified(args, what, cache, folder):
    """The full run's logits of the last token, the patched run's L∞ from them, and the number of tokens."""
    logits, report = Path(folder) / "logits.safetensors", Path(folder) / "report.json"
    output_of([args.ctxc, "verify", args.model, *what, "--cache", cache, "--logits", logits, "--json", report])
    steps = json.loads(report.read_text())
    return load_file(logits)["full"], steps


def row(args, name, what, count, config, folder):
    full, exact = verified(args, what, "f32", folder)
    rounded, report = verified(args, what, "bf16", folder)
    largest = full.abs().max().item()
    return [name, count, f"{(full - rounded).abs().max().item():.2g}", f"{largest:.3g}",
            f"{linf(exact):.2g}", f"{linf(report):.2g}", f"{cache_bytes(config, count) / 1e6:.2f}",
            f"{cache_bytes(config, count) / 2e6:.2f}"]


def linf(report):
    return max(step["patched"]["linf"] for step in report["steps"])


HEADING = "## The cache"
TEXT = HEADING + """

`--cache bf16` keeps keys and values of attention in bfloat16, in half the memory ({model}). A token reads its own key
and value rounded too, in the full run and in the patched run, so that patches are as exact as without the option; but
the logits themselves change. A patch made with this option is exact only in runs that use it too. The CPU executors
support it; GPU executors refuse it.

```sh
build/judges/bin/python bench/rounded_cache.py build/bin/ctxc {model} \\
    --prompts {prompts} --page docs/measurements.md
```

{table}
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("model", metavar="MODEL", type=Path)
    parser.add_argument("--prompts", metavar="FILE", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    config = transformers.AutoConfig.from_pretrained(args.model).get_text_config()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    lines = args.prompts.read_text().splitlines()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for i, line in enumerate(lines, 1):
            count = len(tokenizer(line).input_ids)
            rows.append(row(args, f"prompt {i}", ["--prompt", line], count, config, folder))
        ids = tokenizer("\n".join(lines)).input_ids
        ids = (ids + ids[1:] * (args.tokens // len(ids) + 1))[:args.tokens]
        path = Path(folder) / "ids.txt"
        path.write_text(",".join(map(str, ids)))
        rows.append(row(args, "all, repeated", ["--tokens", f"@{path}"], len(ids), config, folder))
    section = TEXT.format(model=args.model, prompts=args.prompts, table=table(
        ["", "tokens", "logits differ by", "largest logit", "patched, f32", "patched, bf16", "cache, f32, MB",
         "cache, bf16, MB"], rows))
    publish(section, HEADING, args.page)


if __name__ == "__main__":
    run(main)
