"""A GGUF file of a Llama with the shapes of a config.json. It has no numbers, and its data is a hole of the file, for
recordings in which weights are drawn (record.cpp); or random numbers, for recordings that are executed."""

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter


def matrices(config):
    width, inner = config["hidden_size"], config["intermediate_size"]
    head = config["head_dim"]
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield "token_embd.weight", config["vocab_size"], width
    for i in range(config["num_hidden_layers"]):
        for name, rows, columns in (("attn_q", q, width), ("attn_k", kv, width), ("attn_v", kv, width),
                                    ("attn_output", width, q), ("ffn_gate", inner, width),
                                    ("ffn_up", inner, width), ("ffn_down", width, inner)):
            yield f"blk.{i}.{name}.weight", rows, columns
    yield "output.weight", config["vocab_size"], width


def type_of(name, index, of, kind):
    """The type of a matrix in a file of the given kind; those of Q4_K_M are llama.cpp's own choice."""
    if kind != "Q4_K_M":
        return GGMLQuantizationType[kind]
    is_more = index < of // 8 or index >= 7 * of // 8 or (index - of // 8) % 3 == 2
    if name == "output.weight" or (is_more and ("attn_v" in name or "ffn_down" in name)):
        return GGMLQuantizationType.Q6_K
    return GGMLQuantizationType.Q4_K


# Where a block has float16 scales, and their size for numbers of about 0.1.
SCALES = {"Q4_0": {0: 0.01}, "Q8_0": {0: 0.001}, "Q4_K": {0: 3e-4, 2: 3e-3}, "Q6_K": {208: 5e-5}}


def random_bytes(kind, count, random):
    """`count` numbers as they are stored, drawn at random."""
    if kind == GGMLQuantizationType.F32:
        return (1 + 0.1 * random.standard_normal(count, dtype=np.float32)).tobytes()
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (count // elements, size), dtype=np.uint8)
    if kind == GGMLQuantizationType.MXFP4:
        blocks[:, 0] = random.integers(121, 125, len(blocks))
        return blocks.tobytes()
    for at, scale in SCALES[kind.name].items():
        drawn = (scale * random.uniform(0.5, 1, (len(blocks), 1))).astype("<f2")
        blocks[:, at:at + 2] = drawn.view(np.uint8)
    return blocks.tobytes()


def write(config, kind, path, random=None):
    """With a generator `random`, the file has its numbers."""
    writer = GGUFWriter(path, "llama")
    layers = config["num_hidden_layers"]
    writer.add_block_count(layers)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])

    def add(name, shape, kind):
        block, size = GGML_QUANT_SIZES[kind]
        count = int(np.prod(shape))
        # The writer wants the shape in bytes of types that are not numpy's.
        given = shape if kind == GGMLQuantizationType.F32 else \
            (*shape[:-1], shape[-1] // block * size)
        dtype = np.dtype(np.float32 if kind == GGMLQuantizationType.F32 else np.uint8)
        writer.add_tensor_info(name, given, dtype, count // block * size,
                               None if kind == GGMLQuantizationType.F32 else kind)
        stored.append((kind, count))
        return (count // block * size + 31) // 32 * 32

    size, stored = 0, []
    for name, rows, columns in matrices(config):
        index = int(name.split(".")[1]) if name.startswith("blk") else 0
        size += add(name, (rows, columns), type_of(name, index, layers, kind))
    for name in [f"blk.{i}.{norm}_norm.weight" for i in range(layers) for norm in ("attn", "ffn")] + \
            ["output_norm.weight"]:
        size += add(name, (config["hidden_size"],), GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with open(path, "r+b") as file:
        start = file.seek(0, 2)
        file.truncate((start + 31) // 32 * 32 + size)
        for each in stored if random else []:
            file.seek((file.seek(0, 1) + 31) // 32 * 32)
            file.write(random_bytes(*each, random))
