"""What becomes of the stored weights of a described type: its logits are compared with those of transformers."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import samples
import texts
import torch
from ctxc import export
from ctxc._experts import compute_by_token

TOKENS = [5, 17, 3, 60, 22, 41, 9]
LOGITS_WITHIN = 2e-4


class Differs(Exception):
    """A description says something else than the program."""


class Refused(Exception):
    """ctxc says why it does not read a model."""


class Impossible(Exception):
    """transformers has no such model."""


class StoredWeights:
    """The part of a judge that saves models. The rest gives the description, the settings, and what ctxc makes of a config."""
    ctxc: str
    work: Path
    description: dict[str, Any]
    sampler: samples.Sampler

    def other_forms(self) -> list[dict[str, Any]]:
        """Settings of other forms that the description reads, and whose programs may have other ops: one head of keys, or
        one head, and rotations that depend on the length of the run."""
        sizes, found = self.description["sizes"], []
        is_width = "head_dim" not in sizes or self.description.get("made_with") == "heads as width"
        widths = {"hidden_size", *(name for pair in self.description.get("equal", ()) if "hidden_size" in pair for name in pair if name in sizes)}
        for names in ((samples.KV_NAMES,), (samples.KV_NAMES, samples.ATTENTION_HEADS)):
            ones = {name: 1 for some in names for name in some if sizes.get(name, {}).get("least") == 1}
            if ones and (len(names) == 1 or set(ones) & set(samples.ATTENTION_HEADS)):
                found.append({**ones, **(dict.fromkeys(widths, 72) if len(names) > 1 and is_width else {})})
        # Slopes of a power of two of heads have a rule of their own.
        found += [{heads: 8} for heads in sorted({heads for layer in self.description["layers"] for heads in re.findall(r"slopes\((\w+),", layer["call"])})]
        rope = self.description.get("ropes", {}).get("rope_parameters", {})
        if rope.get("long"):
            given = self.settings({})["rope_parameters"]
            kept = ("rope_theta", "partial_rotary_factor", *(samples.OF_POSITIONS if samples.POSITION_SCALE in given else ()))
            base = {name: value for name, value in given.items() if name in kept}
            pairs = self.pairs(base.get("partial_rotary_factor", 1))
            found.append({"rope_parameters": {**base, "rope_type": "dynamic", "factor": 4.0}})
            found.append({"rope_parameters": {**base, "rope_type": "linear", "factor": 4.0}})
            found.append({"rope_parameters": {**base, "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 64,
                                              "short_factor": [1 + 0.25 * at for at in range(pairs)],
                                              "long_factor": [1 + 0.5 * at for at in range(pairs)]}})
        return found

    def pairs(self, part: float) -> int:
        said = self.sampler.build(self.settings({})).to_dict()
        heads = next(said[name] for name in samples.ATTENTION_HEADS if name in said)
        return int((said.get("head_dim") or said["hidden_size"] // heads) * part) // 2

    def saved(self, changed: dict[str, Any]) -> Any:
        """A model of random weights, which is in the folder `model`."""
        try:
            config = self.sampler.whole(self.sampler.build({**self.settings({}), **changed}))
        except Exception as error:
            raise Impossible(str(error))
        directory = self.work / "model"
        torch.manual_seed(7)
        model = export.causal_model(config, attn_implementation="eager").float().eval()
        for name, parameter in model.named_parameters():
            parameter.data.normal_(1.0 if "norm" in name.lower() and parameter.dim() == 1 else 0.0, 0.1)
        model.save_pretrained(directory)
        if self.sampler.part:  # the model's own config is that part
            config.save_pretrained(directory)
        return model

    def verified(self, directory: Path, report: Path) -> subprocess.CompletedProcess[str]:
        # Of some types no other matrix can be patched than a mixer's last one.
        return subprocess.run([self.ctxc, "verify", str(directory), "--tokens", ",".join(map(str, TOKENS)), "--generate", "1",
                               "--sites", "all", "--logits", str(report), "--force", "--threads", "1"], capture_output=True, text=True)

    def logits(self, changed: dict[str, Any]) -> float:
        """How far ctxc's logits are from transformers', of a model with random weights."""
        model, directory = self.saved(changed), self.work / "model"
        compute_by_token(model)
        try:
            with torch.no_grad():
                expected = model(input_ids=torch.tensor([TOKENS]), use_cache=False).logits[0, -1]
        except Exception as error:
            raise Impossible(str(error))
        report = self.work / "logits.safetensors"
        run = self.verified(directory, report)
        if run.returncode == 2:
            raise Refused(run.stderr.strip().splitlines()[0].replace(str(directory), "DIR")[:300])
        if run.returncode:
            raise Differs((run.stderr + run.stdout).strip().splitlines()[-1].replace(str(directory), "DIR"))
        from safetensors.torch import load_file
        found = load_file(report)["full"].reshape(-1, expected.shape[-1])[0]
        return float((found - expected).abs().max() / expected.abs().max().clamp(min=1))

    def without_numbers(self) -> str:
        """Of a program with parts that nothing computes, stored tensors have no other program than the config alone, and
        neither can be run: what is said names the parts and the way out."""
        for changed in self.other_forms():
            self.same_program({**self.settings({}), **changed})
        self.saved({})
        alone, stored = self.work / "alone", self.work / "model"
        alone.mkdir(exist_ok=True)
        (alone / "config.json").write_text((stored / "config.json").read_text())
        try:
            program = self.imported(stored)
        except Differs as refusal:
            return f"no weights: {refusal}"
        if program != self.imported(alone):
            raise Differs("with weights, another program than of the config alone")
        for directory in (alone, stored):
            run = self.verified(directory, self.work / "no.safetensors")
            if run.returncode != 2 or "has no numerics" not in run.stderr or "python -m ctxc.export" not in run.stderr:
                raise Differs(f"runs what nothing computes: {run.returncode}, {run.stderr.strip()[:300]}")
        return "no numbers"

    def weights(self) -> str:
        """What becomes of stored weights: a checkpoint whose tensors have other names is refused."""
        if texts.lacks_numbers(json.dumps(self.description)):
            return self.without_numbers()
        try:
            far = self.logits({})
        except Refused as refusal:
            return f"no weights: {refusal}"
        forms = self.other_forms()
        for changed in forms:
            try:
                far = max(far, self.logits(changed))
            except Impossible:
                self.refuse({**self.settings({}), **changed})
            if far > LOGITS_WITHIN:
                raise Differs(f"logits differ by {far:.1e} with {changed}")
        if far > LOGITS_WITHIN:
            raise Differs(f"logits differ by {far:.1e}")
        return f"logits {far:.1e} of {1 + len(forms)} models"
