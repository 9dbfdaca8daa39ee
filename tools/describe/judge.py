#!/usr/bin/env python3
"""Judges descriptions: at sizes that no fit has seen, the program that ctxc makes of a config.json is the one that
the exporter gives for it, and a model of random weights has transformers' logits.

  judge.py CTXC FOLDER TYPE... [--configs FILE]

FOLDER has the descriptions that CTXC was built with. Prints for each type what was found; fails where a description says
something else than the program. --configs keeps the judged config of each type that passes, a line each."""
from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import torch  # noqa: E402

import defaults  # noqa: E402
import describe  # noqa: E402
import fits  # noqa: E402
import samples  # noqa: E402
import sizes  # noqa: E402
import template  # noqa: E402
import texts  # noqa: E402
import weights  # noqa: E402
from ctxc import small_configs  # noqa: E402
from weights import Differs  # noqa: E402

UNSEEN = (0, 3)  # the samples that no fit has seen
JUDGED = UNSEEN[-1]
WITHIN = 1e-5  # of frequencies, which torch computes in float32
WHY = re.compile(r'graph\.why = "[^"]*"')  # one of the ops that are in the way, which with other sizes may be another one


def compare_lines(found: list[str], expected: list[str]) -> None:
    if len(found) != len(expected):
        raise Differs(f"{len(found)} ops; expected {len(expected)}")
    for one, other in zip(found, expected):
        a, b = texts.pieces(WHY.sub("", one)), texts.pieces(WHY.sub("", other))
        good = len(a) == len(b) and all(
            x == y if isinstance(x, str) or isinstance(y, str) or x.kind in ("word", "int") else
            x.kind == y.kind and fits.same(x.value if x.kind == "list" else [x.value], y.value if y.kind == "list" else [y.value], WITHIN)
            for x, y in zip(a, b))
        if not good:
            raise Differs(f"{one.strip()[:200]}; expected {other.strip()[:200]}")


def compare(found: texts.Program, expected: texts.Program) -> None:
    compare_lines(found.before, expected.before)
    compare_lines(found.behind, expected.behind)
    if len(found.layers) != len(expected.layers) or found.entry != expected.entry:
        raise Differs("other layers")
    for one, other in zip(found.layers, expected.layers):
        compare_lines([*one.block.splitlines(), one.line], [*other.block.splitlines(), other.line])


class Judge(weights.StoredWeights):
    def __init__(self, ctxc: str, model_type: str, folder: Path, work: Path):
        self.ctxc, self.model_type, self.work = ctxc, model_type, work
        self.describer = describe.Describer(ctxc, model_type, work)
        self.sampler = self.describer.sampler
        self.description = json.loads((folder / f"{model_type}.json").read_text())
        if made_with := self.description.get("made_with"):
            self.sampler.choose(made_with)
        if "activations" not in self.description:
            self.sampler.activations = {}
        fixed = [name for name in self.description["fixed"] if self.sampler.is_of_experts(name)]
        if any(small_configs.SIZE_OF.get(name) == 2 or name in samples.EXPERT_COUNTS for name in fixed):
            self.sampler.with_experts_kept(any(name in samples.EXPERT_COUNTS for name in fixed))

    def settings(self, flipped: dict[str, Any], sample: int = JUDGED) -> dict[str, Any]:
        # The default has the class's own numbers, and the choices others.
        chosen = {**self.sampler.settings(sample, is_judge=True, defaults=not flipped), **samples.chosen(flipped, sample)}
        rope = chosen.get("rope_parameters")
        if chosen.get("head_dim") is defaults.REMOVED and rope and rope.get("partial_rotary_factor", 1) != 1:
            chosen["hidden_size"] = self.sampler.heads[sample] * sizes.HEAD_DIM[sample]  # so that the rotated part is even
        chosen = {name: value for name, value in chosen.items() if value is not defaults.REMOVED}
        if rope and "rope_type" in rope:
            about = self.description.get("ropes", {}).get("rope_parameters", {})
            # One that stretches, and where it may grows, and one that does not.
            if about.get("scales") and not flipped:
                chosen["rope_parameters"] = {**rope, "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32,
                                             "mscale": 0.7 if about.get("grows") else 0.9, "mscale_all_dim": 0.9}
            elif about.get("scales"):
                chosen["rope_parameters"] = {**rope, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                             "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
        return chosen

    def cases(self) -> list[dict[str, Any]]:
        """The settings to judge: the default; the head's choice, alone and with each of the others, since those that change
        different parts may be combined; and as many heads of keys as of queries."""
        choices = {name: None if name in samples.OPTIONAL and rule["absent"] is not None else
                   samples.NUMBER if name in samples.OPTIONAL else not rule["absent"]
                   for name, rule in self.description.get("choices", {}).items()}
        head = {name: value for name, value in choices.items() if name == template.TIE}
        others = {name: value for name, value in choices.items() if name not in head}
        cases: list[dict[str, Any]] = [head] if head else []
        cases += [{**head, name: value} for name, value in others.items()]
        cases += [others] if len(others) > 1 and any(set(others.items()) <= set(layer["when"].items()) for layer in self.description["layers"]) else []
        cases += [{name: defaults.REMOVED} for name in self.sampler.undeclared if name in self.description["sizes"]]
        cases += [{name: value} for name, rule in self.description["fixed"].items() for value in rule.get("same", ())]
        shared = next((name for name in samples.KV_NAMES if name in self.description["sizes"]), None)
        if shared:
            cases = cases or [{}]
            cases[0][shared] = self.sampler.heads[JUDGED]
        return [{}, *cases]

    def imported(self, directory: Path) -> str:
        run = subprocess.run([self.ctxc, "import", "--start-layer", describe.LAYERS_APART, str(directory)], capture_output=True, text=True)
        if run.returncode:
            raise Differs(run.stderr.strip().splitlines()[0].replace(str(directory), "DIR"))
        return run.stdout

    def program(self, flipped: dict[str, Any]) -> None:
        """The config alone gives the exported program."""
        settings = self.settings(flipped)
        try:
            expected = self.describer.raised(settings)
        except texts.Unsupported:
            raise
        except Exception:
            rest = {name: value for name, value in flipped.items() if name not in samples.KV_NAMES}
            if rest == flipped:
                raise
            self.refuse(settings)
            return self.program(rest)
        directory = self.work / "config"
        self.sampler.whole(self.sampler.build(settings)).save_pretrained(directory)
        compare(texts.read(self.imported(directory)), texts.read(expected))

    def same_program(self, settings: dict[str, Any]) -> None:
        """The same of other settings, of which there may be no model."""
        try:
            expected = self.describer.raised(settings)
            config = self.sampler.build(settings).to_dict()
        except texts.Unsupported:
            raise
        except Exception:
            return self.refuse(settings)
        found = self.said(config)
        if found is None:
            raise Differs(f"refuses {settings}")
        compare(texts.read(found), texts.read(expected))

    def refuse(self, settings: dict[str, Any]) -> None:
        """What no model has, ctxc does not read."""
        with contextlib.suppress(Exception):  # the class may refuse it, too
            settings = self.sampler.build(settings).to_dict()
        if self.said(settings) is not None:
            raise Differs(f"reads what transformers has no model of: {settings}")

    def said(self, config: dict[str, Any]) -> str | None:
        """The program of a config.json; None where it is refused."""
        directory = self.work / "said"
        directory.mkdir(exist_ok=True)
        stored = {name: defaults.as_stored(value) for name, value in config.items()}
        if part := self.sampler.part:
            stored = {part: stored, **{name: value for name, value in stored.items() if name == template.TIE}}
        (directory / "config.json").write_text(json.dumps({**stored, "model_type": self.model_type}))
        try:
            return self.imported(directory)
        except Differs:
            return None

    def absence(self, settings: dict[str, Any], key: str | None) -> bool:
        """A config.json without `key`, or with the rest alone, says what the config class makes of it. False: refused."""
        mapped = getattr(self.sampler.kind, "attribute_map", None) or {}
        try:
            config = self.sampler.build({name: value for name, value in settings.items() if mapped.get(name, name) != key}).to_dict()
            given = {name: value for name, value in (config if key else settings).items() if name != key}
            config = self.sampler.build(given).to_dict()  # what a class has replaced, it may take for given
        except Exception:  # then nobody has such a config
            return False
        without, whole = self.said(given), self.said(config)
        if without is not None and whole is None:  # a class may keep what it has replaced
            compare(texts.read(without), texts.read(self.describer.raised(given)))
        elif without is not None and without != whole:
            raise Differs(f"without {key or 'any other key'}, settings {settings}: another program than with what the class says")
        return without is not None

    def absences(self) -> int:
        """What is left out is the default of the class. How many keys may be left out."""
        about = self.description
        lists = list(about.get("lists", {}))
        keys = [*about["sizes"], *lists, *about.get("indices", {}), *about.get("choices", {}), *about.get("activations", {}), *about.get("uniform", {}),
                *(["rope_parameters"] if about.get("ropes") else [])]
        for sample in UNSEEN:  # so that no relation of sizes that one has by chance is taken for the class's
            settings = self.settings({}, sample)
            count = sum(self.absence(settings, key) for key in keys)
            self.other_entries(settings)
            count += self.parts_of_objects(settings)
            self.taken_together(settings)
        decoder = {"is_decoder": True} if "is_decoder" in about["fixed"] else {}
        bare = self.absence(decoder, None)
        for name, other in about.get("preferred", {}).items():
            self.other_name(settings, name, other)
        for name in lists:
            for older in about["lists"][name].get("names", {}):
                count += self.absence({**settings, name: [older] * len(settings[name])}, None)
            count += self.letters(settings, name, about["lists"][name])
        for layers in (1, 2, 3, 5, 6, 9, 13) if lists else ():
            fewer = {name: value for name, value in settings.items() if name not in lists}
            bare |= self.absence({**fewer, about["layer_count"]: layers}, None)
        return count + bare

    def letters(self, settings: dict[str, Any], name: str, rule: dict[str, Any]) -> int:
        """An older key with a letter for each layer says its list, which counts where both are there."""
        if "pattern" not in rule:
            return 0
        of = {kind: letter for letter, kind in rule["letters"].items()}
        word, fewer = "".join(of[kind] for kind in settings[name]), {key: value for key, value in settings.items() if key != name}
        if not self.absence({**fewer, rule["pattern"]: word[::-1]}, None) or not self.absence({**settings, rule["pattern"]: word[::-1]}, None):
            raise Differs(f"refuses {rule['pattern']} = {word[::-1]}")
        self.refuse({**fewer, rule["pattern"]: word + "?"})
        return 2

    def taken_together(self, settings: dict[str, Any]) -> None:
        """Where lists are left out, what is unread has no effect on them, with all choices taken at once too."""
        taken = {name: value for case in self.cases()[1:] for name, value in case.items() if name in self.description.get("choices", {})}
        default = self.sampler.default.to_dict()
        fewer = {name: value for name, value in settings.items() if name not in self.sampler.lists}
        for name in self.description["unread"] if self.sampler.lists else ():
            for value in (0, 1) if samples.is_number(default.get(name)) else ():
                self.absence({**fewer, **samples.chosen(taken, JUDGED), name: value}, None)

    def other_entries(self, settings: dict[str, Any]) -> None:
        """A list that must have one number for all layers is refused with another one for its last layer."""
        config = self.sampler.build(settings).to_dict()
        for name in self.description.get("uniform", {}):
            *rest, last = config[name]
            for other in ([*rest, last + 1], rest):
                if self.said({**config, name: other}) is not None:
                    raise Differs(f"reads {name} = {other}")

    def parts_of_objects(self, settings: dict[str, Any]) -> int:
        """Entries of an object that has one value may be left out, and have no other value."""
        count, rules = 0, defaults.any_value()
        for name, rule in self.description["fixed"].items():
            parts = rule["value"] if isinstance(rule["value"], dict) else {}
            for key, value in [part for part in parts.items() if not rules(part[0])]:
                count += self.absence({**settings, name: {key: value}}, None)
                if self.said({**self.sampler.build(settings).to_dict(), name: {**rule["value"], key: 7 if value is None else [value]}}) is not None:
                    raise Differs(f"reads another {key} of {name}")
        return count

    def other_name(self, settings: dict[str, Any], name: str, other: str) -> None:
        """The key `other` says `name`, also where both are there."""
        value = settings.get(name, self.sampler.default.to_dict()[name])
        for one, is_beside in ((value, False), (not value if isinstance(value, bool) else value + 36, True)):
            config = self.sampler.build({**settings, other: one}).to_dict()
            found = self.said({**{key: kept for key, kept in config.items() if key != name}, **({name: value} if is_beside else {}), other: one})
            if found != self.said(config) and not (is_beside and found is None) or not (is_beside or found):
                raise Differs(f"{other} does not stand for {name}")

    def kinds(self) -> None:
        """At other depths, and where other indices are named, each layer has the parameters of its kind. The kinds' own are
        those of the judged program."""
        indices = list(self.description.get("indices", {}))
        if not indices and not self.sampler.stack.is_mixed:
            return
        known: dict[str, set[str]] = {}
        settings = self.settings({})
        others = {name: value for name, value in settings.items() if name not in self.sampler.lists}
        configs = [self.sampler.build(settings)]
        for count in (1, 2, 3, 6, 9, 13):
            for named in ([1], [0, 2, 5], []) if indices else ([],):
                configs.append(self.sampler.with_layers(count, **{**others, self.sampler.layer_key: count, **{name: named for name in indices}}))
        for config in configs:
            text = self.said(config.to_dict())
            if text is None and config is configs[0]:
                raise Differs("a config is refused")
            for row, layer in zip(self.sampler.rows_of(config), texts.read(text).layers if text else []):
                names = set(re.findall(r'xf\.param "([^"]*)"', layer.block))
                if known.setdefault(str(row), names) != names:
                    raise Differs(f"a layer of kind {row} has, or has not, {sorted(names ^ known[str(row)])}")

    def keep(self, file: Path) -> None:
        """Keeps the judged config in `file`."""
        directory = self.work / "kept"
        self.sampler.whole(self.sampler.build(self.settings({}))).save_pretrained(directory)
        lines = file.read_text().splitlines() if file.exists() else []
        lines = [line for line in lines if json.loads(line)["model_type"] != self.model_type]
        lines.append(json.dumps(json.loads((directory / "config.json").read_text()), sort_keys=True))
        file.write_text("\n".join(sorted(lines, key=lambda line: json.loads(line)["model_type"])) + "\n")


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("ctxc")
    parser.add_argument("folder", type=Path)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--configs", type=Path)
    given = parser.parse_args()
    ctxc, folder = given.ctxc, given.folder
    failed = 0
    for model_type in given.types or sorted(path.stem for path in folder.glob("*.json")):
        with tempfile.TemporaryDirectory() as work:
            said: list[str] = []
            try:
                judge = Judge(ctxc, model_type, folder, Path(work))
                for flipped in judge.cases():
                    judge.program(flipped)
                    said.append(", ".join(flipped) or "program")
                judge.kinds()
                said.append(f"{judge.absences()} defaults")
                said.append(judge.weights())
                if given.configs:
                    judge.keep(given.configs)
            except Exception as error:
                failed += 1
                said.append(f"DIFFERS: {type(error).__name__}: {str(error)[:500]}")
            print(model_type, "; ".join(said), flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
