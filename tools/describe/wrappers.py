#!/usr/bin/env python3
"""Says which models of text and of images or sounds compute with a text what their text model does alone.

  wrappers.py TABLE [TYPE…]

For each model type of transformers whose config has a text_config, a small model is made with text models of several types,
and its logits of a text are compared with those of the text model alone with the same weights, where every factor that a
config can give the text model's head is another than 1. TABLE (lib/Import/HuggingFace/wrappers.json) gets the types for
which they are equal ("texts", "without" such factors where these are not applied), with the keys of the config and the
modules that stand beside the text model."""
from __future__ import annotations

import argparse
import copy
import functools
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import torch  # noqa: E402
import transformers  # noqa: E402
from ctxc import small_configs  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

AUTO = [transformers.AutoModelForCausalLM, transformers.AutoModelForImageTextToText, transformers.AutoModelForMultimodalLM,
        transformers.AutoModelForSpeechSeq2Seq]
# The text models that people put behind towers, beside the one that each class has by default.
COMMON = ("llama", "mistral", "ministral3", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "phi3", "granite", "olmo2",
          "smollm3", "deepseek_v3", "lfm2", "cohere2")
# Text models that are another type's where no token is an image's, with what that type needs to say for it.
SAME: dict[str, dict[str, Any]] = {
    "qwen2_vl_text": {"model_type": "qwen2"}, "qwen2_5_vl_text": {"model_type": "qwen2"}, "qwen3_vl_text": {"model_type": "qwen3"},
    "qwen3_vl_moe_text": {"model_type": "qwen3_moe", "norm_topk_prob": True},
    "granite_docling_text": {"model_type": "granite"}}
# Whose processor marks a whole prompt as a prefix that sees itself to its end.
PREFIXES = ("paligemma", "colpali", "t5gemma", "t5gemma2")
OF_HEAD = {"logits_scaling": 3.0, "logit_scale": 0.3, "final_logit_softcapping": 2.0, "lm_head_multiplier": 2.5}
FACTORS = {**OF_HEAD, "embedding_multiplier": 5.0, "residual_multiplier": 0.7}
PARTS = {"language_model", "text_model", "lm_head", "embed_tokens", "layers", "norm"}
ALIKE = {"model_type", "architectures", "tie_word_embeddings", "dtype", "torch_dtype", "quantization_config", "transformers_version",
         "text_config"}
# What published configs say beside the text model that transformers' classes do not: of older ones, of training, of other programs.
OLDER = ("ignore_index", "image_token_index", "image_seq_length", "vision_token_id", "use_reentrant_checkpointing", "transformers.js_config",
         "mm_tokens_per_image")
TWICE = ("vocab_size", "hidden_size", "initializer_range")  # the text model's own again
# The same of the text model, by type, with the one value that it has where another could mean another model.
LEFT: dict[str, dict[str, Any]] = {
    "": {"is_composition": None},  # of all
    "idefics3": {"_flash_attn_2_enabled": None, "is_llama_config": None, "neftune_noise_alpha": None, "perceiver_config": None,
                 "pixel_shuffle_factor": None, "qk_layer_norms": False, "rope_interleaved": False, "transformers.js_config": None,
                 "use_resampler": False}}
LEFT["smolvlm"] = LEFT["idefics3"]
# Whose tensors are stored under other names than their modules have.
OTHER_FORMS = ("aria", "glm4v_moe", "hyperclovax_vision_v2", "kimi_k25", "lfm3_vl", "minimax_m3_vl", "nemotron_h_omni", "qianfan_ocr",
               "shieldgemma2")
TOKENS = torch.tensor([[5, 9, 11, 3, 17, 8, 20, 6, 13]])


def turned(config: Any) -> Any:
    """With sections of a rotation by places in an image that fit its heads."""
    rope = getattr(config, "rope_parameters", None) or {}
    if config.model_type in SAME and rope:
        width = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        pairs = int(width * rope.get("partial_rotary_factor", 1)) // 2
        rope["mrope_section"] = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]
    return config


def text_config(model_type: str) -> Any:
    kind = CONFIG_MAPPING[model_type]
    settings = small_configs.settings_of(kind)
    default = kind().to_dict()
    settings.update({name: value for name, value in FACTORS.items() if default.get(name) is not None})
    return turned(kind(**settings))


def wrapper(model_type: str, text: Any) -> Any:
    """A small config of the type around a text model's."""
    settings = small_configs.settings_of(CONFIG_MAPPING[model_type])
    settings["text_config"] = text
    config = CONFIG_MAPPING[model_type](**settings)
    for part in (config, config.text_config):
        part._attn_implementation = "eager"
        part.use_cache = False
    return config


def random_model(config: Any) -> Any:
    kind = next(auto for auto in AUTO if type(config) in auto._model_mapping.keys())
    torch.manual_seed(1)
    model = kind.from_config(config).eval().float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.3 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
            parameter.copy_(torch.randn_like(parameter) * spread + (1.0 if "norm" in name and parameter.dim() < 2 else 0.0))
    model.tie_weights()
    return model


def alone(text: Any, without: tuple[str, ...] = ()) -> Any:
    """The config of the type that reads the text model where it stands alone, `without` factors of its head."""
    text = copy.deepcopy(text)
    for name in without:
        if getattr(text, name, None) is not None:
            setattr(text, name, None if "cap" in name else 1.0)
    if text.model_type not in SAME:
        return text
    said = {**text.to_dict(), **SAME[text.model_type]}
    said.setdefault("head_dim", text.hidden_size // text.num_attention_heads)
    for name in ("mrope_section", "mrope_interleaved"):
        (said.get("rope_parameters") or {}).pop(name, None)
    kind = CONFIG_MAPPING[said.pop("model_type")]
    return kind(**{name: value for name, value in said.items() if name in kind().to_dict()})


def difference(model: Any, text: Any) -> float:
    """How far the logits of a text are from those of a text model alone, as a share of the largest."""
    def plain(name: str) -> str:
        for front in ("model.", "transformer.", "language_model.", "text_model.", "model."):
            name = name.removeprefix(front)
        return name
    state = {plain(name): value for name, value in model.state_dict().items()}
    inner = random_model(text)
    if any(plain(name) not in state for name in inner.state_dict()):
        return float("inf")
    inner.load_state_dict({name: state[plain(name)] for name in inner.state_dict()})
    with torch.no_grad():
        found = model(input_ids=TOKENS, attention_mask=torch.ones_like(TOKENS)).logits
        expected = inner(input_ids=TOKENS).logits
    if found.shape != expected.shape or not torch.isfinite(expected).all() or expected.std() < 1e-4:
        return float("inf")
    return ((found - expected).abs().max() / expected.abs().max()).item()


def is_flat(model_type: str) -> bool:
    """Whether the class takes the keys of its text model beside its own."""
    kind = CONFIG_MAPPING[model_type]
    config = kind.from_dict({"model_type": model_type, "hidden_size": 136, "num_attention_heads": 4, "num_key_value_heads": 2})
    return config.text_config.hidden_size == 136


@functools.cache
def readable() -> set[str]:
    """The types that ctxc reads where they stand alone."""
    page = (ROOT / "docs/supported.md").read_text()
    return set(re.findall(r"^\| `([^`]+)` \| yes \|", page, re.M))


def row(model_type: str) -> dict[str, Any] | None:
    kind = CONFIG_MAPPING[model_type]
    own = getattr(kind(), "text_config", None)
    described = ROOT / f"lib/Import/Described/families/{model_type}.json"
    if model_type in (*PREFIXES, *OTHER_FORMS) or described.exists() or own is None or isinstance(own, dict) or \
            SAME.get(own.model_type, {}).get("model_type", own.model_type) not in readable():
        return None
    found: dict[str, Any] = {"texts": [], "without": []}
    for text_type in dict.fromkeys((own.model_type, *COMMON)):
        try:
            text = text_config(text_type)
            config = wrapper(model_type, text)
            if config.text_config.model_type != text_type:
                continue
            model = random_model(config)
            far = difference(model, alone(config.text_config))
            if far > 1e-5 and difference(model, alone(config.text_config, tuple(OF_HEAD))) < 1e-5:
                far = 0.0
                found["without"].append(text_type)
        except Exception as error:
            print(f"{model_type} around {text_type}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}", file=sys.stderr)
            continue
        if far > 1e-5:
            print(f"{model_type} around {text_type}: differs by {far:.1e}", file=sys.stderr)
            continue
        found["texts"].append(text_type)
        if "others" not in found:
            names = {name.removeprefix("model.").split(".")[0] for name in model.state_dict()}
            found["others"] = sorted(names - PARTS)
            found["beside"] = sorted(set(config.to_dict()) - ALIKE)
            if model_type in LEFT:
                found["left"] = LEFT[model_type]
    if own.model_type not in found["texts"]:
        return None
    if not found["without"]:
        del found["without"]
    try:
        if found["texts"][0] in SAME and is_flat(model_type):
            found["flat"] = True
    except Exception:  # a class without such keys
        pass
    return found


def write(path: Path, table: dict[str, Any]) -> None:
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(table["wrappers"].items()))
    path.write_text(f'{{"ofHead": {json.dumps(table["ofHead"])},\n "older": {json.dumps(table["older"])}, "twice": {json.dumps(table["twice"])}, "left": {json.dumps(table["left"])},\n'
                    f' "texts": {json.dumps(table["texts"])},\n "wrappers": {{\n{rows}\n}}}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("types", metavar="TYPE", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table = json.loads(arguments.table.read_text()) if arguments.types and arguments.table.exists() else {"wrappers": {}}
    table.update(texts=SAME, ofHead=list(OF_HEAD), older=list(OLDER), twice=list(TWICE), left=LEFT[""])
    for model_type in arguments.types or sorted(CONFIG_MAPPING.keys()):
        try:
            found = row(model_type)
        except Exception as error:  # a config that has no default
            print(f"{model_type}: {type(error).__name__}", file=sys.stderr)
            continue
        table["wrappers"].pop(model_type, None)
        if found:
            table["wrappers"][model_type] = found
            print(f"{model_type}: {', '.join(found['texts'])}", flush=True)
        write(arguments.table, table)


if __name__ == "__main__":
    main()
