#!/usr/bin/env python3
"""Configs with bare Infinity, -Infinity and NaN, as Python writes them, against transformers.

  python_numbers.py READER PACKAGE [--generated N] [--seed S]

transformers 4 saved the limits of state-space models' time steps so. Small models of these types, with one group and with
several, have their config.json written that way, and their tensors under the names that the classes have: ctxc's logits are
transformers' (Mamba 2 has no plan, and so no logits to compare). Then such words are put in the place of values of two types'
configs: a config is read as transformers reads it, or refused by the key.
"""
import argparse
import copy
import json
import random
import sys
import tempfile
from pathlib import Path

import torch
import transformers

from config_keys import NO_PLAN, Reader, TOKENS, is_no_matter, transformers_logits
from safetensors.torch import save_file
from format_keys import fault

TYPES = ["mamba2", "bamba", "granitemoehybrid", "nemotron_h", "falcon_h1"]
CHANGED = ["bamba", "falcon_h1"]  # which are stored under the classes' names
WORDS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}


def written(config, groups, folder):
    """A random model, its config as transformers 4 wrote it."""
    for name in ("n_groups", "mamba_n_groups"):
        if hasattr(config, name):
            setattr(config, name, groups)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() < 2:
                parameter.add_(0.2 * noise)
            elif "A_log" not in name and "conv" not in name:
                parameter.copy_(noise / parameter.shape[-1] ** 0.5)
    model.config.save_pretrained(folder)
    shared = {name for name in getattr(model, "_tied_weights_keys", None) or {} if config.tie_word_embeddings}
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in shared},
              folder / "model.safetensors", {"format": "pt"})
    file = folder / "config.json"
    saved = json.loads(file.read_text())
    saved["time_step_limit"] = [0.0, float("inf")]
    file.write_text(json.dumps(saved))
    with torch.no_grad():
        return model(torch.tensor([TOKENS]), use_cache=False).logits[0, -1].double()


def differ(found, expected):
    error = (found.reshape(-1) - expected.reshape(-1)).abs().max().item()
    return None if error <= 1e-4 * max(1, expected.abs().max().item()) else f"logits differ by {error:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader")
    parser.add_argument("package")
    parser.add_argument("--generated", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    sys.path.insert(0, args.package)
    from ctxc import small_configs
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    reader, choose, bad, count, read = Reader(args.reader), random.Random(args.seed), 0, 0, 0

    def check(what, folder, names, expected=None):
        nonlocal bad, count, read
        found, message = reader.read(folder)
        if message == NO_PLAN and what.startswith("mamba2"):
            return True
        problem = fault(names, found, message, lambda: transformers_logits(folder) if expected is None else (expected, ""),
                        differ, lambda reason: is_no_matter(names, reason))
        count, read, bad = count + 1, read + (found is not None), bad + (problem is not None)
        print(f"{what}: {problem or ('equal' if found is not None else 'refused')}", flush=True)
        return found is not None

    for kind in TYPES:
        for groups in (1, 2):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                try:
                    expected = written(small_configs.small_config(kind), groups, folder)
                except Exception as error:  # as of sizes that no groups divide
                    print(f"{kind}, {groups} groups: no such model: {error}")
                    continue
                # One group is every type's own number.
                if not check(f"{kind}, {groups} groups", folder, ["n_groups", "mamba_n_groups", "mamba_ngroups"],
                             expected) and groups == 1:
                    bad += 1
                if groups != 1 or kind not in CHANGED:
                    continue
                config = json.loads((folder / "config.json").read_text())
                for _ in range(args.generated // len(CHANGED)):
                    changed = copy.deepcopy(config)
                    key, word = choose.choice(sorted(set(config) - {"model_type", "architectures"})), choose.choice(list(WORDS))
                    changed[key] = [0.0, WORDS[word]] if isinstance(config[key], list) else WORDS[word]
                    (folder / "config.json").write_text(json.dumps(changed))
                    check(f"{kind}, {key} = {word}", folder, [key])
    print(f"{count} configs, {read} read, {bad} faults")
    return 1 if bad or not read else 0


if __name__ == "__main__":
    sys.exit(main())
