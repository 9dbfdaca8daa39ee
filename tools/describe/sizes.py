"""The sizes that small models of a type have, one for each sample, by the names of the keys."""
from __future__ import annotations

HEADS, KV_HEADS, HEAD_DIM = (6, 10, 12, 9, 14), (3, 5, 4, 3, 7), (24, 40, 56, 72, 32)
HEADS_OF_FOUR, KV_HEADS_OF_FOUR = (8, 12, 16, 20, 24), (4, 3, 8, 5, 6)  # where heads are computed in four parts
EVEN_KV_HEADS = (4, 6, 4, 10, 6)  # for the same heads
MORE_LAYERS = (0, 0, 1, 2, 0)  # than one of each kind
WIDTH_OF_A_HEAD = (22, 26, 34, 46, 38)  # where heads have a dimension of their own
MULTIPLES = (7, 11, 13, 9, 15)  # to which a size is rounded up
EXPERTS, CHOSEN = (6, 7, 9, 8, 10), (2, 3, 4, 3, 5)
# Types whose experts are in several groups, of which some are chosen.
GROUPED = ("axk1", "deepseek_v32")
GROUPED_EXPERTS, GROUPS = (12, 16, 15, 15, 18), {"n_group": (3, 4, 5, 3, 6), "topk_group": (2, 2, 3, 2, 4)}
ATTENTION_HEADS = """num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads
    attention_heads""".split()
EXPERT_COUNTS = """num_experts n_routed_experts num_local_experts moe_num_experts n_experts""".split()
KV_NAMES = """num_key_value_heads num_kv_heads n_head_kv kv_n_heads multi_query_group_num swa_num_key_value_heads""".split()
# Types with one head of keys, whose class computes the size of a head, and with half of the inner width that a config says.
GRIFFIN = ("recurrent_gemma",)
RANGES = {"64": (0, 0), "96": (191, 733), "32": (41, 181), "128": (211, 1511), "8": (5, 12), "24": (61, 119), "16": (31, 127)}
EVEN = {"qk_rope_head_dim": (8, 40), "v_head_dim": (42, 110), "kv_lora_rank": (62, 250), "qk_nope_head_dim": (42, 110), "head_dim": HEAD_DIM, "kv_channels": HEAD_DIM,
        "d_kv": HEAD_DIM, "attention_head_dim": HEAD_DIM, "rotary_dim": (8, 20), "local_attention": (22, 18, 10, 14, 26)}
# Sizes of further tables, by the ends of their names.
OTHER_TABLES = {"_embed_dim": (61, 119), "_vocab_size": (211, 1511), "d_inner": (191, 733)}
STATE_SPACE = ("mamba", "ssm", "conv", "linear_", "lru", "time_step", "expand", "state")
# Sizes of state spaces that may be varied: groups divide heads, heads of keys those of values, and heads may have to be twice
# as wide together as the model.
STATE_SIZES = {"linear_num_key_heads": (2, 5, 3, 4, 7), "linear_num_value_heads": (4, 15, 6, 8, 14), "linear_num_heads": (5, 7, 8, 6, 9),
               "mamba_n_heads": (18, 32, 42, 27, 28), "mamba_num_heads": (26, 34, 42, 33, 44), "n_groups": (2, 2, 6, 3, 4),
               "mamba_n_groups": (2, 2, 6, 3, 4), "mamba_d_head": (16, 25, 32, 48, 32), "mamba_head_dim": (14, 22, 26, 38, 30),
               "lru_width": (66, 60, 96, 63, 98), "index_n_heads": (11, 13, 17, 19, 23), "zero_expert_num": (3, 6, 5, 4, 7)}
STATE_RANGES = {"linear_key_head_dim": (11, 61), "linear_value_head_dim": (61, 127), "linear_head_dim": (11, 61), "mamba_d_state": (11, 61),
                "ssm_state_size": (11, 61), "state_size": (11, 61), "mamba_dt_rank": (7, 43), "mamba_chunk_size": (5, 24), "time_step_rank": (7, 43)}
