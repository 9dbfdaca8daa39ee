#!/usr/bin/env python3
"""Judges distilled adapters and their cards: by PEFT on transformers' model.

  lasting.py CTXC CHECKPOINT… [--only-entries]

For every checkpoint an adapter of a context is made, with norms' scales left as they are but for the first
one's. PEFT loads it, with no warning of a key, and every number of the card that `ctxc evaluate` writes is computed
again from transformers' logits: of the model with the context, without it, and with the adapter. With
transformers' cache as `--prefix-cache` wrote it, the logits are those behind the kept tokens themselves; where
that cache has latents, the option is refused. Virtual entries of the cache, as PEFT's prefix tuning, get the same
comparison; with --only-entries nothing else is made. A second adapter, of another alpha and rank, which PEFT itself
made, gets the same comparison. Beside these adapters stands a GGUF file: the gguf package reads it, its names are
those of the package's own map, and each (alpha / rank) B A is that of the safetensors file, bit for bit. Exit
code: 0 if all agree.
"""
import argparse
import json
import random
import sys
import tempfile
import warnings
from pathlib import Path

import gguf
import numpy as np
import peft
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import load_file

import card_numbers
import judge
import programs

RELATIVE = 1e-4
# With positions that are given, and no window that is shorter than the context, which would count places in the
# cache.
BY_POSITION = ["llama", "gpt2", "olmo2", "phi", "gemma-3-270m"]
# llama.cpp has no layer without experts among those of Qwen2-MoE.
WITHOUT_GGUF = ["qwen2-moe"]


def texts(seed, count, vocabulary):
    source = random.Random(seed)
    tokens = [[source.randrange(3, vocabulary) for _ in range(9)] for _ in range(count)]
    return [{"prompt": each[:3], "answer": each[3:]} for each in tokens]


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@torch.no_grad()
def log_probabilities(model, front, text):
    """Of the answer's tokens, each after those before it."""
    tokens = front + text["prompt"] + text["answer"]
    logits = model(torch.tensor([tokens])).logits[0]
    first = len(tokens) - len(text["answer"]) - 1
    return logits[first:-1].double().log_softmax(-1)


def places_seen(adapter):
    """Of the context's tokens, of which the texts see the keys and values; empty: none stays."""
    with safe_open(adapter / "adapter_model.safetensors", "pt") as file:
        return [int(place) for place in ((file.metadata() or {}).get("seen") or "").split(",") if place]


@torch.no_grad()
def log_probabilities_beside(adapted, context, seen, text):
    """The same of a model whose cache keeps some tokens of the context, as it reads it without the adapter."""
    with adapted.disable_adapter():
        read = adapted(torch.tensor([context]), use_cache=True).past_key_values
    cache = transformers.DynamicCache(config=adapted.config)
    for i, layer in enumerate(read.layers):
        cache.update(layer.keys[:, :, seen], layer.values[:, :, seen], i)
    tokens = text["prompt"] + text["answer"]
    positions = torch.arange(len(context), len(context) + len(tokens))
    logits = adapted(torch.tensor([tokens]), past_key_values=cache, position_ids=positions[None]).logits[0]
    return logits[len(text["prompt"]) - 1:-1].double().log_softmax(-1)


def stored_cache(adapter, config):
    """transformers' cache, from what `--prefix-cache` wrote; and the position of what follows."""
    cache = transformers.DynamicCache(config=config)
    with safe_open(adapter / "prefix_cache.safetensors", "pt") as file:
        for layer in range(len(file.keys()) // 2):
            cache.update(file.get_tensor(f"layers.{layer}.keys")[None],
                         file.get_tensor(f"layers.{layer}.values")[None], layer)
        return cache, len(file.metadata()["prefix"].split(","))


@torch.no_grad()
def stored_problem(adapted, adapter, text):
    """What the stored cache does to the probabilities' logarithms, relative to the largest, that the tokens do not."""
    with safe_open(adapter / "adapter_model.safetensors", "pt") as file:
        prefix = [int(token) for token in file.metadata()["prefix"].split(",")]
    seen = places_seen(adapter)
    if seen:
        expected = log_probabilities_beside(adapted, prefix, seen, text)
    else:
        expected = log_probabilities(adapted, prefix, text)
    cache, end = stored_cache(adapter, adapted.config)
    tokens = text["prompt"] + text["answer"]
    positions = {"position_ids": torch.arange(end, end + len(tokens))[None]} if seen else {}
    logits = adapted(torch.tensor([tokens]), past_key_values=cache, **positions).logits[0]
    found = logits[len(text["prompt"]) - 1:-1].double().log_softmax(-1)
    plain = log_probabilities(adapted, [], text)
    error, control = (((each - expected).abs().max() / expected.abs().max()).item() for each in (found, plain))
    return "" if error < RELATIVE < 0.01 * control else f"differs by {error:.2g}, without it by {control:.2g}"


def numbers(adapted, context, lines, seen):
    """The card's numbers, from the three models' logits."""
    def log_probabilities_of(name, line):
        if name == "adapted":
            return log_probabilities_beside(adapted, context, seen, line) if seen else log_probabilities(adapted, [], line)
        with adapted.disable_adapter():
            return log_probabilities(adapted, context if name == "full" else [], line)
    return card_numbers.numbers(log_probabilities_of, lines)


def load(checkpoint, adapter):
    model = judge.load_checkpoint(checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("error", UserWarning)  # a key that is missing or left over is a warning only
        return model, peft.PeftModel.from_pretrained(model, adapter).eval()


def agree(ctxc, checkpoint, adapter, context, held, folder, what):
    """Whether the card and transformers agree; prints the largest difference."""
    card_file = folder / "card.json"
    programs.run([ctxc, "evaluate", checkpoint, adapter, "--context-tokens", ",".join(map(str, context)),
                  "--text", held, "--json", card_file, "--force"], check=True)
    card = json.loads(card_file.read_text())
    _, adapted = load(checkpoint, adapter)
    lines = [json.loads(line) for line in held.read_text().splitlines()]
    expected = numbers(adapted, context, lines, places_seen(adapter))
    errors = card_numbers.differences(card, expected)
    worst = max(errors, key=errors.get)
    # An adapter without an effect would agree as well.
    effect = abs(expected["perplexity.adapted"] / expected["perplexity.without"] - 1)
    good = errors[worst] <= RELATIVE < 0.1 * effect
    print(f"  {'' if good else 'WRONG: '}{what}: share {expected['share_recovered']:.4f}, "
          f"card {card['share_recovered']:.4f}; largest difference {errors[worst]:.2g} ({worst})",
          flush=True)
    return good


def gguf_problem(checkpoint, adapter):
    """What is wrong with the adapter's GGUF file."""
    reader = gguf.GGUFReader(adapter / "adapter.gguf")
    fields = {key: field.contents() for key, field in reader.fields.items()}
    if (fields["general.type"], fields["adapter.type"]) != ("adapter", "lora"):
        return f"fields {fields}"
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    arch = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[fields["general.architecture"]]
    names = gguf.get_tensor_name_map(arch, config.get("num_hidden_layers", config.get("n_layer")))
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    for key, a in load_file(adapter / "adapter_model.safetensors").items():
        if not key.endswith(".lora_A.weight"):
            continue
        b = load_file(adapter / "adapter_model.safetensors")[key.replace("lora_A", "lora_B")]
        module = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        name = names.get_name(module + ".down_proj" if module.endswith(".experts") else module)
        found_a, found_b = tensors.pop(f"{name}.weight.lora_a"), tensors.pop(f"{name}.weight.lora_b")
        scale = fields["adapter.lora.alpha"] / found_b.shape[-1]
        if module.endswith(".experts"):  # PEFT has the ranks of all experts in one dimension
            found_a, found_b = found_a.reshape(a.shape), found_b.transpose(1, 2, 0).reshape(b.shape)
        if not np.array_equal(found_a, a) or not np.array_equal(scale * found_b, b) or not np.any(b @ a):
            return f"{name}: is not PEFT's"
    return f"more tensors than PEFT's: {sorted(tensors)}" if tensors else ""


def trained_elsewhere(checkpoint, targets, folder):
    """An adapter that PEFT writes, with numbers of its own."""
    model = judge.load_checkpoint(checkpoint)
    warnings.simplefilter("ignore")  # of two packages about each other
    config = peft.LoraConfig(r=3, lora_alpha=5, use_rslora=True, target_modules=targets,
                             task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                size = 0.1 * min(1, (64 / parameter.shape[1]) ** 0.5)  # a wide model still says something
                parameter.copy_(size * torch.randn_like(parameter))
    adapted.save_pretrained(folder)


def no_cache(checkpoint):
    """The key of a config because of which transformers' cache holds something else than each head's keys and values."""
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    return next((key for key in ("kv_lora_rank", "new_decoder_architecture") if config.get(key)), "")


def entries_agree(ctxc, checkpoint, context, folder):
    """Whether PEFT's prefix tuning of virtual entries gives what the card says of them."""
    made = programs.run([ctxc, "distil", checkpoint, "--context-tokens", ",".join(map(str, context)),
                         "--text", folder / "train.jsonl", "--held-out", folder / "held.jsonl",
                         "--entries", "4", "--anyway", "-o", folder / "entries"])
    if no_cache(checkpoint) or "prefix tuning has keys and values of one shape" in made.stderr:
        print(f"  entries: {made.stderr.strip()}")
        return made.returncode == 2 and (no_cache(checkpoint) or "prefix tuning") in made.stderr
    if made.returncode:
        print(f"  WRONG: distil --entries: {made.stderr}")
        return False
    return agree(ctxc, checkpoint, folder / "entries", context, folder / "train.jsonl", folder, "entries")


def judge_checkpoint(ctxc, checkpoint, number, only_entries):
    vocabulary = 70  # of the smallest golden
    context = random.Random(5).choices(range(3, vocabulary), k=12)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder / "train.jsonl", texts(1, 12, vocabulary))
        write_lines(folder / "held.jsonl", texts(2, 5, vocabulary))
        if only_entries:
            return entries_agree(ctxc, checkpoint, context, folder)
        plain = ["--gguf"] if number and Path(checkpoint).name not in WITHOUT_GGUF else []
        made = programs.run([ctxc, "distil", checkpoint, "--context-tokens", ",".join(map(str, context)),
                             "--text", folder / "train.jsonl", "--held-out", folder / "held.jsonl",
                             "--rank", "4", "--anyway", "-o", folder / "adapter", *plain])
        if made.returncode:
            print(f"  WRONG: distil: {made.stderr}")
            return False
        # What was fitted is judged on the fitted text, where there is a share to agree on.
        good = agree(ctxc, checkpoint, folder / "adapter", context, folder / "train.jsonl", folder,
                     "distilled")
        problem = gguf_problem(checkpoint, folder / "adapter") if plain else ""
        if problem:
            print(f"  WRONG: GGUF: {problem}")
            good = False
        in_cache = Path(checkpoint).name in BY_POSITION
        kept = programs.run([ctxc, "distil", checkpoint, "--context-tokens", ",".join(map(str, context)),
                             "--text", folder / "train.jsonl", "--held-out", folder / "held.jsonl", "--rank",
                             "4", "--anyway", "--keep-share", "0.4", *(["--keep-cache"] if in_cache else []),
                             "--prefix-cache", "-o", folder / "cached"])
        if no_cache(checkpoint):
            problem = "" if no_cache(checkpoint) in kept.stderr else "is not refused"
        elif kept.returncode:
            problem = kept.stderr
        else:
            problem = stored_problem(load(checkpoint, folder / "cached")[1], folder / "cached",
                                     texts(2, 1, vocabulary)[0])
        if problem:
            print(f"  WRONG: the stored cache: {problem}")
            good = False
        if in_cache:
            if not places_seen(folder / "cached"):
                print("  WRONG: nothing is kept in the cache")
                good = False
            good &= agree(ctxc, checkpoint, folder / "cached", context, folder / "train.jsonl", folder,
                          "beside a cache")
        good &= entries_agree(ctxc, checkpoint, context, folder)
        config = json.loads((folder / "adapter" / "adapter_config.json").read_text())
        targets = sorted({module.rsplit(".", 1)[1] for module in config["target_modules"]})
        if targets:
            trained_elsewhere(checkpoint, targets, folder / "other")
            good &= agree(ctxc, checkpoint, folder / "other", context, folder / "train.jsonl", folder,
                          "made by PEFT")
        return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    parser.add_argument("--only-entries", action="store_true")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    good = True
    for number, checkpoint in enumerate(args.checkpoints):
        print(checkpoint, flush=True)
        good &= judge_checkpoint(args.ctxc, checkpoint, number, args.only_entries)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
