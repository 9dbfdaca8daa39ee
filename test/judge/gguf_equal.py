#!/usr/bin/env python3
"""Compares ctxc on a GGUF file with ctxc on the directory that transformers made from it.

  gguf_equal.py CTXC FILE.gguf DIRECTORY --prompts FILE

For the first prompt, the token ids must be the same, and the logits of the full run and of the unpatched run
equal to the last bit, where the matrices of both are multiplied in float32 (CTXC_VNNI=off). The patched run's logits
must agree to 1e-4: its scales are patched as 1 + w in one and as w in the other, which rounds differently. So must all
logits without that setting: where the processor multiplies bytes, activations are then rounded to 24 bits. The resident
set may exceed the file's size by at most 300 MB. Exit code: 0 if all of this holds, otherwise 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file


def run(ctxc, model, prompt, folder, **environment):
    """Token ids, logits, and the largest resident set in bytes."""
    report, logits = Path(folder) / "report.json", Path(folder) / "logits.safetensors"
    process = subprocess.Popen([ctxc, "verify", model, "--prompt", prompt, "--generate", "3", "--json",
                                report, "--logits", logits], stdout=subprocess.DEVNULL,
                               env={**os.environ, **environment})
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"gguf_equal.py: ctxc verify {model} gives exit code "
                 f"{os.waitstatus_to_exitcode(status)}")
    tokens = json.loads(report.read_text())["settings"]["tokens"]
    return tokens, load_file(logits), usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("file", metavar="FILE.gguf")
    parser.add_argument("directory", metavar="DIRECTORY")
    parser.add_argument("--prompts", required=True)
    args = parser.parse_args()
    prompt = Path(args.prompts).read_text().splitlines()[0]
    with tempfile.TemporaryDirectory() as folder:
        tokens, fixed, resident = run(args.ctxc, args.file, prompt, folder)
        _, logits, _ = run(args.ctxc, args.file, prompt, folder, CTXC_VNNI="off")
        other_tokens, other, other_resident = run(args.ctxc, args.directory, prompt, folder, CTXC_VNNI="off")
    size = os.path.getsize(args.file)
    patched = float((logits["patched"] - other["patched"]).abs().max())
    without = max(float((fixed[name] - other[name]).abs().max()) for name in ("full", "control", "patched"))
    shown = {"tokens_equal": tokens == other_tokens,
             "full_equal": torch.equal(logits["full"], other["full"]),
             "control_equal": torch.equal(logits["control"], other["control"]),
             "patched_linf": patched, "fixed_linf": without, "file_mb": size // 10**6, "resident_mb": resident // 10**6,
             "directory_resident_mb": other_resident // 10**6}
    good = (shown["tokens_equal"] and shown["full_equal"] and shown["control_equal"]
            and patched <= 1e-4 and without <= 1e-4 and resident <= size + 300e6)
    print(json.dumps(shown | {"ok": good}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
