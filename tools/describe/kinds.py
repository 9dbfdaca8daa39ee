"""Layers of several kinds: which kind each layer has, and by what rule, where no list of the config says it."""
from __future__ import annotations

import contextlib
import itertools
import re
from typing import Any, Callable

import published
import samples
import texts
import torch
from ctxc import export
from transformers import configuration_utils

MIXED = "layer kind"  # no key of a config: the kinds of layers that only the names of their parameters tell
CONDITIONS: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
    ("i < {k}", lambda i, k: i < k), ("(i + 1) % {k} == 0", lambda i, k: k > 0 and (i + 1) % k == 0),
    ("i % {k} == 0", lambda i, k: k > 0 and i % k == 0), ("i % {k} == 1", lambda i, k: k > 1 and i % k == 1),
    ("i + 1 == {k}", lambda i, k: i + 1 == k))
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 24, 31)


def parameters_of_layers(config: Any, count: int) -> list[frozenset[str]]:
    """The names that the parameters of each layer have in it."""
    with torch.device("meta"):
        model = export.causal_model(config)
    stacks: dict[str, dict[int, set[str]]] = {}
    for name, _ in model.named_parameters():
        found = re.match(r"((?:\w+\.)*?)(\d+)\.(.*)$", name)
        if found:
            stacks.setdefault(found[1], {}).setdefault(int(found[2]), set()).add(found[3])
    layers = max((layers for layers in stacks.values() if sorted(layers) == list(range(count))), key=lambda s: sum(map(len, s.values())))
    return [frozenset(layers[index]) for index in range(count)]


class Stack:
    """The kinds of layers that were seen, in the order in which they were."""

    def __init__(self) -> None:
        self.seen: list[frozenset[str]] = []
        self.is_mixed = False
        self.telling: frozenset[str] | None = None  # the parameters that tell kinds, where not all do

    def kinds_of(self, config: Any, count: int) -> list[str]:
        layers = parameters_of_layers(config, count)
        if self.telling is not None:
            layers = [layer & self.telling for layer in layers]
        self.seen += [kind for kind in dict.fromkeys(layers) if kind not in self.seen]
        self.is_mixed |= len(set(layers)) > 1
        return [str(self.seen.index(layer)) for layer in layers]

    def leave_out(self, rows: list[str], config: Any) -> None:
        """From here on, the parameters do not tell kinds that rows of other entries say."""
        layers, of = parameters_of_layers(config, len(rows)), {}
        for row, layer in zip(rows, layers):
            of.setdefault(row, []).append(layer)
        self.telling = frozenset().union(*(frozenset().union(*same) - frozenset.intersection(*same) for same in of.values()))
        self.seen, self.is_mixed = [], False
        self.kinds_of(config, len(rows))


class Rules:
    """What decides the kinds of layers in the list `name`, where the config leaves it out."""

    def __init__(self, sampler: samples.Sampler, name: str):
        self.sampler, self.name = sampler, name
        self.counts = [key for key in samples.COUNT_KEYS if key in sampler.names]

    def case(self, count: int, **settings: Any) -> tuple[dict[str, Any], list[str]] | None:
        """A config with that many layers, and their kinds; None where there is no such config."""
        try:
            config = self.sampler.with_layers(count, **settings)
            said = config.to_dict()
            values = self.sampler.kinds_in(config) if self.name == MIXED else said.get(self.name)
        except Exception:
            return None
        if not isinstance(values, list) or len(values) != count:
            return None
        return said, [str(value) for value in values]

    def other_cases(self, key: str) -> list[tuple[dict[str, Any], list[str]]]:
        cases = [self.case(11, **{key: value}) for value in (1, 2, 3, 5)]
        return [case for case in cases if case]

    def keys(self, said: dict[str, Any]) -> list[str]:
        """The keys that decide: with another value, layers have other kinds."""
        def decides(key: str) -> bool:
            return len({str(values) for _, values in self.other_cases(key)}) > 1
        sizes = set(self.sampler.varied())
        return [key for key, value in said.items() if isinstance(value, int) and not isinstance(value, bool)
                and 0 < value < 100 and key not in self.counts and key not in sizes and decides(key)]

    def named(self, key: str) -> list[list[str]] | None:
        """The rule of a key that names layers by their indices."""
        cases = [(indices, self.case(count, **{key: indices})) for count, indices in ((6, [1, 4]), (7, [0, 3, 2, 9]), (4, []))]
        if not all(case for _, case in cases):
            return None
        of = [{(layer in indices, kind) for layer, kind in enumerate(case[1])} for indices, case in cases]
        found = dict(set().union(*of))
        return [[f"i in {key}", found[True]], ["", found[False]]] if len(set().union(*of)) == 2 and len(found) == 2 else None

    def rule(self) -> list[list[str]] | None:
        """Pairs of a condition and a kind, the first that holds counts."""
        if self.name in self.sampler.required:
            return None
        for key in self.sampler.indices:
            if found := self.named(key):
                return found
        cases = [self.case(count) for count in COUNTS]
        if not all(cases):
            return None
        kinds = sorted({value for _, values in cases for value in values})
        if len(kinds) == 1:
            return [["", kinds[0]]]
        if len(kinds) != 2:
            return None
        keys = self.keys(cases[0][0])
        numbers = [] if keys else list(range(13))
        own = [cases[0][1][0]]  # the first layer may have a kind of its own
        for alone, key in itertools.product(([], own), [*keys, *numbers, *self.counts]):
            more = self.other_cases(key) if key in keys else []
            for form, holds in CONDITIONS:
                for first, other in (kinds, kinds[::-1]):
                    def says(said: dict[str, Any], layer: int) -> str:
                        return first if holds(layer, said[key] if isinstance(key, str) else key) else other
                    if all(values[i] == (alone[i] if i < len(alone) else says(said, i)) for said, values in cases + more for i in range(len(values))):
                        return [*(["i < 1", kind] for kind in alone), [form.format(k=key), first], ["", other]]
        return None

    def unnamed(self, key: str) -> dict[str, Any]:
        """Which layers a key names where it is left out, if that is by a list."""
        rule, default = self.named(key), self.sampler.default.to_dict().get(key)
        for indices in (default,) if isinstance(default, list) else ([],):
            cases = [self.case(count, **{key: None}) for count in (3, 6, max(indices, default=0) + 3)]
            if rule and all(case and all(kind == rule[layer not in indices][1] for layer, kind in enumerate(case[1])) for case in cases):
                return {"absent": indices}
        return {}

    def older_names(self) -> dict[str, str]:
        """Those that the class still takes, with what it makes of them."""
        found = {}
        for older, newer in configuration_utils._LEGACY_LAYER_TYPE_REMAP.items():
            with contextlib.suppress(Exception):
                said = self.sampler.with_layers(3, **{self.name: [older] * 3}).to_dict()[self.name]
                if said == [newer] * 3 and newer in self.sampler.lists[self.name]:
                    found[older] = newer
        return found

    def letters(self) -> dict[str, Any]:
        """An older key that has a letter for each layer, with the kind that the class makes of each."""
        key, letters = published.PATTERNS.get((self.sampler.model_type, self.name), ("", ""))
        if not key:
            return {}
        others = {name: value for name, value in self.sampler.base.items() if name not in self.sampler.lists}
        return {"pattern": key, "letters": {letter: self.sampler.build({**others, key: letter}).to_dict()[self.name][0] for letter in letters}}

    def entry(self) -> dict[str, Any]:
        rule = self.rule()
        if self.name != MIXED:
            names = {"names": found} if (found := self.older_names()) else {}
            return {**({"absent": rule} if rule else {}), **names, **self.letters()}
        if not rule:
            raise texts.Unsupported("no rule says which layers have which parameters")
        return {"absent": rule, "computed": True}
