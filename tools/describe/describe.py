#!/usr/bin/env python3
"""Describes a model type of transformers by the programs of small models of it.

  describe.py CTXC FOLDER TYPE... [--choices N]

For each type, small models at several sizes are exported and raised to xf. Every number of their text is fitted as an
expression of the config's keys, and the text with these expressions is written to FOLDER/TYPE.json, with all that must
hold for it. lib/Import/Described reads it. A type that a description cannot say is left out, with the reason. N settings
that are on or off have parts for both values (2), beside whether the head is the embedding."""
from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterator

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import torch  # noqa: E402,F401
import transformers  # noqa: E402
from ctxc import export  # noqa: E402

import defaults  # noqa: E402
import samples  # noqa: E402
import template  # noqa: E402
import texts  # noqa: E402

LAYERS_APART = "10000"  # of which none is joined with a later one


@contextlib.contextmanager
def reads_of(kind: Any, found: set[str]) -> Iterator[None]:
    """Notes which settings other files than those of configs read."""
    own = kind.__getattribute__

    def noted(self: Any, name: str) -> Any:
        file = sys._getframe(1).f_code.co_filename
        # A config's own properties read for the model.
        if not file.endswith(("configuration_utils.py", "samples.py", "export.py", "describe.py")):
            found.add(name)
        return own(self, name)
    kind.__getattribute__ = noted
    try:
        yield
    finally:
        kind.__getattribute__ = own


class Describer:
    """One type: its samples, their programs, and what the template of all of them is."""

    def __init__(self, ctxc: str, model_type: str, folder: Path, choices: int = 2):
        self.ctxc, self.model_type, self.folder, self.choices = ctxc, model_type, folder, choices
        self.sampler = samples.Sampler(model_type)
        self.read: set[str] = set()
        self.read_beside: set[str] = set()  # of a config whose part has the program's keys
        self.known: dict[str, str] = {}

    def raised(self, settings: dict[str, Any]) -> str:
        key = json.dumps(settings, sort_keys=True, default=str)
        if key not in self.known:
            self.known[key] = self.exported(settings)
        return self.known[key]

    def exported(self, settings: dict[str, Any]) -> str:
        config = self.sampler.build(settings)
        path = self.folder / f"{self.model_type}-{os.getpid()}.ctxc"
        whole = self.sampler.whole(config)
        with reads_of(type(config), self.read), reads_of(type(whole), self.read_beside) if whole is not config else contextlib.nullcontext():
            export.export_config(whole, path)
        run = subprocess.run([self.ctxc, "import", "--start-layer", LAYERS_APART, str(path)], capture_output=True, text=True)
        path.unlink()
        if run.returncode:
            raise texts.Unsupported(run.stderr.strip().splitlines()[0])
        return texts.without_bodies(run.stdout)

    def sections(self, flipped: dict[str, Any], known: dict[tuple[str, ...], str]) -> template.Sections:
        """The template with `flipped` settings. `known` has that of the samples' lines, and gets it."""
        plain = [self.sampler.settings(index) for index in self.sampler.fitted]
        used = [{**settings, **samples.chosen(flipped, index)} for settings, index in zip(plain, self.sampler.fitted)]
        programs = [texts.read(self.raised(settings)) for settings in used]
        # A flipped setting changes the parameters of every kind of layer, and their kinds are those without it.
        configs = [{**self.sampler.build(settings).to_dict(), **self.sampler.kinds_of_layers(one)} for settings, one in zip(used, plain)]
        return template.Template(self.sampler, programs, configs, known).sections()

    def base(self, known: dict[tuple[str, ...], str]) -> template.Sections:
        """The template of the type as it is by default. Models that cannot be built are tried with other heads, and with the
        class's activations."""
        problem: Exception | None = None
        for is_default, sizes in itertools.product((False, True) if self.sampler.activations else (False,), ("", *samples.OTHER_SIZES)):
            if is_default:  # the class may refuse other activations
                self.sampler.activations = {}
            if (sizes or is_default) and not self.sampler.choose(sizes):
                continue
            try:
                return self.with_activations(known)
            except texts.Unsupported:
                raise
            except Exception as error:
                problem = problem or error
        assert problem
        raise problem

    def with_activations(self, known: dict[tuple[str, ...], str]) -> template.Sections:
        """The template for any activation, or for the default one, where another gives other ops."""
        try:
            return self.with_experts(known)
        except texts.Unsupported as error:
            if isinstance(error, texts.NoForm) or not self.sampler.activations:
                raise
        self.sampler.activations = {}
        return self.with_experts(known)

    def with_experts(self, known: dict[tuple[str, ...], str]) -> template.Sections:
        """The template for any number of chosen experts, or for the default one, where another gives other ops."""
        known.clear()
        for all_of_them in (False, True):
            try:
                return self.sections({}, known)
            except texts.OtherOps:
                if not self.sampler.with_experts_kept(all_of_them):
                    raise
            known.clear()
        return self.sections({}, known)

    def describe(self) -> dict[str, Any]:
        known: dict[tuple[str, ...], str] = {}
        base = self.base(known)
        flips: dict[str, tuple[Any, template.Sections]] = {}
        for name, other in self.flips():
            with contextlib.suppress(Exception):
                tied = template.tied(base) if name == template.TIE and other and self.may_tie() else None
                flips[name] = (other, tied or self.sections({name: other}, dict(known)))
        deciding = self.deciding({name: other for name, (other, _) in flips.items()})
        flips = {name: flip for name, flip in flips.items() if name not in deciding}
        self.sampler.idle = self.idle_parts()
        found = template.joined(self.sampler, base, flips, self.read, self.together(base, flips, known), self.is_idle)
        computed = self.computed(found)
        return {**found, **({"computed": computed} if computed else {}),
                **self.around([name for name in samples.SHARED if name in found.get("choices", ())])}

    def model(self) -> Any:
        """A model of the first sample, without numbers."""
        with torch.device("meta"):
            return export.causal_model(self.sampler.whole(self.sampler.build(self.sampler.settings(samples.FITTED[0]))))

    def may_tie(self) -> bool:
        """Whether the class of the models can have the embedding as its head."""
        return bool(self.model()._tied_weights_keys)

    def computed(self, found: dict[str, Any]) -> list[str]:
        """The frozen parameters that the class computes, so that no checkpoint has them."""
        frozen = set(re.findall(r'xf.param "([^"]*)" frozen', json.dumps(found).replace('\\"', '"')))
        stored = self.model().state_dict() if frozen else {}
        return sorted(name for name in frozen if not any(key.endswith(name) for key in stored))

    def deciding(self, others: dict[str, Any]) -> set[str]:
        """The settings that change, alone or with the others, the lists that the class gives: the rule of a list holds without them."""
        def lists(names: set[str]) -> list[Any]:
            said = self.sampler.with_layers(64, **samples.chosen({name: others[name] for name in names}, samples.FITTED[0])).to_dict()
            return [said[name] for name in self.sampler.lists]
        left = set(others)
        for name in sorted(others, reverse=True) if self.sampler.lists else ():
            with contextlib.suppress(Exception):
                left -= {name} if lists(left) != lists(left - {name}) else set()
        return set(others) - left

    def idle_parts(self) -> set[str]:
        """The parts of a config beside the program's keys: with others of them, which there must be, the program is the same."""
        parts, idle = self.sampler.parts, set()
        settings = self.sampler.settings(samples.FITTED[0])
        for name, other in self.sampler.other_parts().items():
            self.sampler.parts = {**parts, name: other}
            if other.to_dict() != parts[name].to_dict() and self.exported(settings) == self.raised(settings):
                idle.add(name)
        self.sampler.parts = parts
        return idle

    def is_idle(self, name: str) -> bool:
        """Whether the program is the same with another value of one key."""
        settings, other = (self.sampler.settings(index) for index in samples.FITTED)
        try:
            return settings[name] != other[name] and self.raised({**settings, name: other[name]}) == self.raised(settings)
        except Exception:
            return False

    def around(self, shared: list[str]) -> dict[str, Any]:
        """The part of a config that has the program's keys, and what is beside it without effect. What is `shared` may stand in both."""
        if not self.sampler.part:
            return {}
        whole, rules = self.sampler.whole(self.sampler.build(self.sampler.settings(samples.FITTED[0]))), defaults.any_value()
        said = whole.to_dict()
        others = sorted(name for name in said if name not in {*shared, self.sampler.part} and not rules(name))
        beside = [name for name in others if name not in self.read_beside or name in self.sampler.idle]
        around = {name: {"value": said[name], "absent": said[name]} for name in others if name not in beside}
        return {"within": self.sampler.part, "shared": shared, "beside": beside, **({"around": around} if around else {})}

    def together(self, base: template.Sections, flips: dict[str, tuple[Any, template.Sections]],
                 known: dict[tuple[str, ...], str]) -> dict[frozenset[str], template.Sections]:
        """The templates with several flipped settings, of those that change the same part."""
        found: dict[frozenset[str], template.Sections] = {}
        for part in ("layers", "before", "behind"):
            changing = [name for name, (_, section) in flips.items() if getattr(section, part) != getattr(base, part)]
            for size in range(2, len(changing) + 1):
                for names in itertools.combinations(changing, size):
                    if frozenset(names) not in found:
                        with contextlib.suppress(Exception):
                            found[frozenset(names)] = self.sections({name: flips[name][0] for name in names}, dict(known))
        return found

    def flips(self) -> list[tuple[str, Any]]:
        """The settings that are on or off, or null, and that the model's code reads, with their other value."""
        default = self.sampler.default.to_dict()
        rules = defaults.any_value()
        names = [name for name, value in default.items() if isinstance(value, bool) and not rules(name) and
                 (name in self.read or name == "tie_word_embeddings")]
        names.sort(key=lambda name: (name != "tie_word_embeddings", name))
        numbers = [name for name in samples.OPTIONAL if name in default and name in self.read and name not in self.sampler.lists]
        return [(name, not default[name]) for name in names[:self.choices + (template.TIE in names)]] + \
            [(name, samples.NUMBER if default[name] is None else None) for name in numbers]


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("ctxc")
    parser.add_argument("folder", type=Path)
    parser.add_argument("types", nargs="+")
    parser.add_argument("--choices", type=int, default=2)
    given = parser.parse_args()
    ctxc, folder, types = given.ctxc, given.folder, given.types
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for model_type in types:
            try:
                found = Describer(ctxc, model_type, Path(work), given.choices).describe()
                (folder / f"{model_type}.json").write_text(json.dumps(found, indent=1) + "\n")
                print(model_type, "described", flush=True)
            except Exception as error:
                print(model_type, "left out:", type(error).__name__, str(error).splitlines()[0][:300] if str(error) else "", flush=True)
                if os.environ.get("TRACE"):
                    import traceback
                    traceback.print_exc()


if __name__ == "__main__":
    main()
