#!/usr/bin/env python3
"""Measures prompts and tokens of every family beside PyTorch, on models with random weights.

  tools/build.sh ctxc-bench
  build/judges/bin/python bench/families.py build

The models have the forms of published ones, in four layers of width 1024, in float32, and are made on the spot, one
after the other. Each round reads a prompt, or decodes a token, with ctxc and with PyTorch, one after the other; of the
rounds' ratios the median is printed. PyTorch computes attention as transformers chooses for the type. With --page the
table goes into the page's section.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).resolve().parent / name) for name in ("", "peers")]
import torch  # noqa: E402
import transformers  # noqa: E402
from page import publish, table  # noqa: E402
from programs import Failed, Ours, PyTorch, Setup, machine, run  # noqa: E402

# What all have whose config has such a key. The names are those that transformers maps to a config's own.
COMMON = dict(vocab_size=16000, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
              pad_token_id=None, bos_token_id=None, eos_token_id=None)
# Sizes of those whose config names them alike.
LLAMA = dict(intermediate_size=2816, num_key_value_heads=4)
MIXTURE = dict(LLAMA, num_experts_per_tok=2)
# By model_type: what differs from the defaults of the family's config.
TYPES = {
    "gpt2": dict(),
    "gpt_neo": dict(num_layers=4, num_heads=16, attention_types=[[["global", "local"], 2]]),
    "gptj": dict(rotary_dim=32),
    "gpt_neox": dict(intermediate_size=4096),
    "opt": dict(ffn_dim=4096, word_embed_proj_dim=1024),
    "bloom": dict(),
    "falcon": dict(),
    "phi": dict(LLAMA, intermediate_size=4096),
    "stablelm": LLAMA,
    "starcoder2": dict(LLAMA, intermediate_size=4096, sliding_window=1024),
    "cohere": LLAMA,
    "nemotron": dict(LLAMA, intermediate_size=4096, head_dim=64),
    "llama": LLAMA,
    "mistral": dict(LLAMA, sliding_window=1024),
    "qwen2": LLAMA,
    "qwen3": dict(LLAMA, head_dim=64),
    "gemma": dict(LLAMA, head_dim=64),
    "gemma2": dict(LLAMA, head_dim=64, query_pre_attn_scalar=64, sliding_window=1024),
    "gemma3_text": dict(LLAMA, head_dim=64, query_pre_attn_scalar=64, sliding_window=512),
    "glm4": dict(LLAMA, head_dim=64),
    "granite": LLAMA,
    "olmo": LLAMA,
    "olmo2": LLAMA,
    "phi3": LLAMA,
    "smollm3": LLAMA,
    "mixtral": dict(MIXTURE, intermediate_size=1408, num_local_experts=8),
    "olmoe": dict(MIXTURE, intermediate_size=704, num_experts=16),
    "qwen2_moe": dict(MIXTURE, num_experts=16, moe_intermediate_size=704, shared_expert_intermediate_size=1408),
    "qwen3_moe": dict(MIXTURE, num_experts=16, moe_intermediate_size=704, head_dim=64),
    "gpt_oss": dict(MIXTURE, intermediate_size=1024, num_local_experts=8, head_dim=64),
    "deepseek_v3": dict(LLAMA, num_key_value_heads=16, q_lora_rank=512, kv_lora_rank=256, qk_nope_head_dim=64,
                        qk_rope_head_dim=32, v_head_dim=64, moe_intermediate_size=704, n_routed_experts=16,
                        num_experts_per_tok=2, n_group=4, topk_group=2, first_k_dense_replace=1),
    "mamba": dict(),
    "jamba": dict(MIXTURE, num_experts=8, attn_layer_period=2, attn_layer_offset=1),
    "falcon_h1": dict(LLAMA, mamba_d_ssm=1536, mamba_n_heads=24, mamba_d_head=64),
    "qwen3_next": dict(MIXTURE, num_experts=16, moe_intermediate_size=704, shared_expert_intermediate_size=704,
                       head_dim=64, linear_num_key_heads=8, linear_num_value_heads=16, linear_key_head_dim=64,
                       linear_value_head_dim=64),
}


@torch.no_grad()
def make(kind, positions, folder):
    """Saves the model, and returns how many parameters it has."""
    default = transformers.AutoConfig.for_model(kind)
    common = dict(COMMON, max_position_embeddings=positions)
    common = {key: value for key, value in common.items() if hasattr(default, key)}
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(kind, **common | TYPES[kind]), dtype=torch.float32)
    model.save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


CONTEXT, TOKENS = 64, 8  # before the decoded tokens, and decoded


def side_by_side(args, kind, folder, length, names):
    """{NAME: (milliseconds of ctxc, PyTorch's divided by them)}"""
    setup = Setup(kind, folder, "f32", args.threads,
                  SimpleNamespace(context=CONTEXT, tokens=TOKENS, prefill=length))
    ours = Ours(args.build, setup, "--sites", "all")
    try:
        torch_ = PyTorch(setup, "--without-patches")
        try:
            rounds = {name: [] for name in names}
            for _ in range(args.rounds):
                for name in names:
                    took = ours.measure(name)[name]
                    rounds[name].append((took, torch_.measure(name) / took))
        finally:
            torch_.close()
    finally:
        ours.close()
    return {name: [statistics.median(values) for values in zip(*found)] for name, found in rounds.items()}


def faster(ratio):
    return f"{ratio:.2f} ×" if ratio >= 1 else f"**{ratio:.2f}** ×"


def measure(args, kind):
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        parameters = make(kind, max(2 * CONTEXT, *args.lengths), folder)
        row = [f"`{kind}`", f"{parameters / 1e6:.0f}"]
        for length in args.lengths:
            names = ["plain", "prefill"] if length == args.lengths[0] else ["prefill"]
            found = side_by_side(args, kind, folder, length, names)
            if "plain" in found:
                token, ratio = found["plain"]
                row += [f"{token:.1f}", faster(ratio)]
            prompt, ratio = found["prefill"]
            row += [f"{prompt:,.0f}", faster(ratio)]
    print(*row, file=sys.stderr, flush=True)
    return row


HEADING = "## Families"
TEXT = HEADING + """

A token behind 64 others, and prompts, of models with random weights that have the form of each family: four layers of
width 1024, in float32, in milliseconds. *Faster* is PyTorch's time (transformers, with the attention that it chooses
for the type; mixers in its own code, since faster ones are for GPUs) divided by ctxc's, taken one after the other
(goal: ≥ 1). {threads} threads, medians of {rounds} rounds; {machine}

```sh
tools/build.sh ctxc-bench && build/judges/bin/python bench/families.py build --page docs/measurements.md
```

{table}
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path)
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=list(TYPES), metavar="TYPE")
    parser.add_argument("--lengths", nargs="+", type=int, default=[512, 2048], metavar="TOKENS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, help="where the models are made; default: the system's folder")
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"  # of the peer
    head = ["type", "parameters, M", "a token", "faster"]
    for length in args.lengths:
        head += [f"{length:,} tokens", "faster"]
    rows, missing = [], []
    for kind in args.types:
        try:
            rows.append(measure(args, kind))
        except Failed as failed:
            missing.append(f"{kind}: {failed}")
    publish(TEXT.format(threads=args.threads, rounds=args.rounds, machine=machine(), table=table(head, rows)),
            HEADING, args.page)
    if missing:
        raise Failed("\n".join(missing))


if __name__ == "__main__":
    run(main)
