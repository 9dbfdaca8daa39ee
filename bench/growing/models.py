"""Models of any size with random weights, made on the spot: .mlir files whose weights ctxc draws, and GGUF files."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from programs import drop_from_page_cache, output_of

HERE = Path(__file__).resolve().parent


@dataclass
class Model:
    path: Path
    options: tuple  # of ctxc
    config: dict


def llama(hidden, intermediate, layers, heads, vocabulary, groups=None, positions=4096):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": intermediate, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": groups or heads // 4 or 1,
        "head_dim": hidden // heads // 2 * 2, "vocab_size": vocabulary, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
        "max_position_embeddings": positions, "attention_bias": False, "mlp_bias": False}


def mixture(hidden, intermediate, layers, heads, vocabulary, experts):
    """A Mixtral, two of whose experts see each token."""
    config = llama(hidden, intermediate, layers, heads, vocabulary)
    for key in ("attention_bias", "mlp_bias"):
        config.pop(key)
    return config | {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
                     "num_local_experts": experts, "num_experts_per_tok": 2}


def drawn(ctxc, folder, config, dtype="bf16"):
    """The model as an .mlir file, whose weights may be random."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    path = folder / "model.mlir"
    output_of([ctxc, "compile", folder, "--dtype", dtype, "--emit=xf", "-o", path])
    return Model(path, ("--weights", "random:1"), config)


def matrix_parameters(config):
    """The parameters of the matrices of all layers, and those of the head (as many as the embedding has)."""
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    attention = 2 * hidden * head * (config["num_attention_heads"] + config["num_key_value_heads"])
    layer = attention + 3 * hidden * inner * config.get("num_local_experts", 1)
    return config["num_hidden_layers"] * layer, hidden * config["vocab_size"]


def windows(config):
    """For each layer the number of tokens that it sees at most; None where it sees all."""
    layers = config["num_hidden_layers"]
    kinds = config.get("layer_types") or ["full_attention"] * layers
    return [config["sliding_window"] if kind == "sliding_attention" else None for kind in kinds]


def seen(config, tokens):
    """The tokens behind which another one stands, counted for each layer that sees them."""
    return sum(min(tokens, window or tokens) for window in windows(config))


def cache_bytes(config, tokens):
    """Keys and values, in float32, that a token behind `tokens` others sees."""
    return seen(config, tokens) * config["num_key_value_heads"] * config["head_dim"] * 2 * 4


# Where a block has its scales (float16), for types that the gguf package cannot convert to, and how large they are.
SCALES = {"Q4_K": ([0, 2], 1e-3), "Q5_K": ([0, 2], 5e-4), "Q6_K": ([208], 5e-5)}


def rows_of(kind, count, columns, random):
    """Rows of random numbers as a file of this type has them, in bytes."""
    import gguf
    import numpy as np
    if kind not in SCALES:
        numbers = random.standard_normal((count, columns)).astype(np.float32) / columns ** 0.5
        return gguf.quantize(numbers, gguf.GGMLQuantizationType[kind]).view(np.uint8).reshape(count, -1)
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = random.integers(0, 256, (count * columns // elements, size), dtype=np.uint8)
    places, largest = SCALES[kind]
    for at in places:
        scales = random.uniform(0.5, 1, len(blocks)) * largest
        blocks[:, at:at + 2] = scales.astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.reshape(count, -1)


def quantised(path, config, kind):
    """A GGUF file with all matrices in one type; 64 random rows are repeated, which costs as much to read as others."""
    if not path.is_file():
        sys.path.insert(0, str(HERE.parent / "gpu"))
        import gguf
        import numpy as np
        import sparse_gguf
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        sparse_gguf.write(config, kind, unfinished)
        random = np.random.default_rng(1)
        for tensor in gguf.GGUFReader(unfinished, "r+").tensors:
            if len(tensor.shape) == 1:
                tensor.data[:] = 1
                continue
            columns, rows = map(int, tensor.shape)
            to = tensor.data.view(np.uint8).reshape(rows, -1)
            some = rows_of(kind, min(64, rows), columns, random)
            for first in range(0, rows, len(some)):
                to[first:first + len(some)] = some[:rows - first]
        unfinished.rename(path)
        drop_from_page_cache([path])
    return Model(path, (), config)


def of_checkpoint(folder):
    drop_from_page_cache(folder.glob("*.safetensors"))
    return Model(folder, (), json.loads((folder / "config.json").read_text()))


def checkpoint_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))
