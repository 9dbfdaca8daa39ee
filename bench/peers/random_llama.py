#!/usr/bin/env python3
"""Makes a Llama of 260 million parameters with random weights, only for timing.

  random_llama.py FOLDER      FOLDER/llama-260m-f32 and FOLDER/llama-260m-bf16

The weights preserve the magnitude of activations, so that the context changes the logits as it would in
a trained model. The tokenizer has 32,000 meaningless pieces, for programs that refuse a model without one.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from sentencepiece import sentencepiece_model_pb2 as spm

CONFIG = dict(vocab_size=32000, hidden_size=1024, intermediate_size=2944, num_hidden_layers=16,
              num_attention_heads=16, num_key_value_heads=8, max_position_embeddings=4096,
              rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)
SEED = 1


@torch.no_grad()
def draw(model):
    layers = model.config.num_hidden_layers
    generator = torch.Generator().manual_seed(SEED)
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            parameter.uniform_(0.5, 1.5, generator=generator)
            continue
        size = 1.0 if "embed" in name else parameter.shape[1] ** -0.5
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            size *= (2 * layers) ** -0.5
        if name.endswith(("q_proj.weight", "lm_head.weight")):
            size *= 2  # makes attention selective, and spreads the logits
        parameter.normal_(0, size, generator=generator)


def write_tokenizer(path, count):
    model = spm.ModelProto()
    piece = model.SentencePiece
    special = [("<unk>", piece.UNKNOWN), ("<s>", piece.CONTROL), ("</s>", piece.CONTROL)]
    bytes_ = [(f"<0x{i:02X}>", piece.BYTE) for i in range(256)]
    words = [(f"▁w{i}", piece.NORMAL) for i in range(count - len(special) - len(bytes_))]
    for i, (text, kind) in enumerate(special + bytes_ + words):
        model.pieces.add(piece=text, score=-float(i), type=kind)
    model.trainer_spec.model_type = spm.TrainerSpec.BPE
    model.trainer_spec.vocab_size = count
    model.trainer_spec.byte_fallback = True
    path.write_bytes(model.SerializeToString())


def make(folder):
    """The two directories, by type; they are created if they do not exist."""
    paths = {dtype: Path(folder) / f"llama-260m-{dtype}" for dtype in ("f32", "bf16")}
    if all((path / "tokenizer.model").is_file() for path in paths.values()):
        return paths
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG))
    draw(model)
    for dtype, path in paths.items():
        model.to(torch.float32 if dtype == "f32" else torch.bfloat16).save_pretrained(path)
        (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer"}))
        write_tokenizer(path / "tokenizer.model", CONFIG["vocab_size"])
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for path in make(sys.argv[1]).values():
        print(path)
