#!/usr/bin/env python3
"""Makes GGUF files of models with random weights, only for timing.

  random_gguf.py FOLDER      FOLDER/llama-like.gguf, gpt-oss-like.gguf and gpt-oss-same.gguf

The first is a Llama of 250 million parameters in bfloat16, whose widths are multiples of 256, so that every type has
blocks for them. The second has gpt-oss's layers, with 16 experts of which 4 are active and the types of gpt-oss's own
files: banks of experts in MXFP4, the other matrices in Q8_0. The third differs from it in the routers alone: their biases
decide, so that all tokens of a layer choose the same experts. None has a tokenizer.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType
VOCABULARY, HIDDEN, HEADS, GROUPS, CONTEXT = 32000, 1024, 16, 8, 4096
SEED = 1


class Writer:
    """A file whose numbers are drawn from a seed, as small as those of trained weights."""

    def __init__(self, path, architecture, layers, inner, dim):
        self.file = gguf.GGUFWriter(path, architecture)
        self.random = np.random.default_rng(SEED)
        for add, value in ((self.file.add_block_count, layers), (self.file.add_context_length, CONTEXT),
                           (self.file.add_embedding_length, HIDDEN), (self.file.add_feed_forward_length, inner),
                           (self.file.add_head_count, HEADS), (self.file.add_head_count_kv, GROUPS),
                           (self.file.add_key_length, dim), (self.file.add_value_length, dim),
                           (self.file.add_rope_dimension_count, dim), (self.file.add_rope_freq_base, 10000.0),
                           (self.file.add_layer_norm_rms_eps, 1e-5), (self.file.add_vocab_size, VOCABULARY)):
            add(value)
        self.file.add_tokenizer_model("none")

    def vector(self, name, *shape, around=0.0):
        numbers = around + 0.1 * self.random.standard_normal(shape)
        self.file.add_tensor(name, numbers.astype(np.float32))

    def matrix(self, name, *shape, kind, scale=1.0):
        numbers = self.random.standard_normal(shape, dtype=np.float32) * (scale * shape[-1] ** -0.5)
        self.file.add_tensor(name, gguf.quantize(numbers, kind), raw_dtype=kind)

    def close(self):
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()


def attention(w, at, dim, kind):
    w.vector(at + "attn_norm.weight", HIDDEN, around=1)
    w.matrix(at + "attn_q.weight", HEADS * dim, HIDDEN, kind=kind)
    w.matrix(at + "attn_k.weight", GROUPS * dim, HIDDEN, kind=kind)
    w.matrix(at + "attn_v.weight", GROUPS * dim, HIDDEN, kind=kind)
    w.matrix(at + "attn_output.weight", HIDDEN, HEADS * dim, kind=kind)


def ends(w, kind):
    w.matrix("token_embd.weight", VOCABULARY, HIDDEN, kind=kind)
    w.vector("output_norm.weight", HIDDEN, around=1)
    w.matrix("output.weight", VOCABULARY, HIDDEN, kind=kind)


def llama_like(path, layers=16, inner=2816, dim=64):
    w = Writer(path, "llama", layers, inner, dim)
    for i in range(layers):
        at = f"blk.{i}."
        attention(w, at, dim, Type.BF16)
        w.vector(at + "ffn_norm.weight", HIDDEN, around=1)
        w.matrix(at + "ffn_gate.weight", inner, HIDDEN, kind=Type.BF16)
        w.matrix(at + "ffn_up.weight", inner, HIDDEN, kind=Type.BF16)
        w.matrix(at + "ffn_down.weight", HIDDEN, inner, kind=Type.BF16)
    ends(w, Type.BF16)
    w.close()


def gpt_oss_same(path):
    gpt_oss_like(path, of_router=1e-4)


def gpt_oss_like(path, layers=12, inner=1024, dim=64, experts=16, active=4, of_router=1.0):
    w = Writer(path, "gpt-oss", layers, inner, dim)
    w.file.add_sliding_window(128)
    w.file.add_expert_count(experts)
    w.file.add_expert_used_count(active)
    w.file.add_expert_feed_forward_length(inner)
    for i in range(layers):
        at = f"blk.{i}."
        attention(w, at, dim, Type.Q8_0)
        for name, width in (("q", HEADS * dim), ("k", GROUPS * dim), ("v", GROUPS * dim), ("output", HIDDEN)):
            w.vector(f"{at}attn_{name}.bias", width)
        w.vector(at + "attn_sinks.weight", HEADS)
        w.vector(at + "post_attention_norm.weight", HIDDEN, around=1)
        w.matrix(at + "ffn_gate_inp.weight", experts, HIDDEN, kind=Type.F32, scale=of_router)
        w.vector(at + "ffn_gate_inp.bias", experts)
        for name, outputs, inputs in (("gate", inner, HIDDEN), ("up", inner, HIDDEN), ("down", HIDDEN, inner)):
            w.matrix(f"{at}ffn_{name}_exps.weight", experts, outputs, inputs, kind=Type.MXFP4)
            w.vector(f"{at}ffn_{name}_exps.bias", experts, outputs)
    ends(w, Type.Q8_0)
    w.close()


def make(folder):
    """The files; they are written if they do not exist."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    made = []
    for name, write in (("llama-like", llama_like), ("gpt-oss-like", gpt_oss_like), ("gpt-oss-same", gpt_oss_same)):
        path = Path(folder) / f"{name}.gguf"
        if not path.is_file():
            unfinished = path.with_suffix(".part")
            write(unfinished)
            unfinished.rename(path)
        made.append(path)
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for path in make(sys.argv[1]):
        print(path)
