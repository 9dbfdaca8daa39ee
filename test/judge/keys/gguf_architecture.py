"""The keys of a GGUF file's architecture, against llama.cpp's logits."""
import random

import gguf_families
from key_values import ABSENT
from gguf_files import VALUES, ctxc, differ, judge, start, written  # noqa: F401

NAME = "GGUF, the keys of an architecture"
# All values are tried with the first, their own ones with all.
FAMILIES = ["llama-linear", "llama-yarn", "gemma2", "granite", "qwen2-moe", "gpt-neox", "olmo", "cohere", "falcon-40b"]
OWN = {
    "rope.scaling.type": ["none", "linear", "yarn", "longrope"], "rope.scaling.factor": [4.0, 1.0, 0.0, 2, -2.0],
    "rope.scale_linear": [4.0, 0.0], "rope.freq_base": [10000.0, 500.0, 10000], "rope.freq_base_swa": [500.0],
    "rope.dimension_count": [16, 8, 0, 4], "rope.scaling.attn_factor": [1.0, 1.5],
    "rope.scaling.original_context_length": [64, 128], "rope.scaling.finetuned": [True, False],
    "rope.scaling.yarn_beta_fast": [32.0, 16.0], "rope.scaling.yarn_beta_slow": [1.0, 2.0],
    "rope.scaling.yarn_ext_factor": [1.0, 0.5], "rope.scaling.yarn_attn_factor": [1.0, 2.0],
    "rope.scaling.yarn_log_multiplier": [0.0, 0.1], "attention.layer_norm_rms_epsilon": [1e-2, 1e-6],
    "attention.layer_norm_epsilon": [1e-2, 1e-5], "attention.head_count": [4, 2, [4, 4, 4]],
    "attention.head_count_kv": [2, 4, 1, [2, 2, 2], [2, 0, 2]], "attention.key_length": [16, 32], "vocab_size": [77, 80, 70],
    "attention.value_length": [16, 32], "feed_forward_length": [96, 97, [96, 96, 96]], "block_count": [2, 3, 4],
    "embedding_length": [64, 63], "context_length": [12, 256, 4096], "expert_count": [5, 4, 0], "expert_used_count": [2, 3],
    "expert_feed_forward_length": [48, 96], "expert_shared_feed_forward_length": [80, 48], "attention.sliding_window": [5, 3],
    "attention.clamp_kqv": [1.5, 0.1], "attention.scale": [0.2, 0.0, 0.3], "attn_logit_softcapping": [50.0, 1.0, 0.0],
    "final_logit_softcapping": [30.0, 1.0, 0.0], "logit_scale": [2.0, 0.25, 0.0], "residual_scale": [0.5, 0.0, 1.0],
    "embedding_scale": [3.0, 0.0, 1.0], "use_parallel_residual": [True, False], "attention.causal": [True, False],
    "expert_weights_scale": [1.0, 2.0], "expert_weights_norm": [True], "expert_gating_func": [1, 2],
    "attention.sliding_window_pattern": [2, [True, False, True]], "tensor_data_layout": ["jploski", "Meta AI original pth"],
    "attention.max_alibi_bias": [8.0],
}


def known():
    """Those that llama.cpp has names for and that a family here could mean."""
    return ["block_count", "embedding_length", "feed_forward_length", "context_length", "vocab_size", *OWN]


def values(key):
    return VALUES + OWN.get(key, [])


def cases(key, value):
    for family in FAMILIES:
        if family == FAMILIES[0] or value is ABSENT or any(value is each for each in OWN.get(key, [])):
            yield family, written(family, {f"ARCH.{key}": value})


def names(key):
    """A size is named by what contradicts it, too."""
    sizes = {"attention.head_count": ["attn_", "q_proj", "query_key_value", "head_count_kv", "num_attention_heads"],
             "attention.head_count_kv": ["k_proj", "query_key_value", "num_key_value_heads", "num_ln_in_parallel_attn"],
             "attention.key_length": ["q_proj", "value_length"], "attention.value_length": ["value_length"],
             "feed_forward_length": ["mlp"], "block_count": ["layers", "model"], "embedding_length": ["shape", "shapes", "head_dim"],
             "expert_count": ["experts", "gate"], "expert_feed_forward_length": ["experts"],
             "expert_shared_feed_forward_length": ["shared_expert"], "expert_used_count": ["num_experts_per_tok", "experts"],
             "context_length": ["positions", "max_position_embeddings"], "rope.dimension_count": ["partial_rotary_factor"]}
    return sizes.get(key, [])


def is_no_matter(key, value, reason):
    """llama.cpp wants one type of integers, no arrays, the number of positions, and that of tokens where there are no texts of
    them; these change nothing."""
    return key in ("context_length", "vocab_size") or isinstance(value, (bool, int, float, list))


def generated(choose):
    family = choose.choice([name for name in FAMILIES if name != "llama-yarn"])
    rope = family not in ("gpt2", "bloom")
    changes = {}
    if rope and choose.random() < 0.7:
        changes["ARCH.rope.scaling.type"] = choose.choice([ABSENT, ABSENT, "linear"] + ["none"] * (family != "gemma2"))
        changes[choose.choice(["ARCH.rope.scaling.factor", "ARCH.rope.scale_linear"])] = choose.choice([0.0, 1.0, 2.0, 8.0])
    if rope and choose.random() < 0.7:
        changes["ARCH.rope.freq_base"] = choose.choice([ABSENT, 100.0, 1e6])
    epsilon = "ARCH.attention.layer_norm_" + ("epsilon" if family in ("gpt-neox", "olmo", "cohere", "falcon-40b") else "rms_epsilon")
    refusal = None
    if family != "olmo" and choose.random() < 0.6:
        changes[epsilon] = choose.choice([1e-2, 1e-3, ABSENT])
        refusal = r"layer_norm_(rms_)?epsilon" if changes[epsilon] is ABSENT else None
    for key, value in {"ARCH.attention.causal": True, "ARCH.pooling_type": 0, "ARCH.nextn_predict_layers": 0,
                       "ARCH.rope.scaling.original_context_length": 128}.items():
        if choose.random() < 0.3:
            changes[key] = value
    return f"{family} {changes}", written(family, changes), refusal
