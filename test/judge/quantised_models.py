#!/usr/bin/env python3
"""Compares what ctxc reads from quantised Hugging Face checkpoints with what torch and transformers read.

  quantised_models.py CTXC NAME...

For each NAME, a tiny random model of transformers' own class is quantised, to fp8 with torch's
float8_e4m3fn and a scale for each block, or to mxfp4, and dequantised again: fp8 by torch's cast, mxfp4 by
transformers' convert_moe_packed_tensors, or, where NAME ends in -whole, by loading the quantised
directory with transformers itself. The logits of ctxc's full run must agree with the dequantised model's, and to
the last bit with those of ctxc on the dequantised directory (except for gpt-oss, whose banks are transposed
there). ctxc's patch, added to the dequantised weights, must give the token alone the logits of the whole
context. ctxc must refuse to write the patch into the quantised weights.
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import judge
import programs
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, LlamaConfig, MixtralConfig, Qwen2MoeConfig
from transformers.integrations.mxfp4 import FP4_VALUES, convert_moe_packed_tensors

TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"
ROPE = {"rope_type": "default", "rope_theta": 700.0}
# Larger than a block, but not a multiple of it.
SIZES = dict(vocab_size=79, hidden_size=138, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, head_dim=22, max_position_embeddings=256, rms_norm_eps=1e-4,
             bos_token_id=None, eos_token_id=None, rope_parameters=ROPE)


def goldens():
    path = Path(__file__).resolve().parents[2] / "tools" / "make-goldens.py"
    spec = importlib.util.spec_from_file_location("goldens", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def llama(**changes):
    return LlamaConfig(**(SIZES | dict(intermediate_size=150) | changes))


def mixtral(**changes):
    return MixtralConfig(**(SIZES | dict(intermediate_size=150, num_local_experts=5,
                                         num_experts_per_tok=2) | changes))


def qwen2_moe():
    sizes = {key: value for key, value in SIZES.items() if key != "head_dim"}
    return Qwen2MoeConfig(**(sizes | dict(
        intermediate_size=62, num_hidden_layers=3, num_attention_heads=3,
        num_key_value_heads=1, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=133,
        shared_expert_intermediate_size=58, mlp_only_layers=[1])))


def deepseek_v3():
    return goldens().configs.deepseek_v3(
        hidden_size=138, intermediate_size=150, moe_intermediate_size=133, q_lora_rank=130,
        kv_lora_rank=129)


def gpt_oss():
    return GptOssConfig(**(SIZES | dict(
        hidden_size=96, intermediate_size=64, head_dim=14, num_local_experts=5,
        num_experts_per_tok=2, sliding_window=6, swiglu_limit=0.6, pad_token_id=None,
        layer_types=["sliding_attention", "full_attention"],
        rope_parameters={"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "beta_fast": 4.0,
                         "beta_slow": 1.0, "truncate": False,
                         "original_max_position_embeddings": 64})))


def blocks_of(scales, block, shape):
    """A scale for each element, from one for each block."""
    each = scales.repeat_interleave(block[0], -2).repeat_interleave(block[1], -1)
    return each[..., :shape[-2], :shape[-1]]


class Fp8:
    """A scale for each block of rows and columns, which makes its largest element the format's largest."""
    turned = False

    def __init__(self, block=(128, 128), scale=torch.float32):
        self.block, self.scale = block, scale
        self.config = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                       "weight_block_size": list(block)}

    def for_transformers(self, patch):
        return patch

    def takes(self, name, tensor):
        kept = ("norm", "embed", "lm_head", "block_sparse_moe.gate", "mlp.gate.", "expert_gate")
        return tensor.dim() >= 2 and not any(part in name for part in kept)

    def quantise(self, name, weight):
        """The stored tensors, and their numbers in float32."""
        rows, columns = weight.shape[-2:]
        count = -(-rows // self.block[0]), -(-columns // self.block[1])
        padded = torch.zeros(*weight.shape[:-2], count[0] * self.block[0], count[1] * self.block[1])
        padded[..., :rows, :columns] = weight
        largest = padded.abs().unflatten(-1, (count[1], -1)).unflatten(-3, (count[0], -1)).amax(
            dim=(-3, -1))
        scales = (largest / 448).to(self.scale)
        each = blocks_of(scales.float(), self.block, weight.shape)
        elements = (weight / each).clamp(-448, 448).to(torch.float8_e4m3fn)
        return ({name: elements, name + "_scale_inv": scales}, elements.float() * each)


class Mxfp4:
    """Banks of experts, in which 32 elements of a row share a power of two. The stored rows are columns of
    gpt-oss's own parameters (`turned`)."""

    def __init__(self, turned=False):
        self.turned = turned

    config = {"quant_method": "mxfp4",
              "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                         "model.embed_tokens", "lm_head"]}

    def takes(self, name, tensor):
        return tensor.dim() == 3

    def for_transformers(self, patch):
        """The patch file with the two factors of each bank exchanged, where rows are columns."""
        if not self.turned:
            return patch
        with safe_open(patch, framework="pt") as file:
            metadata = file.metadata()
        other = {".u": ".v", ".v": ".u"}
        tensors = {key[:-2] + other[key[-2:]] if key[:-2].endswith("]") else key: tensor
                   for key, tensor in load_file(patch).items()}
        turned = patch.with_suffix(".turned.safetensors")
        save_file(tensors, turned, metadata=metadata)
        return turned

    def quantise(self, name, bank):
        parts = (bank.transpose(1, 2) if self.turned else bank).unflatten(-1, (-1, 32))
        exponent = torch.floor(torch.log2(parts.abs().amax(-1, keepdim=True))).int() - 2
        values = torch.tensor(FP4_VALUES)
        codes = (torch.ldexp(parts, -exponent)[..., None] - values).abs().argmin(-1).to(torch.uint8)
        blocks = codes[..., 0::2] | codes[..., 1::2] << 4
        scales = (exponent + 127).squeeze(-1).to(torch.uint8)
        numbers = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        return ({name + "_blocks": blocks, name + "_scales": scales},
                (numbers if self.turned else numbers.transpose(1, 2)).contiguous())


# name: config, storage, whether all experts are in one tensor
MODELS = {
    "llama-fp8": (llama, Fp8(), False),
    "llama-fp8-blocks": (llama, Fp8((48, 32), torch.bfloat16), False),
    "llama-fp8-whole": (lambda: llama(hidden_size=128, intermediate_size=256, head_dim=64,
                                      num_attention_heads=4), Fp8(), False),
    "mixtral-fp8": (mixtral, Fp8(), False),
    "mixtral-fp8-fused": (mixtral, Fp8(), True),
    "qwen2-moe-fp8": (qwen2_moe, Fp8(), False),
    "deepseek-v3-fp8": (deepseek_v3, Fp8(), False),
    "mixtral-mxfp4": (lambda: mixtral(hidden_size=96, intermediate_size=64, head_dim=14), Mxfp4(),
                      True),
    "gpt-oss-mxfp4-whole": (gpt_oss, Mxfp4(turned=True), False),
}


def make(name, seed, folder):
    """Writes directories with the quantised checkpoint and with its numbers in float32."""
    config, storage, fused = MODELS[name]
    tools = goldens()
    model = transformers.AutoModelForCausalLM.from_config(
        config(), **tools.options(config())).eval()
    tools.random_weights(model, torch.Generator().manual_seed(seed))
    quantised, plain = folder / "quantised", folder / "dequantised"
    model.save_pretrained(plain, save_original_format=not fused)
    (plain / "generation_config.json").unlink(missing_ok=True)
    stored, numbers = {}, {}
    for key, tensor in load_file(plain / "model.safetensors").items():
        if storage.takes(key, tensor):
            tensors, numbers[key] = storage.quantise(key, tensor)
            stored |= tensors
        else:
            stored[key] = tensor.to(torch.bfloat16)
            numbers[key] = stored[key].float()
    assert len(stored) > len(numbers), "nothing is quantised"
    save_file(numbers, plain / "model.safetensors", metadata={"format": "pt"})
    quantised.mkdir()
    save_file(stored, quantised / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((plain / "config.json").read_text())
    config |= {"dtype": "bfloat16", "quantization_config": storage.config}
    (quantised / "config.json").write_text(json.dumps(config, indent=2))
    return quantised, plain


def logits_of(ctxc, model, folder, *options):
    report, logits = folder / "report.json", folder / "logits.safetensors"
    programs.run([ctxc, "verify", model, "--tokens", TOKENS, "--generate", "2", "--json", report,
                  "--logits", logits, *options], check=True)
    return json.loads(report.read_text()), load_file(logits)["full"]


def refusal(command, says):
    """Whether a command is refused with exit code 2 and these words; otherwise prints its output."""
    done = programs.run(command)
    if done.returncode == 2 and says in done.stderr:
        return True
    print(f"{command}: exit code {done.returncode}: {done.stderr}", file=sys.stderr)
    return False


def judged(ctxc, name, folder):
    storage = MODELS[name][1]
    quantised, plain = make(name, len(name), folder)
    report, logits = logits_of(ctxc, quantised, folder)
    context = report["settings"]["tokens"] + [step["next"] for step in report["steps"][:-1]]
    with torch.no_grad():
        # transformers keeps the tensors that are not quantised in bfloat16.
        model = judge.load_checkpoint(quantised if name.endswith("-whole") else plain).float()
        expected = model(torch.tensor([context]), use_cache=False).logits[0, -logits.shape[0]:]
    error = float((expected - logits).abs().max())
    _, other = logits_of(ctxc, plain, folder)
    _, wide = logits_of(ctxc, quantised, folder, "--dtype", "f32")
    # Where the other directory stores columns as rows, sums have another order.
    equal = torch.equal(logits, wide) and (storage.turned or torch.equal(logits, other))

    codes = []
    for objective in ("default", "fewest-parameters"):
        patch = folder / f"{objective}.safetensors"
        programs.run([ctxc, "patch", quantised, "--tokens", TOKENS, "-o", patch, "--objective",
                      objective], check=True)
        codes.append(judge.main([str(plain), str(storage.for_transformers(patch))]))
        programs.run([ctxc, "verify", quantised, "--patch", patch, "--objective", objective], check=True)
    format = "MXFP4" if "mxfp4" in name else "FP8"
    refused = refusal([ctxc, "apply", quantised, patch, "-o", folder / "applied"],
                      f"as {format}; quantised weights cannot hold a patch")
    refused &= not (folder / "applied").exists()
    refused &= refusal([ctxc, "verify", quantised, "--tokens", TOKENS, "--materialize"],
                       f"is stored as {format}, which cannot hold a patch")
    good = error <= 1e-4 and equal and codes == [0, 0] and refused
    print(json.dumps({"model": name, "full_run": error, "equal_to_dequantised": equal,
                      "judge": codes, "refused": refused, "ok": good}), flush=True)
    return good


def main():
    ctxc, *names = sys.argv[1:]
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    good = True
    for name in names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            good = judged(ctxc, name, Path(folder)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
