#!/usr/bin/env python3
"""Makes the tiny random checkpoints under test/goldens, each with its logits from transformers.

  make-goldens.py test/goldens            all of them (existing ones are replaced)
  make-goldens.py /tmp/g --only llama-bias
  make-goldens.py test/check-only --check-only    of families that are checked and not run: no logits

Each OUT/NAME is a Hugging Face directory (config.json, float32 weights) with golden.safetensors beside
them: `tokens` (T) int64 and `logits` (T, V) float32 of the full run, eager attention. Head counts
and widths are no powers of two, and norm weights and biases are random, so that a forgotten
transpose, scale or bias shows. The same seed gives the same weights.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (BertConfig, BloomConfig, CohereConfig, DeepseekV3Config, FalconConfig,
                          FalconH1Config, Gemma2Config, Gemma3TextConfig, GemmaConfig, Glm4Config, GPT2Config,
                          GPTJConfig, GPTNeoConfig, GPTNeoXConfig, GptOssConfig, GraniteConfig,
                          JambaConfig, LlamaConfig, MambaConfig, MistralConfig, MixtralConfig,
                          NemotronConfig, Olmo2Config, OlmoConfig, OlmoeConfig, OPTConfig,
                          Phi3Config, PhiConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config,
                          Qwen3MoeConfig, Qwen3NextConfig, SmolLM3Config, StableLmConfig,
                          Starcoder2Config)

TOKENS = 24


def options(config):
    """Of loading. The grouped kernels of experts take rows of 16-byte multiples only; Falcon's eager
    attention adds the slopes of ALiBi twice, in the mask and to the scores."""
    slopes_twice = config.model_type == "falcon" and config.alibi
    return dict(attn_implementation="sdpa" if slopes_twice else "eager",
                experts_implementation="eager", dtype=torch.float32)


def loader(config):
    """The class with the head that predicts tokens."""
    encoder = config.model_type == "bert"
    return transformers.AutoModelForMaskedLM if encoder else transformers.AutoModelForCausalLM


def gemma3(**changes):
    """5:1-like layer mix, a window of 7 < 24 tokens, two rope bases, linear scaling on full layers,
    3 query heads per key head, attention scale 1/sqrt(17) with head dimension 10."""
    config = dict(
        vocab_size=97, hidden_size=42, intermediate_size=38, num_hidden_layers=6,
        num_attention_heads=6, num_key_value_heads=2, head_dim=10, query_pre_attn_scalar=17,
        sliding_window=7, max_position_embeddings=256, rms_norm_eps=1e-4,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 50000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 900.0}})
    return Gemma3TextConfig(**(config | changes))


def gemma3_mixed():
    """Full layers that are not last, more of them, and a vocabulary that is prime."""
    return gemma3(
        vocab_size=131, hidden_size=30, intermediate_size=46, num_hidden_layers=4,
        num_attention_heads=3, num_key_value_heads=1, head_dim=22, query_pre_attn_scalar=15,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"])


def llama(**changes):
    config = dict(
        vocab_size=97, hidden_size=54, intermediate_size=62, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=18, max_position_embeddings=256,
        rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 7000.0})
    return LlamaConfig(**(config | changes))


def llama_rope3():
    """Llama 3's frequency-dependent scaling, with all three of its ranges inside the head dimension."""
    return llama(hidden_size=66, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
                 head_dim=22, tie_word_embeddings=True, vocab_size=131,
                 rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0,
                                  "low_freq_factor": 1.0, "high_freq_factor": 3.0,
                                  "original_max_position_embeddings": 64})


def llama_bias():
    return llama(hidden_size=45, intermediate_size=70, num_hidden_layers=2, num_attention_heads=9,
                 num_key_value_heads=3, head_dim=10, attention_bias=True, mlp_bias=True)


def falcon():
    """Falcon-7B's form: attention and MLP parallel on one norm, one key head, biases only in norms."""
    return FalconConfig(
        vocab_size=97, hidden_size=70, ffn_hidden_size=114, num_hidden_layers=2,
        num_attention_heads=5, new_decoder_architecture=False, multi_query=True,
        parallel_attn=True, bias=False, alibi=False, max_position_embeddings=256, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 3000.0})


def gemma2():
    """Caps that bend most scores and logits, a window of 6 in every other layer, MQA of width 14."""
    return Gemma2Config(
        vocab_size=79, hidden_size=35, intermediate_size=38, num_hidden_layers=4,
        num_attention_heads=5, num_key_value_heads=1, head_dim=14, query_pre_attn_scalar=19,
        sliding_window=6, attn_logit_softcapping=1.5, final_logit_softcapping=6.0,
        max_position_embeddings=256, rms_norm_eps=1e-4,
        rope_parameters={"rope_type": "default", "rope_theta": 800.0})


def gpt2(**changes):
    """An odd head dimension, which only a family without rotations can have."""
    return GPT2Config(**(dict(vocab_size=97, n_embd=39, n_layer=3, n_head=3, n_inner=70,
                              n_positions=50) | changes))


def gpt2_bare():
    """Scores divided by the layer's number and not by the head's width; an untied head."""
    return gpt2(vocab_size=73, n_embd=30, n_inner=None, n_head=5, scale_attn_weights=False,
                scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False,
                activation_function="gelu")


def gptj():
    """6 of 14 entries rotated."""
    return GPTJConfig(vocab_size=97, n_embd=42, n_layer=2, n_head=3, rotary_dim=6, n_inner=66,
                      n_positions=64)


def cohere(**changes):
    return CohereConfig(**(dict(
        vocab_size=79, hidden_size=39, intermediate_size=50, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=10, logit_scale=0.4,
        max_position_embeddings=256, layer_norm_eps=1e-4,
        rope_parameters={"rope_type": "default", "rope_theta": 600.0}) | changes))


def cohere_norms():
    """A norm for each head of q and k, with weights of its own; biases in the attention."""
    return cohere(hidden_size=33, num_hidden_layers=2, num_attention_heads=3,
                  num_key_value_heads=3, head_dim=14, use_qk_norm=True, attention_bias=True)


def olmo2():
    return Olmo2Config(
        vocab_size=79, hidden_size=45, intermediate_size=54, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, head_dim=14, max_position_embeddings=256,
        rms_norm_eps=1e-4, pad_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 700.0})


def phi3():
    """8 of 18 entries rotated, a window of 9 in all layers."""
    return Phi3Config(
        vocab_size=79, hidden_size=41, intermediate_size=54, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, head_dim=18, max_position_embeddings=256,
        sliding_window=9, pad_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 900.0,
                         "partial_rotary_factor": 0.45})


def phi3_longrope():
    """Whole heads rotated by the short factors: what is run is shorter than the original context."""
    return Phi3Config(
        vocab_size=79, hidden_size=42, intermediate_size=54, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=256,
        original_max_position_embeddings=40, pad_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "longrope", "rope_theta": 900.0,
                         "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.1],
                         "long_factor": [1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0]})


def older_phi3(config):
    """As on the hub, with the original context beside the rope."""
    config = older_flat(config)
    scaling = config["rope_scaling"]
    scaling["type"] = scaling["rope_type"]
    for key in ("rope_type", "original_max_position_embeddings", "partial_rotary_factor"):
        scaling.pop(key, None)
    return config


def mixtral():
    """2 of 5 experts, a window of 9 in all layers."""
    return MixtralConfig(
        vocab_size=79, hidden_size=33, intermediate_size=22, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, head_dim=10, max_position_embeddings=256,
        num_local_experts=5, num_experts_per_tok=2, sliding_window=9, rms_norm_eps=1e-4,
        bos_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 700.0})


def qwen2_moe(**changes):
    """3 of 7 experts whose weights do not sum to one, and a layer without experts."""
    return Qwen2MoeConfig(**(dict(
        vocab_size=79, hidden_size=30, intermediate_size=34, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=256,
        num_experts=7, num_experts_per_tok=3, moe_intermediate_size=18,
        shared_expert_intermediate_size=26, mlp_only_layers=[1], rms_norm_eps=1e-4,
        rope_parameters={"rope_type": "default", "rope_theta": 700.0}) | changes))


def qwen2_moe_normed():
    """Weights that sum to one, experts in every other layer, windows of 6 in layer 0, no biases."""
    return qwen2_moe(num_hidden_layers=4, num_experts=5, num_experts_per_tok=2,
                     norm_topk_prob=True, mlp_only_layers=[], decoder_sparse_step=2,
                     use_sliding_window=True, sliding_window=6, max_window_layers=2,
                     qkv_bias=False, tie_word_embeddings=True)


def small(**changes):
    """What Llama's cousins share: 3 query heads a key head, none of the widths a power of two."""
    return dict(
        vocab_size=73, hidden_size=30, intermediate_size=38, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=64,
        pad_token_id=None, bos_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 700.0}) | changes


def mistral():
    """A window of 7 in all layers; heads wider than their part of the stream."""
    return MistralConfig(**small(sliding_window=7, head_dim=10, hidden_size=33,
                                 num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=1e-4))


def qwen2():
    """A window of 6 in the upper two of three layers."""
    return Qwen2Config(**small(num_hidden_layers=3, use_sliding_window=True, sliding_window=6,
                               max_window_layers=1))


def qwen3():
    """Norms of heads, biases on all four matrices of the attention, no window."""
    return Qwen3Config(**small(head_dim=14, attention_bias=True, tie_word_embeddings=True))


def gemma():
    """One key head; the legacy name of the activation."""
    return GemmaConfig(**small(hidden_size=35, num_attention_heads=5, num_key_value_heads=1,
                               head_dim=14, rms_norm_eps=1e-4))


def older_gemma(config):
    """The keys of the first Gemma, whose gelu is the approximation."""
    return older_flat(config) | {"hidden_act": "gelu", "rope_scaling": None}


def olmo():
    """q, k and v clipped."""
    return OlmoConfig(**small(num_key_value_heads=3, clip_qkv=0.9))


def olmoe():
    """3 of 7 experts whose weights sum to one; normed q and k, and v, clipped; biases in the attention."""
    return OlmoeConfig(**small(num_experts=7, num_experts_per_tok=3, intermediate_size=22,
                               hidden_size=42, num_attention_heads=3, clip_qkv=1.3, attention_bias=True,
                               norm_topk_prob=True, rms_norm_eps=1e-4))


def qwen3_moe(**changes):
    """2 of 5 experts in every other layer, heads wider than their part of the stream, a window of 6."""
    return Qwen3MoeConfig(**(small(
        num_hidden_layers=4, head_dim=14, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=18, decoder_sparse_step=2, use_sliding_window=True, sliding_window=6,
        rms_norm_eps=1e-4) | changes))


def qwen3_moe_normed():
    """4 of 9 experts whose weights sum to one, a layer without any, biases in the attention, a tied
    head."""
    return qwen3_moe(num_hidden_layers=3, num_experts=9, num_experts_per_tok=4, norm_topk_prob=True,
                     mlp_only_layers=[1], decoder_sparse_step=1, use_sliding_window=False,
                     attention_bias=True, tie_word_embeddings=True)


def deepseek_v3(**changes):
    """3 of 12 experts, from 2 of 4 groups, behind one layer without any; heads of 10 + 6 entries and
    values of 14; YaRN, whose ramp ends within the 3 frequencies."""
    return DeepseekV3Config(**(small(
        num_hidden_layers=3, num_key_value_heads=3, hidden_size=33, q_lora_rank=26, kv_lora_rank=18,
        qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=14, moe_intermediate_size=18,
        n_routed_experts=12, num_experts_per_tok=3, n_group=4, topk_group=2, n_shared_experts=2,
        first_k_dense_replace=1, routed_scaling_factor=1.7, attention_bias=True, rms_norm_eps=1e-4,
        rope_parameters={"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "beta_fast": 4.0,
                         "beta_slow": 0.5, "mscale": 0.6, "mscale_all_dim": 0.9,
                         "original_max_position_embeddings": 16}) | changes))


def deepseek_v3_plain():
    """Queries by one matrix, neighbours not together, weights as they are, one group; a context that
    is not stretched."""
    return deepseek_v3(
        num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5, q_lora_rank=None,
        rope_interleave=False, n_routed_experts=7, num_experts_per_tok=2, n_group=1, topk_group=1,
        n_shared_experts=1, norm_topk_prob=False, first_k_dense_replace=0, attention_bias=False,
        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 700.0})


def older_deepseek_v3(config):
    """The keys of the published checkpoints."""
    for key in ("head_dim", "qk_head_dim", "output_router_logits"):
        config.pop(key)
    config = older_flat(config)
    config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    return config | {"moe_layer_freq": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
                     "aux_loss_alpha": 0.001, "seq_aux": True, "ep_size": 1}


def older_qwen3_moe(config):
    """The keys of the published checkpoints."""
    count = config.pop("num_local_experts")
    return older_flat(config) | {"num_experts": count, "max_window_layers": 48}


def phi(**changes):
    """4 of 10 entries rotated."""
    return PhiConfig(**(small(rope_parameters={
        "rope_type": "default", "rope_theta": 600.0, "partial_rotary_factor": 0.43}) | changes))


def phi_norms():
    """A norm for the heads of q and k."""
    return phi(qk_layernorm=True, num_key_value_heads=3, num_hidden_layers=1,
               rope_parameters={"rope_type": "default", "rope_theta": 600.0,
                                "partial_rotary_factor": 0.6})


def starcoder2():
    """A window of 8 in all layers, biases everywhere."""
    return Starcoder2Config(**small(sliding_window=8))


def stablelm(**changes):
    """4 of 10 entries rotated, biases on q, k and v."""
    return StableLmConfig(**(small(use_qkv_bias=True, rope_parameters={
        "rope_type": "default", "rope_theta": 600.0, "partial_rotary_factor": 0.4}) | changes))


def stablelm_parallel():
    """Both branches on one norm; a norm for each head of q and k with weights of its own."""
    return stablelm(use_parallel_residual=True, qk_layernorm=True, num_key_value_heads=3,
                    use_qkv_bias=False, num_hidden_layers=1)


def granite():
    """Four factors, none of them 1."""
    return GraniteConfig(**small(attention_bias=True, mlp_bias=True,
                                 attention_multiplier=0.4, residual_multiplier=0.7,
                                 embedding_multiplier=3.5, logits_scaling=0.6))


def glm4():
    """6 of 14 entries rotated, neighbours together."""
    return Glm4Config(**small(head_dim=14, hidden_size=33, rope_parameters={
        "rope_type": "default", "rope_theta": 600.0, "partial_rotary_factor": 0.45}))


def nemotron():
    """10 of 14 entries rotated, with a linear scaling."""
    return NemotronConfig(**small(head_dim=14, rope_parameters={
        "rope_type": "linear", "rope_theta": 600.0, "factor": 3.0,
        "partial_rotary_factor": 0.72}))


def smollm3():
    """Two layers of four do not rotate, and see a window of 5."""
    return SmolLM3Config(**small(num_hidden_layers=4, intermediate_size=22,
                                 use_sliding_window=True, sliding_window=5,
                                 no_rope_layers=[1, 0, 1, 0], tie_word_embeddings=True))


def gpt_neox(**changes):
    """4 of 10 entries rotated."""
    return GPTNeoXConfig(**(dict(
        vocab_size=73, hidden_size=30, intermediate_size=38, num_hidden_layers=2,
        num_attention_heads=3, max_position_embeddings=64, rope_parameters={
            "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.4}) | changes))


def gpt_neox_sequential():
    """Attention before the MLP, and no biases in it."""
    return gpt_neox(use_parallel_residual=False, attention_bias=False)


def older_gpt_neox(config):
    """The keys of Pythia."""
    rope = config.pop("rope_parameters")
    config.pop("dtype", None)
    return config | {"rotary_emb_base": 500.0, "rotary_pct": rope["partial_rotary_factor"],
                     "torch_dtype": "float32", "transformers_version": "4.20.0"}


def gpt_oss():
    """2 of 5 experts whose clamp at 0.6 cuts entries off, windows of 6 in layers 0 and 2, YaRN with
    its bounds inside the head dimension."""
    return GptOssConfig(
        vocab_size=79, hidden_size=34, intermediate_size=22, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=14, max_position_embeddings=256,
        num_local_experts=5, num_experts_per_tok=2, sliding_window=6, rms_norm_eps=1e-4,
        swiglu_limit=0.6, pad_token_id=None,
        rope_parameters={"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "beta_fast": 4.0,
                         "beta_slow": 1.0, "truncate": False,
                         "original_max_position_embeddings": 64})


def gpt_neo():
    """Every other layer sees a window of 7; heads of odd width."""
    return GPTNeoConfig(vocab_size=73, hidden_size=27, num_layers=3, num_heads=3, window_size=7,
                        attention_types=[[["global", "local"], 1], [["local"], 1]],
                        intermediate_size=38, max_position_embeddings=40,
                        bos_token_id=None, eos_token_id=None)


def opt(**changes):
    return OPTConfig(**(dict(vocab_size=73, hidden_size=30, ffn_dim=38, num_hidden_layers=2,
                             num_attention_heads=6, max_position_embeddings=40, pad_token_id=None,
                             bos_token_id=None, eos_token_id=None) | changes))


def opt_post_norm():
    """OPT-350m's form, with an embedding that is narrower than the stream; norms without weights."""
    return opt(do_layer_norm_before=False, word_embed_proj_dim=22, num_attention_heads=3,
               enable_bias=False, layer_norm_elementwise_affine=False, activation_function="gelu")


def bloom():
    """9 heads, so that some slopes are of the second kind."""
    return BloomConfig(vocab_size=73, hidden_size=27, n_layer=2, n_head=9, bos_token_id=None,
                       eos_token_id=None)


def older_bloom(config):
    """The keys of the published checkpoints."""
    for key in ("dtype", "hidden_size", "n_head"):
        config.pop(key)
    return config | {"n_embed": 27, "num_attention_heads": 9, "torch_dtype": "float32",
                     "offset_alibi": 100, "seq_length": 2048, "pretraining_tp": 2, "n_inner": None,
                     "skip_bias_add": True, "transformers_version": "4.20.0"}


def falcon_small(**changes):
    return FalconConfig(**(dict(vocab_size=73, hidden_size=30, ffn_hidden_size=38,
                                num_hidden_layers=2, num_attention_heads=3, bos_token_id=None,
                                eos_token_id=None, max_position_embeddings=256,
                                rope_parameters={"rope_type": "default", "rope_theta": 500.0})
                           | changes))


def falcon_40b():
    """Two norms, 3 queries a key head, 2 key heads."""
    return falcon_small(hidden_size=36, num_attention_heads=6, num_kv_heads=2,
                        new_decoder_architecture=True)


def falcon_alibi():
    """Falcon-RW's form: one branch after the other, biases, 9 heads with slopes."""
    return falcon_small(hidden_size=27, num_attention_heads=9, alibi=True, parallel_attn=False,
                        multi_query=False, bias=True)


def bert(**changes):
    """Three segments, fewer positions than other families' checkpoints, odd heads."""
    return BertConfig(**(dict(
        vocab_size=97, hidden_size=33, intermediate_size=46, num_hidden_layers=3,
        num_attention_heads=3, hidden_act="gelu_new", max_position_embeddings=40,
        type_vocab_size=3, layer_norm_eps=1e-4) | changes))


def bert_older():
    return bert(vocab_size=79, hidden_size=30, num_hidden_layers=2, hidden_act="gelu",
                num_attention_heads=5, type_vocab_size=2, layer_norm_eps=1e-12)


def older_bert(config):
    """As the first checkpoints have it."""
    for key in ("add_cross_attention", "is_decoder", "tie_word_embeddings", "dtype",
                "bos_token_id", "eos_token_id", "classifier_dropout"):
        del config[key]
    return config | {"gradient_checkpointing": False, "position_embedding_type": "absolute"}


def store_older_bert(out, model):
    """The first checkpoints' names of norms, and the parts that only pretraining needed."""
    path, size = out / "model.safetensors", model.config.hidden_size
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {}
    for name, x in load_file(path).items():
        for new, old in older.items():
            name = name.replace(new, old)
        tensors[name] = x
    for name, shape in (("bert.pooler.dense.weight", (size, size)),
                        ("bert.pooler.dense.bias", (size,)),
                        ("cls.seq_relationship.weight", (2, size)),
                        ("cls.seq_relationship.bias", (2,))):
        tensors[name] = torch.ones(shape)
    save_file(tensors, path, metadata={"format": "pt"})


def mamba():
    """A rank and a width that are not the automatic ones, biases wherever there can be some."""
    return MambaConfig(vocab_size=79, hidden_size=22, intermediate_size=38, state_size=5,
                       num_hidden_layers=2, conv_kernel=3, time_step_rank=7, use_bias=True,
                       layer_norm_epsilon=1e-4)


def jamba():
    """Layers of all four structures: a mixer or attention, a mixture or an MLP."""
    return JambaConfig(
        vocab_size=79, hidden_size=20, intermediate_size=26, num_hidden_layers=6,
        num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-4, num_experts=3,
        num_experts_per_tok=2, expert_layer_period=2, expert_layer_offset=1, attn_layer_period=3,
        attn_layer_offset=1, mamba_d_state=5, mamba_d_conv=3, mamba_expand=2, mamba_dt_rank=7,
        mamba_proj_bias=True, max_position_embeddings=256)


def falcon_h1(**changes):
    """Every factor other than 1, a norm inside the mixer in two groups, all biases."""
    return FalconH1Config(**(dict(
        vocab_size=79, hidden_size=20, intermediate_size=26, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, rms_norm_eps=1e-4, mamba_d_ssm=36,
        mamba_n_heads=6, mamba_d_head=6, mamba_n_groups=2, mamba_d_state=5, mamba_d_conv=3,
        mamba_proj_bias=True, mamba_rms_norm=True, projectors_bias=True, attention_bias=True,
        mlp_bias=True, lm_head_multiplier=0.7, embedding_multiplier=1.3, key_multiplier=0.6,
        mlp_multipliers=[0.8, 1.2], attention_in_multiplier=0.9, attention_out_multiplier=1.1,
        ssm_in_multiplier=1.4, ssm_out_multiplier=0.75, ssm_multipliers=[1.1, 0.9, 1.2, 0.8, 1.05],
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 900.0}) | changes))


def falcon_h1_bare():
    """As published: no bias, no norm inside the mixer, its width from the model's."""
    return falcon_h1(mamba_proj_bias=False, mamba_rms_norm=False, projectors_bias=False,
                     attention_bias=False, mlp_bias=False, mamba_d_ssm=None, mamba_d_head="auto",
                     mamba_n_heads=4, mamba_n_groups=1)


def qwen3_next():
    """Two value heads for a key head, and layers of all four structures."""
    return Qwen3NextConfig(
        vocab_size=79, hidden_size=20, intermediate_size=26, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-4,
        linear_conv_kernel_dim=3, linear_key_head_dim=6, linear_value_head_dim=5,
        linear_num_key_heads=2, linear_num_value_heads=4, moe_intermediate_size=14,
        shared_expert_intermediate_size=18, num_experts=4, num_experts_per_tok=2,
        mlp_only_layers=[2], attention_bias=True, max_position_embeddings=256,
        layer_types=["linear_attention", "full_attention", "linear_attention", "full_attention"],
        rope_parameters={"rope_type": "default", "rope_theta": 900.0,
                         "partial_rotary_factor": 0.5})


def older_gemma3(config):
    """The same meaning as gemma3() in the keys of transformers 4: one pattern, flat rope keys."""
    rope = config.pop("rope_parameters")
    for key in ("layer_types", "_sliding_window_pattern", "dtype"):
        config.pop(key, None)
    return config | {
        "sliding_window_pattern": 6, "torch_dtype": "float32", "transformers_version": "4.50.0",
        "rope_theta": rope["full_attention"]["rope_theta"],
        "rope_local_base_freq": rope["sliding_attention"]["rope_theta"],
        "rope_scaling": {"rope_type": "linear", "factor": rope["full_attention"]["factor"]}}


def older_flat(config):
    """One rope for all layers in the keys of transformers 4."""
    rope = config.pop("rope_parameters")
    theta = rope.pop("rope_theta")
    dtype = config.pop("dtype", "float32")
    scaling = None if rope["rope_type"] == "default" else rope
    return config | {"torch_dtype": dtype, "transformers_version": "4.50.0",
                     "rope_theta": theta, "rope_scaling": scaling}


def older_qwen2_moe(config):
    """Without the list of layer types, which then follows from the other keys."""
    config.pop("layer_types")
    return older_flat(config)


def older_gpt2(config):
    """The keys of the first GPT-2s."""
    config.pop("dtype", None)
    return config | {"n_ctx": config["n_positions"], "transformers_version": "4.20.0",
                     "torch_dtype": "float32"}


def store_bare(out, model):
    """GPT-2's file as its first ones are: names without a prefix, and the masks stored too."""
    path, size = out / "model.safetensors", model.config.n_positions
    tensors = {name.removeprefix("transformer."): x for name, x in load_file(path).items()}
    for layer in range(model.config.n_layer):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, path, metadata={"format": "pt"})


# name: (config, seed, config.json in its older form or None, largest shard or None). A name here is a folder there.
GOLDENS = {
    "gemma3": (gemma3, 1, None, None),
    "gemma3-older-config": (gemma3, 1, older_gemma3, None),
    "gemma3-mixed": (gemma3_mixed, 2, None, None),
    "llama": (llama, 3, None, None),
    "llama-sharded": (llama, 3, None, "150KB"),
    "llama3-rope": (llama_rope3, 4, None, None),
    "llama3-rope-older-config": (llama_rope3, 4, older_flat, None),
    "llama-bias": (llama_bias, 5, None, None),
    "gemma2": (gemma2, 7, None, None),
    "gpt2": (gpt2, 8, None, None),
    "gpt2-bare": (gpt2_bare, 9, older_gpt2, None),
    "gptj": (gptj, 10, None, None),
    "cohere": (cohere, 11, None, None),
    "cohere-norms": (cohere_norms, 12, None, None),
    "olmo2": (olmo2, 13, None, None),
    "phi3": (phi3, 14, None, None),
    "mixtral": (mixtral, 15, None, None),
    "mixtral-sharded": (mixtral, 15, older_flat, "30KB"),
    "mixtral-fused": (mixtral, 15, None, None),
    "qwen2-moe": (qwen2_moe, 16, None, None),
    "qwen2-moe-normed": (qwen2_moe_normed, 17, older_qwen2_moe, None),
    "mistral": (mistral, 21, None, None),
    "qwen2": (qwen2, 22, None, None),
    "qwen3": (qwen3, 23, None, None),
    "gemma": (gemma, 24, older_gemma, None),
    "olmo": (olmo, 25, None, None),
    "phi": (phi, 26, None, None),
    "phi-norms": (phi_norms, 27, None, None),
    "starcoder2": (starcoder2, 28, None, None),
    "stablelm": (stablelm, 29, None, None),
    "stablelm-parallel": (stablelm_parallel, 30, None, None),
    "granite": (granite, 31, None, None),
    "glm4": (glm4, 32, None, None),
    "nemotron": (nemotron, 33, None, None),
    "smollm3": (smollm3, 34, None, None),
    "gpt-neox": (gpt_neox, 35, None, None),
    "gpt-neox-sequential": (gpt_neox_sequential, 36, older_gpt_neox, None),
    "gpt-oss": (gpt_oss, 43, None, None),
    "gpt-neo": (gpt_neo, 37, None, None),
    "opt": (opt, 38, None, None),
    "opt-post-norm": (opt_post_norm, 39, None, None),
    "bloom": (bloom, 40, older_bloom, None),
    "bert": (bert, 46, None, None),
    "bert-older": (bert_older, 47, older_bert, None),
    "falcon-40b": (falcon_40b, 41, None, None),
    "falcon-alibi": (falcon_alibi, 42, None, None),
    "olmoe": (olmoe, 43, older_flat, None),
    "qwen3-moe": (qwen3_moe, 44, older_qwen3_moe, None),
    "phi3-longrope": (phi3_longrope, 46, older_phi3, None),
    "qwen3-moe-fused": (qwen3_moe_normed, 45, None, None),
    "deepseek-v3": (deepseek_v3, 46, older_deepseek_v3, None),
    "deepseek-v3-plain-fused": (deepseek_v3_plain, 47, None, None),
    "falcon": (falcon, 6, None, None),
    "falcon-older-config": (falcon, 6, older_flat, None),
}

# name: (config, seed), of families that are checked and not run.
CHECK_ONLY = {
    "mamba": (mamba, 101),
    "jamba": (jamba, 102),
    "falcon-h1": (falcon_h1, 103),
    "falcon-h1-bare": (falcon_h1_bare, 104),
    "qwen3-next": (qwen3_next, 105),
}


def random_weights(model, generator):
    """Weights of a trained model's spread: no unit norms, no zero biases, and in (1 + w) norms also
    entries whose scale is exactly zero or negative, as Gemma 3 270M has them."""
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
                # Entry 3 is zero in every norm, another one in this norm alone.
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
    # A name in `-fused`: all experts in one tensor, as transformers 5 has them in memory.
    model.save_pretrained(out, max_shard_size=shard or "1GB",
                          save_original_format=not name.endswith("-fused"))
    (out / "generation_config.json").unlink(missing_ok=True)
    if older:
        path = out / "config.json"
        path.write_text(json.dumps(older(json.loads(path.read_text())), indent=2) + "\n")
    if name == "gpt2-bare":
        store_bare(out, model)
    if name == "bert-older":
        store_older_bert(out, model)
    # The logits come from what was written, so that they belong to the files.
    written = loader(config()).from_pretrained(out, **options(config())).eval()
    with torch.no_grad():
        logits = written(tokens[None], use_cache=False).logits[0].contiguous()
    if not torch.isfinite(logits).all():
        sys.exit(f"make-goldens: {name}: logits are not finite")
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    save_file({"tokens": tokens, "logits": logits}, out / "golden.safetensors",
              metadata={"made_with": versions})
    return tokens, logits


def make_checked(name, out):
    config, seed = CHECK_ONLY[name]
    model = transformers.AutoModelForCausalLM.from_config(config(), dtype=torch.float32)
    random_weights(model, torch.Generator().manual_seed(seed))
    shutil.rmtree(out, ignore_errors=True)
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--only", choices=GOLDENS, action="append", metavar="NAME",
                        help="make this one; may be given several times: " + ", ".join(GOLDENS))
    parser.add_argument("--check-only", action="store_true",
                        help="those of families that are checked and not run")
    args = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in CHECK_ONLY if args.check_only else ():
        make_checked(name, args.out / name)
    for name in args.only or (() if args.check_only else GOLDENS):
        _, logits = make(name, args.out / name)
        size = sum(file.stat().st_size for file in (args.out / name).iterdir())
        print(f"{name:26} {size / 1024:6.0f} KiB   logits within ±{logits.abs().max():.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
