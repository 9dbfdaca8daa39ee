#!/usr/bin/env python3
"""Judges ctxc's reading of GGUF files of each architecture by transformers.

  gguf_families.py CTXC [NAME...]

For each family (all without NAME) transformers' own class makes a tiny random model. It is written as a
GGUF file as llama.cpp's converter does it: the gguf package gives the tensors' names, and the changes of
numbers (rows of q and k for pairs that lie side by side, scales as 1 + w, rows of q, k and v by kind,
matrices of GPT-2 transposed, experts in banks, those of gpt-oss in MXFP4) are made here. The logits of ctxc's full run of the file
must be transformers' logits of the model, and ctxc's patch, added to the model's weights, must give the
token alone the logits of the whole context (not GPT-2's, whose matrices the file has transposed, nor gpt-oss's, whose banks it divides).
Exit code: 0 when all of it holds, else 1.
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import gguf
import judge
import numpy as np
import programs
import torch
import transformers
from safetensors.torch import load_file

TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"
LAYERS, HIDDEN, HEADS, GROUPS = 3, 64, 4, 2
ROPE = {"rope_type": "default", "rope_theta": 5000.0}
COMMON = {"vocab_size": 77, "hidden_size": HIDDEN, "intermediate_size": 96, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "max_position_embeddings": 256,
          "tie_word_embeddings": False, "rope_parameters": ROPE, "bos_token_id": 1, "eos_token_id": 2,
          "pad_token_id": 0}
YARN = {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0,
        "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0}
LONG = {"rope_type": "longrope", "rope_theta": 5000.0, "factor": 4.0,
        "short_factor": [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], "long_factor": [4.0] * 8}


def part(share):
    return {"rope_parameters": ROPE | {"partial_rotary_factor": share}}


# Name: (architecture, model_type, what its config has beside COMMON).
FAMILIES = {
    "bloom": ("bloom", "bloom", {"n_layer": LAYERS, "n_head": HEADS, "tie_word_embeddings": True}),
    "cohere": ("command-r", "cohere", {"logit_scale": 0.75, "tie_word_embeddings": True}),
    "falcon": ("falcon", "falcon", {"multi_query": True, "bias": False, "parallel_attn": True,
                                    "new_decoder_architecture": False}),
    "falcon-40b": ("falcon", "falcon", {"new_decoder_architecture": True, "num_kv_heads": GROUPS,
                                        "bias": False}),
    "gemma": ("gemma", "gemma", {"head_dim": 32, "tie_word_embeddings": True}),
    "gemma2": ("gemma2", "gemma2", {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 5,
                                    "tie_word_embeddings": True}),
    "glm4": ("glm4", "glm4", part(0.5) | {"head_dim": 16, "attention_bias": True}),
    "gpt2": ("gpt2", "gpt2", {"n_layer": LAYERS, "n_head": HEADS, "n_embd": HIDDEN, "n_inner": 96,
                              "n_positions": 256, "tie_word_embeddings": True}),
    "gpt-oss": ("gpt-oss", "gpt_oss", {"head_dim": 16, "num_local_experts": 5, "num_experts_per_tok": 2,
                                       "sliding_window": 6, "rope_parameters": YARN | {"truncate": False}}),
    "gpt-neox": ("gptneox", "gpt_neox", part(0.25)),
    "gpt-neox-sequential": ("gptneox", "gpt_neox", part(0.5) | {"use_parallel_residual": False}),
    "granite": ("granite", "granite", {"attention_multiplier": 0.2, "embedding_multiplier": 3.0,
                                       "residual_multiplier": 0.5, "logits_scaling": 2.0}),
    "llama-yarn": ("llama", "llama", {"rope_parameters": YARN}),
    "llama-linear": ("llama", "llama", {"rope_parameters": LINEAR, "attention_bias": True}),
    "mixtral": ("llama", "mixtral", {"num_local_experts": 5, "num_experts_per_tok": 2}),
    "nemotron": ("nemotron", "nemotron", part(0.5)),
    "olmo": ("olmo", "olmo", {"clip_qkv": 1.5}),
    "olmo2": ("olmo2", "olmo2", {}),
    "olmoe": ("olmoe", "olmoe", {"num_experts": 5, "num_experts_per_tok": 2}),
    "phi": ("phi2", "phi", part(0.5) | {"num_key_value_heads": HEADS}),
    "phi3": ("phi3", "phi3", {"sliding_window": 6, "original_max_position_embeddings": 256}),
    "phi3-longrope": ("phi3", "phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 64}),
    "qwen2-yarn": ("qwen2", "qwen2", {"rope_parameters": YARN}),
    "qwen2-moe": ("qwen2moe", "qwen2_moe", {
        "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
        "shared_expert_intermediate_size": 80}),
    "smollm3": ("smollm3", "smollm3", {}),
    "stablelm": ("stablelm", "stablelm", part(0.25) | {"use_qkv_bias": True}),
    "starcoder2": ("starcoder2", "starcoder2", {"use_bias": True, "sliding_window": None}),
}
PERMUTED = ("llama", "granite", "olmo", "smollm3")  # q and k, of the architectures
MXFP4 = gguf.GGMLQuantizationType.MXFP4
ONE_MORE = ("gemma", "gemma2", "nemotron")          # scales


def make_model(model_type, settings):
    """A model with random weights, of which no norm's are all the same."""
    torch.manual_seed(len(model_type))
    values = {key: value for key, value in (COMMON | settings).items()}
    if model_type in ("bloom", "gpt2"):
        for key in ("rope_parameters", "num_key_value_heads", "intermediate_size", "num_hidden_layers",
                    "num_attention_heads") + (("hidden_size",) if model_type == "gpt2" else ()):
            values.pop(key)
    if model_type in ("falcon", "gpt_neox"):
        values.pop("num_key_value_heads")
    if model_type == "falcon":
        values.pop("intermediate_size")
    config = transformers.AutoConfig.for_model(model_type, **values)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            vector = parameter.dim() == 1 or "q_norm" in name or "k_norm" in name
            around = 1.0 if vector and name.endswith("weight") and float(parameter.mean()) != 0 else 0.0
            spread = 0.2 if vector else 1 / math.sqrt(parameter.shape[-1])
            parameter.copy_(around + spread * torch.randn_like(parameter))
            if model_type == "gpt_oss" and name.endswith(("gate_up_proj", "down_proj")):
                rows = parameter.transpose(1, 2).contiguous().numpy()
                rows = gguf.dequantize(gguf.quantize(rows, MXFP4), MXFP4)
                parameter.copy_(torch.from_numpy(rows).transpose(1, 2))
    return model


def by_kind(rows, groups, each):
    """Rows of q, k and v, which come group by group, `each` queries to a key: by kind."""
    size = rows.shape[0] // (groups * (each + 2))
    parts = rows.reshape(groups, each + 2, size, *rows.shape[1:])
    kinds = (parts[:, :each], parts[:, each:-1], parts[:, -1:])
    return torch.cat([kind.reshape(-1, *rows.shape[1:]) for kind in kinds])


def changed(name, tensor, architecture, config):
    """The tensor's numbers as the converter writes them."""
    if architecture in PERMUTED and (".q_proj." in name or ".k_proj." in name):
        heads = HEADS if ".q_proj." in name else GROUPS
        return tensor.reshape(heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
    if architecture in ONE_MORE and name.endswith("norm.weight"):
        return tensor + 1
    if ".query_key_value." in name:
        groups = HEADS if architecture != "falcon" else \
            config.num_kv_heads if config.new_decoder_architecture else 1
        return by_kind(tensor, groups, HEADS // groups)
    if architecture == "gpt2" and tensor.dim() == 2 and ".h." in name:
        return tensor.T
    return tensor


def divided(name, tensor):
    """gpt-oss's banks as the converter writes them: rows of gate and up, which alternate, in two."""
    kind = "bias" if name.endswith("_bias") else "weight"
    rows = tensor if kind == "bias" else tensor.transpose(1, 2)
    if ".gate_up_proj" in name:
        return [(f"ffn_gate_exps.{kind}", rows[:, ::2]), (f"ffn_up_exps.{kind}", rows[:, 1::2])]
    return [(f"ffn_down_exps.{kind}", rows)]


def write_tensors(writer, model, architecture):
    kind = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, LAYERS)
    head = model.get_output_embeddings().weight
    tied = head.data_ptr() == model.get_input_embeddings().weight.data_ptr()

    def add(name, tensor):
        writer.add_tensor(name, np.ascontiguousarray(tensor.squeeze().numpy()))

    for name, tensor in model.state_dict().items():
        if tied and tensor.data_ptr() == head.data_ptr() and "embed" not in name and "wte" not in name:
            continue
        if ".experts." in name:
            at = f"blk.{name.split('.')[2]}."
            if architecture == "gpt-oss":
                for part, numbers in divided(name, tensor):
                    numbers = np.ascontiguousarray(numbers.numpy())
                    if part.endswith("weight"):
                        writer.add_tensor(at + part, gguf.quantize(numbers, MXFP4), raw_dtype=MXFP4)
                    else:
                        writer.add_tensor(at + part, numbers)
            elif name.endswith("gate_up_proj"):
                gate, up = tensor.chunk(2, dim=1)
                add(at + "ffn_gate_exps.weight", gate)
                add(at + "ffn_up_exps.weight", up)
            else:
                add(at + "ffn_down_exps.weight", tensor)
            continue
        shorter = name.removeprefix("transformer.") if architecture == "bloom" else name
        stored = names.get_name(shorter, try_suffixes=(".weight", ".bias"))
        if stored is None:
            sys.exit(f"gguf_families.py: the gguf package has no name for {name} of {architecture}")
        stored += ".weight" * name.endswith("sinks")
        add(stored, changed(name, tensor, architecture, model.config))


def write_keys(w, architecture, config):
    sizes = {key: config.to_dict().get(key) for key in ("head_dim", "sliding_window")}
    dim = sizes["head_dim"] or HIDDEN // HEADS
    w.add_block_count(LAYERS)
    w.add_context_length(256)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(4 * HIDDEN if architecture in ("bloom", "falcon") else 96)
    w.add_head_count(HEADS)
    w.add_vocab_size(config.vocab_size)
    if architecture == "falcon":
        w.add_head_count_kv(config.num_kv_heads if config.new_decoder_architecture else 1)
        w.add_tensor_data_layout("jploski")
    elif architecture not in ("bloom", "gpt2", "gptneox"):
        w.add_head_count_kv(config.num_key_value_heads)
    for key in ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"):
        if hasattr(config, key):
            (w.add_layer_norm_rms_eps if key.startswith("rms") else w.add_layer_norm_eps)(getattr(config, key))
    if architecture in ("gemma", "gemma2", "gpt-oss"):
        w.add_key_length(dim)
        w.add_value_length(dim)
    if architecture in ("gemma2", "phi3", "gpt-oss"):
        w.add_sliding_window(sizes["sliding_window"] or 0)
    if architecture == "gemma2":
        w.add_attn_logit_softcapping(config.attn_logit_softcapping)
        w.add_final_logit_softcapping(config.final_logit_softcapping)
    if architecture == "olmo":
        w.add_clamp_kqv(config.clip_qkv)
        w.add_layer_norm_eps(1e-5)
    if architecture == "granite":
        w.add_attention_scale(config.attention_multiplier)
        w.add_embedding_scale(config.embedding_multiplier)
        w.add_residual_scale(config.residual_multiplier)
        w.add_logit_scale(config.logits_scaling)
    if architecture == "command-r":
        w.add_logit_scale(config.logit_scale)
    if architecture in ("gptneox", "stablelm"):
        w.add_parallel_residual(config.use_parallel_residual)
    experts = getattr(config, "num_experts", getattr(config, "num_local_experts", 0))
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(config.num_experts_per_tok)
    if architecture == "gpt-oss":
        w.add_expert_feed_forward_length(config.intermediate_size)
    if architecture == "qwen2moe":
        w.add_expert_feed_forward_length(config.moe_intermediate_size)
        w.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if architecture not in ("bloom", "gpt2"):
        write_rope(w, config.rope_parameters, dim)


def write_rope(w, rope, dim):
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_rope_dimension_count(int(dim * rope.get("partial_rotary_factor", 1)))
    if rope["rope_type"] in ("yarn", "linear"):
        w.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        w.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "longrope":
        w.add_rope_scaling_orig_ctx_len(64)
        w.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(4) / math.log(64)))
        for kind in ("long", "short"):
            w.add_tensor(f"rope_factors_{kind}.weight", np.array(rope[f"{kind}_factor"], np.float32))


def judged(ctxc, name, folder):
    architecture, model_type, settings = FAMILIES[name]
    model = make_model(model_type, settings)
    file, directory = folder / f"{name}.gguf", folder / "directory"
    writer = gguf.GGUFWriter(file, architecture)
    write_keys(writer, architecture, model.config)
    write_tensors(writer, model, architecture)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    model.save_pretrained(directory)

    report, logits = folder / "report.json", folder / "logits.safetensors"
    programs.run([ctxc, "verify", file, "--tokens", TOKENS, "--generate", "2", "--json", report,
                  "--logits", logits], check=True)
    found, report = load_file(logits)["full"], json.loads(report.read_text())
    context = report["settings"]["tokens"] + [step["next"] for step in report["steps"][:-1]]
    with torch.no_grad():
        expected = model(torch.tensor([context]), use_cache=False).logits[0, -found.shape[0]:]
    error = float((expected - found).abs().max())
    code = 0
    if architecture not in ("gpt2", "gpt-oss"):
        patch = folder / "patch.safetensors"
        programs.run([ctxc, "patch", file, "--tokens", TOKENS, "-o", patch], check=True)
        code = judge.main([str(directory), str(patch)])
    good = error <= 1e-4 and code == 0
    print(json.dumps({"family": name, "architecture": architecture, "full_run": error, "judge": code,
                      "ok": good}), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("names", metavar="NAME", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    good = True
    for name in args.names or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            good &= judged(args.ctxc, name, Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
