"""Small configs of any causal model type of transformers: widths, numbers of heads, layers and experts are replaced by
small ones under the names that the types give them, and lists with an entry for each layer keep one layer of each kind."""
from __future__ import annotations

import copy
import dataclasses
import inspect
import warnings
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

VOCABULARY = 128
SIZES = {
    64: """hidden_size n_embd d_model dim embed_dim emb_dim n_embed word_embed_proj_dim hidden_dim embedding_size model_dim
        attention_hidden_size linear_attn_hidden_size backbone_hidden_size decoder_hidden_size text_hidden_size
        output_hidden_size out_hidden_size projection_dim cross_attention_hidden_size proj_dim lru_width embedding_dim
        vision_output_dim attn_hidden_size adapter_in_dim adapter_input_size adapter_out_dim""",
    4: """num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads attention_heads
        linear_num_value_heads num_linear_value_heads index_n_heads num_swa_heads swa_num_attention_heads linear_num_heads
        mamba_num_heads num_experts n_routed_experts num_local_experts moe_num_experts n_experts""",
    8: """mamba_n_heads qk_rope_head_dim rotary_dim mamba_dt_rank time_step_rank sliding_window window_size
        attention_window local_attention chunk_size mamba_chunk_size
        local_attn_chunk_length lsh_attn_chunk_length window sliding_window_size patch_size""",
    2: """num_key_value_heads num_kv_heads n_head_kv kv_n_heads multi_query_group_num linear_num_key_heads
        swa_num_key_value_heads num_global_key_value_heads attention_num_key_value_heads num_experts_per_tok moe_k
        moe_topk top_k_experts num_experts_per_token moe_top_k moe_router_topk num_selected_experts n_expert_per_tok""",
    16: """head_dim attention_head_dim kv_channels qk_nope_head_dim v_head_dim linear_key_head_dim linear_value_head_dim
        global_head_dim d_kv d_head attention_head_size mamba_head_dim mamba_d_head index_head_dim swa_head_dim
        swa_v_head_dim dim_head kv_lora_rank mamba_d_state ssm_state_size state_size ssm_state_dim d_state
        hidden_size_per_layer_input o_lora_rank dim_model_base linear_head_dim""",
    96: """intermediate_size ffn_dim n_inner d_ff ffn_hidden_size decoder_ffn_dim encoder_ffn_dim dim_ff dff
        intermediate_size_mlp dense_intermediate_size block_ff_dim feed_forward_size feedforward_size
        ffn_intermediate_size mlp_hidden_size prefix_dense_intermediate_size""",
    32: """moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size
        moe_shared_expert_intermediate_size expert_intermediate_size expert_ffn_hidden_size expert_dim moe_ffn_dim
        moe_latent_size moe_shared_intermediate_size mlp_intermediate_size image_size expert_ffn_size
        index_topk attention_chunk_size""",
    VOCABULARY: """vocab_size vocab_size_per_layer_input text_vocab_size bigram_vocab_size ngram_vocab_size n_words
        max_position_embeddings n_positions max_seq_len seq_length max_sequence_length n_ctx context_length
        max_target_positions max_source_positions mamba_d_ssm encoder_hash_byte_group_vocab patch_vocab_size""",
    1: """n_group topk_group num_expert_group n_groups mamba_n_groups mamba_ngroups n_shared_experts
        moe_num_shared_experts first_k_dense_replace num_shared_experts num_dense_layers o_groups""",
    0: "num_kv_shared_layers",
    24: "q_lora_rank q_lora_dim",
}
SIZE_OF = {name: size for size, names in SIZES.items() for name in names.split()}
# Sizes that a type may leave out, and that are then taken from others: they are given all the same.
ALSO_WHERE_ABSENT = """head_dim n_routed_experts num_experts num_experts_per_tok n_shared_experts num_key_value_heads
    moe_intermediate_size""".split()
LAYER_COUNTS = """num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers depth num_decoder_layers
    num_encoder_layers""".split()
PERIODS = """attn_layer_period full_attention_interval expert_layer_period global_attn_every_n_layers
    sliding_window_pattern layer_group_size interleave_moe_layer_step moe_layer_interval decoder_sparse_step
    cross_attention_interval block_types""".split()
SHORT_PERIODS = "attn_layer_period full_attention_interval layer_group_size global_attn_every_n_layers".split()
TOKENS = """pad_token_id bos_token_id eos_token_id sep_token_id decoder_start_token_id cls_token_id unk_token_id
    mask_token_id image_token_id video_token_id audio_token_id image_token_index""".split()
SETTINGS: dict[str, Any] = {"use_cache": False, "is_encoder_decoder": False, "use_mamba_kernels": False, "mamba_expand": 2, "expand": 2,
            "attn_layer_offset": 1, "attention_types": [[["global", "local"], 1]], "attn_layer_indices": [1]}

# What no rule gives, by model type or class.
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
OWN: dict[str, dict[str, Any]] = {
    "cohere_compass_text": {"rope_parameters": {"full_attention": {**ROPE, "mrope_section": [3, 3, 2]}}},
    "dots3_note_text": {"num_attention_heads": 4, "num_key_value_heads": 4},
    "MusicgenDecoderConfig": {"num_codebooks": 1},  # each has a sequence of its own
    "MusicgenMelodyDecoderConfig": {"num_codebooks": 1},
    "DbrxAttentionConfig": {"rope_theta": 10000.0, "clip_qkv": 8.0},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "longcat_flash": {"head_dim": 8, "zero_expert_num": 2},
    "qwen4_exp_text": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 8,
                       "indexer_compress_ratio": 4},
    "rwkv": {"rescale_every": 0},  # or it changes its weights while it runs
    "reformer": {"axial_pos_embds_dim": [16, 48], "axial_pos_shape": [8, 16]},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2,
              "attention_hidden_size": 128, "attention_head_dim": 32},
    "zaya": {"num_experts_per_tok": 1},
}


def causal_types() -> list[str]:
    """The model types that transformers calls causal language models."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def declared(kind: Any) -> set[str]:
    """The names of a config class's own settings."""
    names = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for base in kind.__mro__:
        if "__init__" in vars(base) and base.__module__.startswith("transformers.models"):
            names |= set(inspect.signature(base.__init__).parameters)
    return names - {"self", "kwargs"}


def value_of(config: Any, name: str) -> Any:
    try:
        return getattr(config, name, None)
    except Exception:  # some configs refuse names that differ by layer
        return None


def is_absent(config: Any, name: str) -> bool:
    """Whether `config` leaves `name` out. What differs by layer, and is refused for that, it has."""
    try:
        return getattr(config, name, None) is None
    except Exception:
        return False


def layers_kept(lists: dict[str, list[Any]]) -> list[int]:
    """The indices of one layer of each kind, two at least and four at most."""
    total = len(next(iter(lists.values())))
    kinds: dict[tuple[str, ...], int] = {}
    for layer in range(total):
        kinds.setdefault(tuple(str(values[layer]) for values in lists.values()), layer)
    kept = list(kinds.values())[:4]
    while len(kept) < 2:
        kept.append(kept[-1])
    return sorted(kept)


def settings_of(kind: Any, depth: int = 0) -> dict[str, Any]:
    """The arguments of config class `kind` for a small model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        default = kind()
    other_names = getattr(kind, "attribute_map", {}) or {}

    def is_computed(name: str) -> bool:
        member = inspect.getattr_static(kind, name, None)
        return isinstance(member, property) and member.fset is None
    names = {name for name in declared(kind) | set(other_names)
             if not is_computed(name) and not is_computed(other_names.get(name, name))}
    total = next((count for count in (value_of(default, name) for name in LAYER_COUNTS)
                  if isinstance(count, int) and count > 0), 0)
    lists = {name: list(value_of(default, name)) for name in names
             if total > 1 and isinstance(value_of(default, name), (list, tuple)) and len(value_of(default, name)) == total}
    kept = layers_kept(lists) if lists else [0, 1]
    periods = [value_of(default, name) for name in PERIODS]
    has_period = any((isinstance(p, int) and p > 1) or isinstance(p, (list, tuple)) for p in periods)
    count = 4 if has_period and not lists else len(kept)
    settings: dict[str, Any] = {}
    for name in names:
        value = value_of(default, name)
        if name in other_names and other_names[name] in names:
            continue
        if name in LAYER_COUNTS:
            if isinstance(value, int):
                settings[name] = count
        elif name in lists:
            small = SIZE_OF.get(name)
            settings[name] = [small if small and isinstance(lists[name][layer], int) and lists[name][layer] > small
                              else lists[name][layer] for layer in kept]
        elif name in SIZE_OF:
            if isinstance(value, (bool, list, tuple, dict)) or (value is None and name not in ALSO_WHERE_ABSENT):
                continue
            settings[name] = SIZE_OF[name] if value is None or value > 0 else value
        elif name in TOKENS:
            if isinstance(value, int) and value >= VOCABULARY:
                is_of_media = any(word in name for word in ("image", "video", "audio"))
                settings[name] = 120 if is_of_media else TOKENS.index(name)
        elif name in SHORT_PERIODS:
            if isinstance(value, int):
                settings[name] = min(value, 2)
        elif name in SETTINGS:
            settings[name] = SETTINGS[name]
    for name in ("mamba_expand", "expand"):
        if not isinstance(value_of(default, name), int):
            settings.pop(name, None)
    for name in getattr(kind, "sub_configs", None) or {}:
        part = value_of(default, name)
        if part is None or isinstance(part, dict) or not hasattr(part, "model_type"):
            continue
        settings[name] = type(part)(**settings_of(type(part), depth + 1)) if depth < 2 else part
        for attribute, value in vars(part).items():
            if is_absent(settings[name], attribute):
                setattr(settings[name], attribute, value)
    if {"expand", "num_heads", "head_dim"} <= names | set(settings) and "num_heads" in settings:
        settings["num_heads"] = 8
    if "kv_lora_rank" in settings and "num_key_value_heads" in settings:
        settings["num_key_value_heads"] = settings.get("num_attention_heads", 4)
    if "is_decoder" in names and value_of(default, "is_decoder") is False:
        settings["is_decoder"] = True
    settings.update(OWN.get(getattr(kind, "model_type", ""), {}))
    settings.update(OWN.get(kind.__name__, {}))
    return settings


def small_config(model_type: str) -> Any:
    """A config of `model_type` with few and small layers."""
    kind = CONFIG_MAPPING[model_type]
    settings = settings_of(kind)
    for _ in range(4):
        try:
            config = kind(**copy.deepcopy(settings))
            break
        except Exception as error:  # a setting that the type refuses keeps its default
            text = str(error)
            refused = [name for name in settings if any(f"{q}{name}{q}" in text for q in ("'", "`", " "))]
            if not refused:
                raise
            for name in refused:
                settings.pop(name)
    parts = [getattr(config, name, None) for name in (getattr(kind, "sub_configs", None) or {})]
    for part in [config] + [part for part in parts if part is not None and hasattr(part, "to_dict")]:
        part._attn_implementation = "eager"
        part.use_cache = False
        if hasattr(part, "is_decoder") and model_type != "trocr":
            part.is_decoder = True
    return config

