#!/usr/bin/env python3
"""Makes the tiny random checkpoints under test/goldens, each with its logits from transformers.

  make-goldens.py test/goldens            all of them (existing ones are replaced)
  make-goldens.py /tmp/g --only llama-bias
  make-goldens.py test/mixers --mixers            those with convolutions and recurrences

Each OUT/NAME is a Hugging Face directory (config.json, float32 weights) with golden.safetensors beside
them: `tokens` (T) int64 and `logits` (T, V) float32 of the full run, eager attention. Head counts
and widths are no powers of two, and norm weights and biases are random, so that a forgotten
transpose, scale or bias changes the logits. The same seed gives the same weights.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parent))
import golden_configs as configs  # noqa: E402
import golden_older_forms as older_forms  # noqa: E402

TOKENS = 24


def options(config):
    """Options for loading the model. The grouped kernels of experts need rows of a multiple of 16 bytes;
    Falcon's eager attention adds the slopes of ALiBi twice, in the mask and to the scores."""
    slopes_twice = config.model_type == "falcon" and config.alibi
    return dict(attn_implementation="sdpa" if slopes_twice else "eager",
                experts_implementation="eager", dtype=torch.float32)


def loader(config):
    """The model class that has a head for predicting tokens."""
    encoder = config.model_type == "bert"
    return transformers.AutoModelForMaskedLM if encoder else transformers.AutoModelForCausalLM


# name: (config, seed, config.json in its older form or None, largest shard or None). Each name is a
# folder of the output.
GOLDENS = {
    "gemma3": (configs.gemma3, 1, None, None),
    "gemma3-older-config": (configs.gemma3, 1, older_forms.gemma3, None),
    "gemma3-mixed": (configs.gemma3_mixed, 2, None, None),
    "llama": (configs.llama, 3, None, None),
    "llama-sharded": (configs.llama, 3, None, "150KB"),
    "llama3-rope": (configs.llama_rope3, 4, None, None),
    "llama3-rope-older-config": (configs.llama_rope3, 4, older_forms.flat, None),
    "llama-bias": (configs.llama_bias, 5, None, None),
    "gemma2": (configs.gemma2, 7, None, None),
    "gpt2": (configs.gpt2, 8, None, None),
    "gpt2-bare": (configs.gpt2_bare, 9, older_forms.gpt2, None),
    "gptj": (configs.gptj, 10, None, None),
    "cohere": (configs.cohere, 11, None, None),
    "cohere-norms": (configs.cohere_norms, 12, None, None),
    "olmo2": (configs.olmo2, 13, None, None),
    "phi3": (configs.phi3, 14, None, None),
    "mixtral": (configs.mixtral, 15, None, None),
    "mixtral-sharded": (configs.mixtral, 15, older_forms.flat, "30KB"),
    "mixtral-fused": (configs.mixtral, 15, None, None),
    "qwen2-moe": (configs.qwen2_moe, 16, None, None),
    "qwen2-moe-normed": (configs.qwen2_moe_normed, 17, older_forms.qwen2_moe, None),
    "mistral": (configs.mistral, 21, None, None),
    "qwen2": (configs.qwen2, 22, None, None),
    "qwen3": (configs.qwen3, 23, None, None),
    "gemma": (configs.gemma, 24, older_forms.gemma, None),
    "olmo": (configs.olmo, 25, None, None),
    "phi": (configs.phi, 26, None, None),
    "phi-norms": (configs.phi_norms, 27, None, None),
    "starcoder2": (configs.starcoder2, 28, None, None),
    "stablelm": (configs.stablelm, 29, None, None),
    "stablelm-parallel": (configs.stablelm_parallel, 30, None, None),
    "granite": (configs.granite, 31, None, None),
    "glm4": (configs.glm4, 32, None, None),
    "nemotron": (configs.nemotron, 33, None, None),
    "smollm3": (configs.smollm3, 34, None, None),
    "gpt-neox": (configs.gpt_neox, 35, None, None),
    "gpt-neox-sequential": (configs.gpt_neox_sequential, 36, older_forms.gpt_neox, None),
    "gpt-oss": (configs.gpt_oss, 43, None, None),
    "gpt-neo": (configs.gpt_neo, 37, None, None),
    "opt": (configs.opt, 38, None, None),
    "opt-post-norm": (configs.opt_post_norm, 39, None, None),
    "bloom": (configs.bloom, 40, older_forms.bloom, None),
    "bert": (configs.bert, 46, None, None),
    "bert-older": (configs.bert_older, 47, older_forms.bert, None),
    "falcon-40b": (configs.falcon_40b, 41, None, None),
    "falcon-alibi": (configs.falcon_alibi, 42, None, None),
    "olmoe": (configs.olmoe, 43, older_forms.flat, None),
    "qwen3-moe": (configs.qwen3_moe, 44, older_forms.qwen3_moe, None),
    "phi3-longrope": (configs.phi3_longrope, 46, older_forms.phi3, None),
    "qwen3-moe-fused": (configs.qwen3_moe_normed, 45, None, None),
    "deepseek-v3": (configs.deepseek_v3, 46, older_forms.deepseek_v3, None),
    "deepseek-v3-plain-fused": (configs.deepseek_v3_plain, 47, None, None),
    "falcon": (configs.falcon, 6, None, None),
    "falcon-older-config": (configs.falcon, 6, older_forms.flat, None),
}

# name: (config, seed), for families whose layers mix tokens by convolutions and recurrences.
MIXERS = {
    "mamba": (configs.mamba, 101),
    "jamba": (configs.jamba, 102),
    "falcon-h1": (configs.falcon_h1, 103),
    "falcon-h1-bare": (configs.falcon_h1_bare, 104),
    "qwen3-next": (configs.qwen3_next, 105),
}


def random_weights(model, generator):
    """Random weights of the magnitude of trained ones: no unit norms, no zero biases, and in (1 + w) norms
    also entries whose scale is exactly zero or negative, as in Gemma 3 270M."""
    normal = lambda shape, scale: torch.randn(shape, generator=generator) * scale
    gemma = model.config.model_type in ("gemma", "gemma2", "gemma3_text")
    plus_one = gemma or model.config.model_type == "nemotron"
    for name, weight in model.named_parameters():
        if "embed" in name or "lm_head" in name or ".wte." in name or ".wpe." in name:
            scale = 1.0 / weight.shape[-1] ** 0.5 if gemma else 0.5
            weight.data = normal(weight.shape, scale)
        elif weight.dim() >= 2 and "norm" not in name:
            inputs = weight.shape[0 if "gpt2" in model.config.model_type else -1]
            weight.data = normal(weight.shape, 1.3 / inputs ** 0.5)
        elif name.endswith("bias"):
            weight.data = normal(weight.shape, 0.3)
        else:
            weight.data = normal(weight.shape, 0.4) + (0.2 if plus_one else 1.1)
            if plus_one:
                # Entry 3 is zero in every norm, another entry only in this norm.
                weight.data[3] = -1.0
                weight.data[5] = -1.75
                weight.data[6 + torch.randint(len(weight) - 6, (), generator=generator)] = -1.0
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.data = normal(buffer.shape, 0.3)


def make(name, out):
    config, seed, older, shard = GOLDENS[name]
    model = loader(config()).from_config(config(), **options(config())).eval()
    generator = torch.Generator().manual_seed(seed)
    random_weights(model, generator)
    tokens = torch.randint(0, model.config.vocab_size, (TOKENS,), generator=generator)
    shutil.rmtree(out, ignore_errors=True)
    # Names that end in `-fused` have all experts in one tensor, as transformers 5 has them in
    # memory.
    model.save_pretrained(out, max_shard_size=shard or "1GB",
                          save_original_format=not name.endswith("-fused"))
    (out / "generation_config.json").unlink(missing_ok=True)
    if older:
        path = out / "config.json"
        path.write_text(json.dumps(older(json.loads(path.read_text())), indent=2) + "\n")
    if name == "gpt2-bare":
        older_forms.store_bare(out, model)
    if name == "bert-older":
        older_forms.store_bert(out, model)
    # The logits are computed from the written files, so that they belong to those files.
    written = loader(config()).from_pretrained(out, **options(config())).eval()
    with torch.no_grad():
        logits = written(tokens[None], use_cache=False).logits[0].contiguous()
    if not torch.isfinite(logits).all():
        sys.exit(f"make-goldens: {name}: logits are not finite")
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    save_file({"tokens": tokens, "logits": logits}, out / "golden.safetensors",
              metadata={"made_with": versions})
    return tokens, logits


def make_mixer(name, out):
    config, seed = MIXERS[name]
    model = transformers.AutoModelForCausalLM.from_config(config(), dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed)
    random_weights(model, generator)
    shutil.rmtree(out, ignore_errors=True)
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    tokens = torch.randint(0, model.config.vocab_size, (TOKENS,), generator=generator)
    written = loader(config()).from_pretrained(out, **options(config())).eval()
    with torch.no_grad():
        logits = written(tokens[None], use_cache=False).logits[0].contiguous()
    save_file({"tokens": tokens, "logits": logits}, out / "golden.safetensors",
              metadata={"made_with": f"transformers {transformers.__version__}, torch {torch.__version__}"})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--only", choices=GOLDENS, action="append", metavar="NAME",
                        help="make this one; may be given several times: " + ", ".join(GOLDENS))
    parser.add_argument("--mixers", action="store_true",
                        help="those of families with convolutions and recurrences")
    args = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in MIXERS if args.mixers else ():
        make_mixer(name, args.out / name)
    for name in args.only or (() if args.mixers else GOLDENS):
        _, logits = make(name, args.out / name)
        size = sum(file.stat().st_size for file in (args.out / name).iterdir())
        print(f"{name:26} {size / 1024:6.0f} KiB   logits within ±{logits.abs().max():.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
