#!/usr/bin/env python3
"""Judges checkpoints without a head that gives logits of tokens, of each family, by transformers.

  base_models.py CTXC PYTHON CHECKPOINT... [--described TYPE...]

Of every checkpoint, and of a random model of every described type, forms are made as people publish them:
  bare        what the base model saves: no prefix, no head
  prefixed    the causal model's tensors without its head's, in the base model's name
  classifier  with a head of two classes, where transformers has such a class
ctxc's full run must give the base model's own last hidden state, and its patch, added to the base model's
weights, must give the token alone that state. Exit code: 0 if all of this holds, otherwise 1.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import judge
import programs
import torch
import transformers
from safetensors.torch import load_file, save_file

TOKENS = "5,17,3,60,22,41,9,33,12,71,2,6"


def bare(whole, folder):
    whole.base_model.save_pretrained(folder)


def prefixed(whole, folder):
    """What a causal model saves, without the tensors that its base model does not have."""
    whole.save_pretrained(folder)
    prefix = whole.base_model_prefix + "."
    file = folder / "model.safetensors"
    save_file({name: tensor for name, tensor in load_file(file).items() if name.startswith(prefix)}, file,
              metadata={"format": "pt"})
    rename(folder, type(whole.base_model).__name__)


def rename(folder, architecture):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": [architecture]}))


def classifier(whole, folder):
    maker = transformers.AutoModelForSequenceClassification
    if type(whole.config) not in maker._model_mapping:
        return False
    config = type(whole.config).from_dict(whole.config.to_dict() | {"num_labels": 2})
    model = maker.from_config(config, dtype=torch.float32)
    model.base_model.load_state_dict(whole.base_model.state_dict(), strict=False)  # a pooler is its own
    model.save_pretrained(folder)


FORMS = {"bare": bare, "prefixed": prefixed, "classifier": classifier}


def described(model_type):
    """A random causal model of a type, at small sizes."""
    from ctxc import small_configs
    torch.manual_seed(len(model_type))
    model = transformers.AutoModelForCausalLM.from_config(small_configs.small_config(model_type), dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.2 if parameter.dim() == 1 else parameter.shape[-1] ** -0.5
            parameter.add_(spread * torch.randn_like(parameter))
    return model.eval()


@torch.no_grad()
def judged(ctxc, whole, form, folder):
    """How far ctxc's last hidden state is from the base model's, whether the patch is one, and what else was said."""
    if FORMS[form](whole, folder) is False:
        return None
    encoder = whole.config.model_type in judge.ENCODERS
    report, states, patch = (folder / name for name in ("report.json", "states.safetensors", "patch.safetensors"))
    verified = programs.run([ctxc, "verify", folder, "--tokens", TOKENS, "--json", report, "--logits", states])
    if verified.returncode:
        return {"error": float("inf"), "judge": None, "says": verified.stderr + verified.stdout[-300:]}
    made = json.loads(report.read_text())
    ids = torch.tensor([made["settings"]["tokens"]])
    whole.base_model.eval()
    expected = whole.base_model(ids, **({} if encoder else {"use_cache": False})).last_hidden_state[0, -1]
    error = float((load_file(states)["full"][0] - expected).abs().max() / expected.abs().max())
    programs.run([ctxc, "patch", folder, "--tokens", TOKENS, "-o", patch], check=True)
    code = judge.main([str(folder), str(patch), "--control-above", "0.01"])
    return {"error": error, "judge": code, "headless": not made["model"]["head"],
            "warned": "is not read" in verified.stderr}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("python", metavar="PYTHON", help="the folder of ctxc's package")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="*")
    parser.add_argument("--described", metavar="TYPE", nargs="*", default=[])
    args = parser.parse_args()
    sys.path.insert(0, args.python)
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    good = True
    models = [(Path(path).name, lambda path=path: judge.load_checkpoint(path)) for path in args.checkpoints] + \
        [(name, lambda name=name: described(name)) for name in args.described]
    for name, load in models:
        whole = load()
        for form in FORMS:
            with tempfile.TemporaryDirectory() as folder:
                found = judged(args.ctxc, whole, form, Path(folder))
            if found is None:
                continue
            holds = found["error"] <= 1e-4 and found["judge"] == 0 and found["headless"] and \
                found["warned"] == (form == "classifier")
            print(json.dumps({"model": name, "form": form, "ok": holds} | found), flush=True)
            good &= holds
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
