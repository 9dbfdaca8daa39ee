"""The configs of the tiny checkpoints that make-goldens.py makes. No width is a power of two, and every
switch differs from its default in at least one config of its family."""

from transformers import (BertConfig, BloomConfig, CohereConfig, DeepseekV3Config, FalconConfig,
                          FalconH1Config, Gemma2Config, Gemma3TextConfig, GemmaConfig, Glm4Config, GPT2Config,
                          GPTJConfig, GPTNeoConfig, GPTNeoXConfig, GptOssConfig, GraniteConfig,
                          JambaConfig, LlamaConfig, MambaConfig, MistralConfig, MixtralConfig,
                          NemotronConfig, Olmo2Config, OlmoConfig, OlmoeConfig, OPTConfig,
                          Phi3Config, PhiConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config,
                          Qwen3MoeConfig, Qwen3NextConfig, SmolLM3Config, StableLmConfig,
                          Starcoder2Config)


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
    """More layers with full attention, not only the last, and a vocabulary whose size is prime."""
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
    """Softcaps that change most scores and logits, a window of 6 in every other layer, MQA of width 14."""
    return Gemma2Config(
        vocab_size=79, hidden_size=35, intermediate_size=38, num_hidden_layers=4,
        num_attention_heads=5, num_key_value_heads=1, head_dim=14, query_pre_attn_scalar=19,
        sliding_window=6, attn_logit_softcapping=1.5, final_logit_softcapping=6.0,
        max_position_embeddings=256, rms_norm_eps=1e-4,
        rope_parameters={"rope_type": "default", "rope_theta": 800.0})


def gpt2(**changes):
    """An odd head dimension, which is possible only without rotary embeddings."""
    return GPT2Config(**(dict(vocab_size=97, n_embd=39, n_layer=3, n_head=3, n_inner=70,
                              n_positions=50) | changes))


def gpt2_bare():
    """Scores divided by the layer's number instead of the square root of the head dimension; an untied
    head."""
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
    return cohere(vocab_size=97, hidden_size=33, intermediate_size=58, num_hidden_layers=2,
                  num_attention_heads=3, num_key_value_heads=3, head_dim=14, use_qk_norm=True,
                  attention_bias=True)


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
    """All entries of a head rotated, by the short factors: runs are shorter than the original context."""
    return Phi3Config(
        vocab_size=79, hidden_size=42, intermediate_size=54, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=256,
        original_max_position_embeddings=40, pad_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "longrope", "rope_theta": 900.0,
                         "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.1],
                         "long_factor": [1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0]})


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
    """Shared by families like Llama: 3 query heads for each key head, and no width a power of two."""
    return dict(
        vocab_size=73, hidden_size=30, intermediate_size=38, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=64,
        pad_token_id=None, bos_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 700.0}) | changes


def mistral():
    """A window of 7 in all layers; heads whose widths add up to more than the hidden size."""
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


def olmo():
    """q, k and v clipped."""
    return OlmoConfig(**small(num_key_value_heads=3, clip_qkv=0.9))


def olmoe():
    """3 of 7 experts whose weights sum to one; norms on q and k; q, k and v clipped; biases in the
    attention."""
    return OlmoeConfig(**small(num_experts=7, num_experts_per_tok=3, intermediate_size=22,
                               hidden_size=42, num_attention_heads=3, clip_qkv=1.3, attention_bias=True,
                               norm_topk_prob=True, rms_norm_eps=1e-4))


def qwen3_moe(**changes):
    """2 of 5 experts in every other layer, heads that add up to more than the hidden size, a window of 6."""
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
    """Queries from a single matrix, rotary pairs that are not adjacent, expert weights that are not
    normalised, one group, no YaRN."""
    return deepseek_v3(
        num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5, q_lora_rank=None,
        rope_interleave=False, n_routed_experts=7, num_experts_per_tok=2, n_group=1, topk_group=1,
        n_shared_experts=1, norm_topk_prob=False, first_k_dense_replace=0, attention_bias=False,
        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 700.0})


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
    """Both branches read the same norm; each head of q and k has a norm with weights of its own."""
    return stablelm(use_parallel_residual=True, qk_layernorm=True, num_key_value_heads=3,
                    use_qkv_bias=False, num_hidden_layers=1)


def granite():
    """Four factors, none of them 1."""
    return GraniteConfig(**small(attention_bias=True, mlp_bias=True,
                                 attention_multiplier=0.4, residual_multiplier=0.7,
                                 embedding_multiplier=3.5, logits_scaling=0.6))


def glm4():
    """6 of 14 entries rotated, in adjacent pairs."""
    return Glm4Config(**small(head_dim=14, hidden_size=33, rope_parameters={
        "rope_type": "default", "rope_theta": 600.0, "partial_rotary_factor": 0.45}))


def nemotron():
    """10 of 14 entries rotated, with linear scaling."""
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
    """OPT-350m's form, with an embedding that is narrower than the residual stream; norms without weights."""
    return opt(do_layer_norm_before=False, word_embed_proj_dim=22, num_attention_heads=3,
               enable_bias=False, layer_norm_elementwise_affine=False, activation_function="gelu")


def bloom():
    """9 heads: not a power of two, so that ALiBi interpolates some slopes."""
    return BloomConfig(vocab_size=73, hidden_size=27, n_layer=2, n_head=9, bos_token_id=None,
                       eos_token_id=None)


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


def mamba():
    """A rank and a width other than the default ones, and every possible bias."""
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
    """Every factor differs from 1; a norm of two groups inside the mixer; all biases."""
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
    """As published: no bias, no norm inside the mixer, and a width that follows from the model's."""
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
