"""Layers of several kinds: which kind each layer has, and by what rule, where no list of the config says it."""
from __future__ import annotations

import re
from typing import Any, Callable

import samples
import texts
import torch
from ctxc import export

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

    def kinds_of(self, config: Any, count: int) -> list[str]:
        layers = parameters_of_layers(config, count)
        self.seen += [kind for kind in dict.fromkeys(layers) if kind not in self.seen]
        self.is_mixed |= len(set(layers)) > 1
        return [str(self.seen.index(layer)) for layer in layers]

    @staticmethod
    def follows(rows: list[dict[str, Any]]) -> bool:
        """Whether the other entries of rows say their kinds."""
        kinds: dict[str, set[str]] = {}
        for row in rows:
            others = str([value for name, value in row.items() if name != MIXED])
            kinds.setdefault(others, set()).add(row[MIXED])
        return all(len(found) == 1 for found in kinds.values())


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

    def rule(self) -> list[list[str]] | None:
        """Pairs of a condition and a kind, the first that holds counts."""
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
        for key in [*keys, *numbers, *self.counts]:
            more = self.other_cases(key) if key in keys else []
            for form, holds in CONDITIONS:
                for first, other in (kinds, kinds[::-1]):
                    def says(said: dict[str, Any], layer: int) -> str:
                        return first if holds(layer, said[key] if isinstance(key, str) else key) else other
                    if all(values[i] == says(said, i) for said, values in cases + more for i in range(len(values))):
                        return [[form.format(k=key), first], ["", other]]
        return None

    def entry(self) -> dict[str, Any]:
        rule = self.rule()
        if self.name != MIXED:
            return {"absent": rule} if rule else {}
        if not rule:
            raise texts.Unsupported("no rule says which layers have which parameters")
        return {"absent": rule, "computed": True}
