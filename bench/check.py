#!/usr/bin/env python3
"""Measures what `ctxc check` costs on large models, without weights.

  bench/check.py build/bin/ctxc

Prints a table: the model, how many structures of layers it has, the seconds of the processor (best of
twenty runs; the check has one thread, so that an idle machine takes no longer) and the peak resident memory of the
whole command.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MIXTRAL = dict(model_type="mixtral", vocab_size=32000, hidden_size=4096, intermediate_size=14336,
               num_hidden_layers=100, num_attention_heads=32, num_key_value_heads=8,
               num_local_experts=256, num_experts_per_tok=8)
QWEN = dict(model_type="qwen2_moe", vocab_size=151936, hidden_size=3584, num_hidden_layers=100,
            num_attention_heads=28, num_key_value_heads=4, num_experts=256, num_experts_per_tok=8,
            decoder_sparse_step=2, moe_intermediate_size=2560,
            shared_expert_intermediate_size=20480, intermediate_size=18944)
DEEPSEEK = dict(model_type="deepseek_v3")  # the defaults are the sizes of V3 and R1
MODELS = {
    "Mixtral, 100 layers of 256 experts": MIXTRAL,
    "Mixtral, 1000 layers of 256 experts": MIXTRAL | dict(num_hidden_layers=1000),
    "Qwen 2 MoE, 100 layers, every second one of 256 experts": QWEN,
    "DeepSeek-V3, 61 layers, 58 of 256 experts": DEEPSEEK,
}
RUNS = 20


def measure(command):
    """Processor seconds and peak MB of one run, and what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)}: status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, printed


def check_table(ctxc):
    rows = ["| model | structures | seconds | peak memory |", "| --- | ---: | ---: | ---: |"]
    for name, config in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(config))
            runs = [measure([ctxc, "check", folder, "--format", "json"]) for _ in range(RUNS)]
        structures = len(json.loads(runs[0][2])["groups"])
        seconds, memory = min(run[0] for run in runs), max(run[1] for run in runs)
        rows.append(f"| {name} | {structures} | {seconds:.2f} | {memory:.0f} MB |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    print(check_table(parser.parse_args().ctxc))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError) as error:
        sys.exit(f"check: {error}")
