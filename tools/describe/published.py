"""What published configs say that transformers' config classes do not."""
from __future__ import annotations

from typing import Any

# Keys that no code reads, by type: with the one value that such configs have, where another could mean another model.
KEYS: dict[str, dict[str, Any]] = {
    # What the first checkpoints keep of the code that trained them.
    "starcoder2": {"activation_function": None, "layer_norm_epsilon": None, "mlp_type": "default", "norm_type": "layer_norm"},
    # How weights were first drawn, and with what they were trained.
    "mpt": {"init_config": None, "tokenizer_name": None, "verbose": None},
    "granitemoehybrid": {"normalization_function": "rmsnorm"},
    # Sizes that are hidden_size and num_attention_heads again, and how weights were first drawn.
    "lfm2": {"block_dim": None, "block_mlp_init_scale": None, "block_norm_eps": None, "block_out_init_scale": None, "block_use_swiglu": True,
             "block_use_xavier_init": None, "conv_dim": None, "conv_dim_out": None, "conv_use_xavier_init": None, "num_heads": None,
             "use_pos_enc": True},
    # The length of its list of layers, which its class takes, names that its first code had, and a rope where no head is rotated.
    "nemotron_h": {"attention_head_dim": 128, "norm_eps": None, "num_hidden_layers": None, "partial_rotary_factor": None,
                   "rms_norm_eps": None, "rope_theta": None},
    # How experts are chosen, and further layers, which transformers' class leaves out.
    "deepseek_v32": {"moe_layer_freq": 1, "num_nextn_predict_layers": None, "scoring_func": "sigmoid", "topk_method": "noaux_tc"},
    # Which layers have experts, by older keys, where no list says it.
    "axk2": {"first_k_dense_replace": 1, "moe_layer_freq": 1},
    # Scales and experts that transformers' class takes for given.
    "longcat_flash": {"attention_method": "MLA", "mla_scale_kv_lora": True, "mla_scale_q_lora": True, "router_bias": False,
                      "zero_expert_type": "identity"},
    # How experts are chosen and heads are rotated, which transformers' class takes for given, and further layers, which it leaves out.
    "glm_moe_dsa": {"indexer_rope_interleave": True, "moe_layer_freq": 1, "num_nextn_predict_layers": None, "rope_interleave": True,
                    "scoring_func": "sigmoid", "topk_method": "noaux_tc"},
    # The embeddings are scaled, whatever it says.
    "recurrent_gemma": {"embeddings_scale_by_sqrt_dim": True},
    # Each layer has biases of its own, whatever it says.
    "xlnet": {"output_past": None, "untie_r": True},
}

# Older keys that have a letter for each layer, by type and list, with the letters that models use.
PATTERNS = {("nemotron_h", "layers_block_type"): ("hybrid_override_pattern", "ME*-")}

# Other values of a key that mean the same as the one for which a description holds. The judge compares them.
SAME: dict[str, dict[str, list[Any]]] = {"granitemoehybrid": {"position_embedding_type": ["nope"]}, "nemotron_h": {"use_mamba_kernels": [True]},
                                         "xlnet": {"mem_len": [None]}}

# What transformers 4 and 5 take differently where it is left out: a config must say it.
AMBIGUOUS = {"cohere": ("theta",)}

# With one head, of keys too, these have other ops, and no logits tell whether they are the same, since ctxc does not read
# their tensors.
SEVERAL_HEADS = ("kimi_linear", "mellum", "moss_transcribe_diarize")
