#!/usr/bin/env python3
"""judge.py CTXC GOLDENS: compares `ctxc inspect --backend reference` with numbers that are computed without ctxc.

Norms and cosines are computed from the matrices u vᵀ of patch files, in numpy. What layers write, the logit lens, and
the effects of parts of the context are computed from transformers' activations. For the Llama, the patches are
computed here too, by the paper's formulas (Theorem 3): with v before the MLP's norm, z
behind it and h before W_down, in the run with the context (index C) and without,
ΔW_in = W_in (z_C − z) zᵀ / ‖z‖², ΔW_down = (v_C − v) h_Cᵀ / ‖h_C‖².
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

TOKENS = [5, 17, 3, 60, 22, 9, 41]
LAST = len(TOKENS) - 1
# transformers computes norms and rotations in float32, even in a float64 model.
ROUNDING = 5e-6


def ctxc(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def close(what, found, expected, tolerance):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    scale = max(np.max(np.abs(expected)), 1e-30)
    error = np.max(np.abs(found - expected)) / scale
    if not error <= tolerance:
        sys.exit(f"{what}: found {found}, expected {expected}, relative error {error:.2g}")


# --- From patch files -------------------------------------------------------

def matrices(path):
    """The full change of each parameter of a patch file."""
    parts = load_file(path)
    changes = {name[:-2]: parts[name].astype(float) @ parts[name[:-2] + ".v"].astype(float).T
               for name in parts if name.endswith(".u")}
    changes.update({name[:-6]: parts[name].astype(float)
                    for name in parts if name.endswith(".delta")})
    return changes


def norm_of(changes, is_matrix):
    return np.sqrt(sum((c**2).sum() for c in changes.values() if (c.ndim > 1) == is_matrix))


def cosine(a, b):
    """The cosine of two sets of changes; None where one of them is zero."""
    norms = np.sqrt(sum((c**2).sum() for c in a) * sum((c**2).sum() for c in b))
    return sum((x * y).sum() for x, y in zip(a, b)) / norms if norms else None


def check_files(program, model, stored, found, folder):
    """Norms and cosines of all tokens; patch files hold float32."""
    ctxc(program, "patch", model, "--tokens", ",".join(map(str, TOKENS)), "--positions", "all",
         "--backend", "reference", "-o", folder / "patches")
    files = [matrices(path) for path in sorted((folder / "patches").iterdir())]
    for token, changes, before in zip(found["tokens"], files, [None, *files]):
        where = f"{model.name}, position {token['position']}"
        for key, is_matrix in (("matrix", True), ("vector", False)):
            close(f"{where}: {key} norm", token["norm"][key + "Norm"], norm_of(changes, is_matrix),
                  1e-6)
            if before is None:
                continue
            chosen = [name for name in changes if (changes[name].ndim > 1) == is_matrix]
            expected = cosine([changes[n] for n in chosen], [before[n] for n in chosen])
            value = token["cosineBefore"][key]
            assert (value is None) == (expected is None), f"{where}: cosine {value}, {expected}"
            if expected is not None:
                assert abs(value - expected) < 1e-6, f"{where}: cosine {value}, {expected}"
    changes = files[-1]
    assert {p["parameter"] for p in found["subject"]["parameters"]} == set(changes)
    for parameter in found["subject"]["parameters"]:
        name = parameter["parameter"]
        norm = np.linalg.norm(changes[name])
        close(name, parameter["norm"], norm, 1e-6)
        close(name + ", relative", parameter["relative"],
              norm / np.linalg.norm(stored[name].astype(float)), 1e-6)


# --- From activations -------------------------------------------------------

class Activations:
    """The runs of one token in transformers: with some context, and layer by layer without any."""

    def __init__(self, model, norm_before_mlp):
        self.model, self.layers = model, model.model.layers
        self.norm_before_mlp = norm_before_mlp
        for layer in self.layers:
            layer.register_forward_pre_hook(self.keep(layer, "x"), with_kwargs=True)
            getattr(layer, norm_before_mlp).register_forward_pre_hook(self.keep(layer, "v"))
            layer.mlp.register_forward_pre_hook(self.keep(layer, "z"))
            layer.mlp.down_proj.register_forward_pre_hook(self.keep(layer, "h"))

    @staticmethod
    def keep(layer, name):
        def hook(module, inputs, *_):
            setattr(layer, name, inputs[0][0, -1].detach().clone())
        return hook

    def read(self):
        return [{name: getattr(layer, name) for name in "xvzh"} for layer in self.layers]

    @torch.no_grad()
    def run(self, positions):
        """Logits and activations of the last of `positions`, after the tokens at the others."""
        ids = torch.tensor([[TOKENS[p] for p in positions]])
        logits = self.model(ids, position_ids=torch.tensor([positions])).logits[0, -1]
        full, reduced = self.read(), []
        # A single token attends only to itself, so that its position has no effect.
        for layer, activations in zip(self.layers, full):
            x = activations["x"][None, None]
            kind = getattr(self.model.model, "rotary_emb")
            try:
                rotary = kind(x, torch.tensor([[LAST]]))
            except TypeError:
                rotary = kind(x, torch.tensor([[LAST]]), layer.self_attn.layer_type)
            layer(x, position_embeddings=rotary, position_ids=torch.tensor([[LAST]]),
                  attention_mask=None)
            reduced.append({name: getattr(layer, name) for name in "xvzh"})
        return logits, full, reduced


def llama_patch(layers, full, reduced):
    """The changes, by the name of the parameter."""
    changes = {}
    for i, (layer, c, r) in enumerate(zip(layers, full, reduced)):
        for name in ("gate_proj", "up_proj"):
            w = getattr(layer.mlp, name).weight
            changes[f"model.layers.{i}.mlp.{name}.weight"] = torch.outer(
                w @ (c["z"] - r["z"]), r["z"]) / r["z"].dot(r["z"])
        changes[f"model.layers.{i}.mlp.down_proj.weight"] = torch.outer(
            c["v"] - r["v"], c["h"]) / c["h"].dot(c["h"])
    return {name: change.detach().numpy() for name, change in changes.items()}


def check_activations(directory, found, norm_before_mlp, formulas):
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float64,
                                                 attn_implementation="eager").eval()
    activations = Activations(model, norm_before_mlp)
    logits, full, reduced = activations.run(list(range(len(TOKENS))))
    subject, name = found["subject"], directory.name

    writes = [(c["v"] - r["v"]).numpy() for c, r in zip(full, reduced)]
    assert len(writes) == len(subject["writes"])
    for write, expected in zip(subject["writes"], writes):
        where = f"{name}, layer {write['layer']}"
        close(where + ": direction", write["direction"], expected, ROUNDING)
        close(where + ": norm", write["norm"], np.linalg.norm(expected), ROUNDING)
        stream = torch.tensor(expected) * len(expected) ** 0.5 / np.linalg.norm(expected)
        with torch.no_grad():
            lens = model.lm_head(model.model.norm(stream)).numpy()
        order = np.argsort(-lens)
        for side, ids in (("towards", order), ("away", order[::-1])):
            assert [t["token"] for t in write[side]] == ids[:5].tolist(), f"{where}: {side}"
            close(f"{where}: {side}", [t["logit"] for t in write[side]], lens[ids[:5]], ROUNDING)
    for row, a in zip(subject["writeCosines"], writes):
        close(f"{name}: cosines of writes", row, [cosine([a], [b]) for b in writes], ROUNDING)

    p = torch.softmax(logits, 0)
    whole = llama_patch(activations.layers, full, reduced) if formulas else None
    if whole:
        for parameter in subject["parameters"]:
            close(parameter["parameter"], parameter["norm"],
                  np.linalg.norm(whole[parameter["parameter"]]), ROUNDING)
    assert len(subject["leftOut"]) == LAST
    for part in subject["leftOut"]:
        where = f"{name}, without {part['positions']}"
        rest = [p for p in range(len(TOKENS)) if p not in part["positions"]]
        logits, full, reduced = activations.run(rest)
        q = torch.softmax(logits, 0)
        close(where + ": TVD", part["totalVariation"], (p - q).abs().sum() / 2, ROUNDING)
        assert part["next"]["token"] == int(logits.argmax()), where
        if whole:
            other = llama_patch(activations.layers, full, reduced)
            change = np.sqrt(sum(((whole[n] - other[n]) ** 2).sum() for n in whole))
            close(where + ": change", part["matrixChange"], change, ROUNDING)
            close(where + ": relative", part["matrixChangeRelative"],
                  change / norm_of(whole, True), ROUNDING)


def check_compiled(name, compiled, reference):
    """Compares the compiled backend, whose kernels compute in float32, with the reference."""
    for get in (lambda f: [[n["matrixNorm"], n["vectorNorm"]] for t in f["tokens"] for n in t["layers"]],
                lambda f: [t["cosineBefore"]["matrix"] for t in f["tokens"][1:]],
                lambda f: [w["direction"] for w in f["subject"]["writes"]],
                lambda f: [[t["logit"] for t in w["towards"]] for w in f["subject"]["writes"]],
                lambda f: f["subject"]["writeCosines"],
                lambda f: [[p["matrixChangeRelative"], p["vectorChangeRelative"], p["totalVariation"]]
                           for p in f["subject"]["leftOut"]]):
        close(f"{name}, compiled", get(compiled), get(reference), 1e-4)


def main():
    program, goldens = sys.argv[1], Path(sys.argv[2])
    for name, norm_before_mlp, formulas in (("llama", "post_attention_layernorm", True),
                                            ("gemma3", "pre_feedforward_layernorm", False)):
        directory = goldens / name
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            ctxc(program, "inspect", directory, "--tokens", ",".join(map(str, TOKENS)),
                 "--backend", "reference", "--json", folder / "found.json")
            found = json.loads((folder / "found.json").read_text())
            ctxc(program, "inspect", directory, "--tokens", ",".join(map(str, TOKENS)), "--json",
                 folder / "compiled.json")
            check_compiled(name, json.loads((folder / "compiled.json").read_text()), found)
            check_files(program, directory, load_file(directory / "model.safetensors"), found,
                        folder)
        check_activations(directory, found, norm_before_mlp, formulas)
        print(f"{name}: norms, cosines, writes and left-out parts agree")


if __name__ == "__main__":
    main()
