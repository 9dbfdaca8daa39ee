"""The older forms of checkpoints: config.json with the keys, and weights with the names, that earlier
programs wrote. Each function takes a config as transformers writes it today, or the folder of a model."""

import torch
from safetensors.torch import load_file, save_file


def phi3(config):
    """The form of the published checkpoints, with the original context outside of the rope settings."""
    config = flat(config)
    scaling = config["rope_scaling"]
    scaling["type"] = scaling["rope_type"]
    for key in ("rope_type", "original_max_position_embeddings", "partial_rotary_factor"):
        scaling.pop(key, None)
    return config


def gemma(config):
    """The keys of the first Gemma; its `gelu` means the tanh approximation."""
    return flat(config) | {"hidden_act": "gelu", "rope_scaling": None}


def deepseek_v3(config):
    """The keys of the published checkpoints."""
    for key in ("head_dim", "qk_head_dim", "output_router_logits"):
        config.pop(key)
    config = flat(config)
    config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    return config | {"moe_layer_freq": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
                     "aux_loss_alpha": 0.001, "seq_aux": True, "ep_size": 1}


def qwen3_moe(config):
    """The keys of the published checkpoints."""
    count = config.pop("num_local_experts")
    return flat(config) | {"num_experts": count, "max_window_layers": 48}


def gpt_neox(config):
    """The keys of Pythia."""
    rope = config.pop("rope_parameters")
    config.pop("dtype", None)
    return config | {"rotary_emb_base": 500.0, "rotary_pct": rope["partial_rotary_factor"],
                     "torch_dtype": "float32", "transformers_version": "4.20.0"}


def bloom(config):
    """The keys of the published checkpoints."""
    for key in ("dtype", "hidden_size", "n_head"):
        config.pop(key)
    return config | {"n_embed": 27, "num_attention_heads": 9, "torch_dtype": "float32",
                     "offset_alibi": 100, "seq_length": 2048, "pretraining_tp": 2, "n_inner": None,
                     "skip_bias_add": True, "transformers_version": "4.20.0"}


def bert(config):
    """The form of the first checkpoints."""
    for key in ("add_cross_attention", "is_decoder", "tie_word_embeddings", "dtype",
                "bos_token_id", "eos_token_id", "classifier_dropout"):
        del config[key]
    return config | {"gradient_checkpointing": False, "position_embedding_type": "absolute"}


def store_bert(out, model):
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


def gemma3(config):
    """The same meaning as gemma3() in the keys of transformers 4: one pattern, flat rope keys."""
    rope = config.pop("rope_parameters")
    for key in ("layer_types", "_sliding_window_pattern", "dtype"):
        config.pop(key, None)
    return config | {
        "sliding_window_pattern": 6, "torch_dtype": "float32", "transformers_version": "4.50.0",
        "rope_theta": rope["full_attention"]["rope_theta"],
        "rope_local_base_freq": rope["sliding_attention"]["rope_theta"],
        "rope_scaling": {"rope_type": "linear", "factor": rope["full_attention"]["factor"]}}


def flat(config):
    """One rope for all layers in the keys of transformers 4."""
    rope = config.pop("rope_parameters")
    theta = rope.pop("rope_theta")
    dtype = config.pop("dtype", "float32")
    scaling = None if rope["rope_type"] == "default" else rope
    return config | {"torch_dtype": dtype, "transformers_version": "4.50.0",
                     "rope_theta": theta, "rope_scaling": scaling}


def qwen2_moe(config):
    """Without the list of layer types, which then follows from the other keys."""
    config.pop("layer_types")
    return flat(config)


def gpt2(config):
    """The keys of the first GPT-2s."""
    config.pop("dtype", None)
    return config | {"n_ctx": config["n_positions"], "transformers_version": "4.20.0",
                     "torch_dtype": "float32"}


def store_bare(out, model):
    """The file of the first GPT-2s: names without a prefix, and the attention masks stored as well."""
    path, size = out / "model.safetensors", model.config.n_positions
    tensors = {name.removeprefix("transformer."): x for name, x in load_file(path).items()}
    for layer in range(model.config.n_layer):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, path, metadata={"format": "pt"})
