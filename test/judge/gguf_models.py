#!/usr/bin/env python3
"""Compares what ctxc reads from GGUF files with what transformers reads from the same files.

  gguf_models.py CTXC ARCHITECTURE...

For each architecture (gemma3, llama, llama-3.1, qwen2, qwen3, qwen3moe) a tiny random model is written by the gguf
package, its matrices in every block format that rows of their width can have. transformers
dequantises the file; the logits of ctxc's full run must be its logits, and ctxc's patch, added to the
dequantised weights, must give the token alone the logits of the whole context. Where the numbers are
stored in transformers' order and as they are (all but Llama's heads and Gemma's scales), the logits
must be those of the dequantised directory to the last bit, where both are multiplied in float32
(CTXC_VNNI=off).
"""

import collections
import json
import sys
import tempfile
from pathlib import Path

import gguf
import judge
import numpy as np
import programs
import torch
import transformers
from safetensors.torch import load_file, save_file

LAYERS, HIDDEN, INNER, HEADS, GROUPS, VOCABULARY = 3, 96, 256, 4, 2, 77
# The head dimension that transformers assumes, whatever the file says: Gemma's scores are scaled
# for 256.
DIM = {"gemma3": 256, "qwen3": 128, "qwen3moe": 128}
EXPERTS, ACTIVE, EXPERT_INNER = 5, 2, 768  # the last is what transformers assumes
# Llama 3.1's rule for the frequencies; its GGUF files hold its results, as divisors.
ROPE = {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 4.0, "low_freq_factor": 1.0,
        "high_freq_factor": 3.0, "original_max_position_embeddings": 64}
TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"
SMALL = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16", "F32"]  # rows of 32 n
LARGE = ["Q4_K", "Q5_K", "Q6_K"]  # rows of 256 n


class Writer:
    """A GGUF file whose tensors have formats that change from one tensor to the next."""

    def __init__(self, path, architecture, seed):
        self.random = np.random.default_rng(seed)
        self.file = gguf.GGUFWriter(path, architecture)
        self.turns, self.used = collections.Counter(), set()

    def vector(self, name, width, around=0.0):
        numbers = around + 0.3 * self.random.standard_normal(width)
        self.file.add_tensor(name, numbers.astype(np.float32))

    def bank(self, name, rows, width):
        """One matrix below the other, in one format."""
        self.matrix(name, rows, width, EXPERTS)

    def matrix(self, name, rows, width, count=None):
        names = LARGE if width % 256 == 0 else SMALL
        format = gguf.GGMLQuantizationType[names[self.turns[width] % len(names)]]
        self.turns[width] += 1
        self.used.add(format.name)
        if format.name in LARGE:
            stored = self.blocks(format, rows * (count or 1), width)
        else:
            numbers = self.random.standard_normal((rows * (count or 1), width)) / np.sqrt(width)
            stored = gguf.quantize(numbers.astype(np.float32), format)
        if count:
            stored = stored.reshape(count, rows, -1)
        self.file.add_tensor(name, stored, raw_dtype=format)

    def blocks(self, format, rows, width):
        """Blocks of random bits with small scales, for formats that the package cannot quantise to."""
        elements, size = gguf.GGML_QUANT_SIZES[format]
        blocks = self.random.integers(0, 256, (rows * width // elements, size), dtype=np.uint8)
        scales = {"Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}[format.name]
        for at in scales:
            values = self.random.uniform(0.5, 2, len(blocks)) / (1000 if at != 208 else 20000)
            blocks[:, at:at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)
        return blocks.reshape(rows, -1)

    def close(self):
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()


def rope_divisors(dim):
    frequencies = ROPE["rope_theta"] ** (-np.arange(0, dim, 2) / dim)
    turns = ROPE["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    low, high = ROPE["low_freq_factor"], ROPE["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return 1 / ((1 - kept) / ROPE["factor"] + kept)


def write_model(path, architecture, seed):
    scaled = architecture == "llama-3.1"
    architecture = architecture.removesuffix("-3.1")
    w = Writer(path, architecture, seed)
    gemma = architecture == "gemma3"
    w.file.add_block_count(LAYERS)
    w.file.add_context_length(256)
    w.file.add_embedding_length(HIDDEN)
    w.file.add_feed_forward_length(INNER)
    w.file.add_head_count(HEADS)
    w.file.add_head_count_kv(GROUPS)
    w.file.add_layer_norm_rms_eps(1e-5)
    w.file.add_rope_freq_base(5000.0)
    w.file.add_vocab_size(VOCABULARY)
    if architecture in ("gemma3", "qwen3", "qwen3moe"):
        w.file.add_key_length(DIM[architecture])
        w.file.add_value_length(DIM[architecture])
    if architecture == "llama":
        w.file.add_rope_dimension_count(HIDDEN // HEADS)
    if gemma:
        w.file.add_sliding_window(4)
    if architecture == "qwen3moe":
        w.file.add_expert_count(EXPERTS)
        w.file.add_expert_used_count(ACTIVE)
        w.file.add_expert_feed_forward_length(EXPERT_INNER)
    dim = DIM.get(architecture, HIDDEN // HEADS)
    if scaled:
        w.file.add_tensor("rope_freqs.weight", rope_divisors(dim).astype(np.float32))
    w.matrix("token_embd.weight", VOCABULARY, HIDDEN)
    for i in range(LAYERS):
        at = f"blk.{i}."
        w.vector(at + "attn_norm.weight", HIDDEN, 1)
        w.matrix(at + "attn_q.weight", HEADS * dim, HIDDEN)
        w.matrix(at + "attn_k.weight", GROUPS * dim, HIDDEN)
        w.matrix(at + "attn_v.weight", GROUPS * dim, HIDDEN)
        if architecture == "qwen2":
            for name, heads in (("q", HEADS), ("k", GROUPS), ("v", GROUPS)):
                w.vector(f"{at}attn_{name}.bias", heads * dim)
        if architecture in ("gemma3", "qwen3", "qwen3moe"):
            w.vector(at + "attn_q_norm.weight", dim, 1)
            w.vector(at + "attn_k_norm.weight", dim, 1)
        w.matrix(at + "attn_output.weight", HIDDEN, HEADS * dim)
        if gemma:
            w.vector(at + "post_attention_norm.weight", HIDDEN, 1)
            w.vector(at + "post_ffw_norm.weight", HIDDEN, 1)
        w.vector(at + "ffn_norm.weight", HIDDEN, 1)
        if architecture == "qwen3moe":
            router = w.random.standard_normal((EXPERTS, HIDDEN)) / np.sqrt(HIDDEN)
            w.file.add_tensor(at + "ffn_gate_inp.weight", router.astype(np.float32))
            w.bank(at + "ffn_gate_exps.weight", EXPERT_INNER, HIDDEN)
            w.bank(at + "ffn_up_exps.weight", EXPERT_INNER, HIDDEN)
            w.bank(at + "ffn_down_exps.weight", HIDDEN, EXPERT_INNER)
            continue
        w.matrix(at + "ffn_gate.weight", INNER, HIDDEN)
        w.matrix(at + "ffn_up.weight", INNER, HIDDEN)
        w.matrix(at + "ffn_down.weight", HIDDEN, INNER)
    w.vector("output_norm.weight", HIDDEN, 1)
    if not gemma:
        w.matrix("output.weight", VOCABULARY, HIDDEN)
    w.close()
    return w.used


def split_banks(file):
    """Each expert as tensors of its own, as checkpoints of mixtures have them."""
    tensors = {}
    for name, tensor in load_file(file).items():
        stem, _, kind = name.rpartition(".")
        if not stem.endswith(".experts"):
            tensors[name] = tensor
            continue
        for i, expert in enumerate(tensor):
            if kind == "gate_up_proj":
                gate, up = expert.chunk(2)
                tensors[f"{stem}.{i}.gate_proj.weight"] = gate.clone()
                tensors[f"{stem}.{i}.up_proj.weight"] = up.clone()
            else:
                tensors[f"{stem}.{i}.{kind}.weight"] = expert.clone()
    save_file(tensors, file, metadata={"format": "pt"})


def dequantised(file, out, rope):
    """Saves what transformers reads from the file as a directory, with `rope` if it is given."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager")
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    if rope:
        model.config.rope_parameters = rope
    model.save_pretrained(out)
    split_banks(out / "model.safetensors")
    return out


def ctxc_logits(ctxc, model, folder, *options, environment=None):
    """ctxc's logits after the whole context, and its report."""
    report, logits = folder / "report.json", folder / "logits.safetensors"
    programs.run([ctxc, "verify", model, "--tokens", TOKENS, "--generate", "2", "--json", report,
                  "--logits", logits, *options], check=True, environment=environment)
    return json.loads(report.read_text()), load_file(logits)["full"]


def judged(ctxc, architecture, folder):
    file = folder / f"{architecture}.gguf"
    used = write_model(file, architecture, seed=len(architecture))
    rope = ROPE if architecture == "llama-3.1" else None # transformers ignores the divisors
    directory = dequantised(file, folder / "directory", rope)
    report, logits = ctxc_logits(ctxc, file, folder)
    context = report["settings"]["tokens"] + [step["next"] for step in report["steps"][:-1]]
    model = judge.load_checkpoint(directory)
    with torch.no_grad():
        expected = model(torch.tensor([context]), use_cache=False).logits[0, -logits.shape[0]:]
    error = float((expected - logits).abs().max())

    wide, other = (ctxc_logits(ctxc, model, folder, environment={"CTXC_VNNI": "off"})[1] for model in (file, directory))
    equal = torch.equal(wide, other)

    patch = folder / "patch.safetensors"
    programs.run([ctxc, "patch", file, "--tokens", TOKENS, "-o", patch], check=True)
    code = judge.main([str(directory), str(patch)])
    programs.run([ctxc, "verify", file, "--patch", patch], check=True)
    # The stored types cannot hold the patch, and ctxc says so.
    refused = programs.run([ctxc, "apply", file, patch, "-o", folder / "applied"])
    says = refused.returncode == 2 and "is a GGUF file" in refused.stderr and not (folder / "applied").exists()
    good = error <= 1e-4 and code == 0 and says and (equal or architecture in ("gemma3", "llama", "llama-3.1"))
    print(json.dumps({"architecture": architecture, "formats": sorted(used), "full_run": error,
                      "equal_to_directory": equal, "judge": code, "apply_refused": says,
                      "ok": good}), flush=True)
    if not says:
        print(refused.stderr, file=sys.stderr)
    return good, used


def main():
    ctxc, *architectures = sys.argv[1:]
    good, used = True, set()
    for architecture in architectures:
        with tempfile.TemporaryDirectory() as folder:
            passes, formats = judged(ctxc, architecture, Path(folder))
            good &= passes
            used |= formats
    missing = set(SMALL + LARGE) - used
    if missing:
        print(f"gguf_models.py: no model used {', '.join(sorted(missing))}", file=sys.stderr)
    return 0 if good and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
