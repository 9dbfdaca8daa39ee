"""Where the layers of a program are.

A boundary that is guessed could make a verdict wrong. So a boundary is either the author's (a named scope, a module of Linen, a
step of a scan), or proved: a value through which all goes that later ops read, the residual stream. Between such values, the
parameters' names say which ops are one layer; without such names, a layer reaches from one value behind which tokens are
joined to the next. What no value separates is one layer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence

from ctxc._program import Call, Graph, Value

Element = tuple[str, int]


def spelled(name: str) -> list[str]:
    """["layer", "0", "mlp"] of "layer_0_mlp" or "layer.0.mlp": a number is an element of a list."""
    parts: list[str] = []
    for part in re.split(r"[/~.]+", name):
        while part:
            found = re.match(r"(.+?)_(\d+)(?:_|$)", part)
            parts += [found[1], found[2]] if found else [part]
            part = part[found.end():] if found else ""
    return parts


def element_of(name: str) -> Optional[Element]:
    """("blocks", 0) of "blocks.0.mlp.0.kernel": the outermost element of a list."""
    parts = name.split(".")
    at = next((i for i, part in enumerate(parts) if i and part.isdigit()), None)
    return None if at is None else (".".join(parts[:at]), int(parts[at]))


def joins_tokens(graph: Graph, call: Call) -> bool:
    tokens: Callable[..., Any] = lambda value: sum(graph.counts_tokens(size) for size in value.dims)
    if call.base == "constant_pad_nd":  # a shift of the tokens
        sizes, pads = call.results[0].dims[::-1], call.arguments["pad"]
        return any(graph.counts_tokens(size) and any(pads[2 * i:2 * i + 2]) for i, size in enumerate(sizes))
    return call.base in ("linear_attention", "cumsum", "conv1d", "flip", "scaled_dot_product_attention") or \
        any(tokens(each) > 1 for each in [*call.results, *call.operands()]) or \
        any(tokens(each) and not tokens(call.results[0]) for each in call.operands() if each.data)


def keep_live(graph: Graph, result: Value) -> None:
    live, work = set(), [result]
    while work:
        call = work.pop().call
        if call is not None and id(call) not in live:
            live.add(id(call))
            work += list(call.operands())
    graph.calls = [call for call in graph.calls if id(call) in live]


@dataclass
class Stretch:
    """The calls between two values through which all goes."""
    calls: list[Call]
    joins: bool
    elements: set[Element] = field(default_factory=set)
    has_parameters: bool = False

    @property
    def ops(self) -> list[str]:
        return [call.op for call in self.calls]


class Layers:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.calls = [call for call in graph.calls if call.results[0].data]
        self.at = {id(call): i for i, call in enumerate(self.calls)}
        self.names: dict[int, frozenset[str]] = {}

    def parameters(self, value: Value) -> frozenset[str]:
        """The names of those that a value without data is made of."""
        if value.call is None:
            return frozenset([value.name]) if value.part is not None else frozenset()
        if id(value) not in self.names:
            self.names[id(value)] = frozenset().union(*[self.parameters(each) for each in value.call.operands() if not each.data])
        return self.names[id(value)]

    def own(self, call: Call) -> frozenset[str]:
        return frozenset().union(*[self.parameters(each) for each in call.operands() if not each.data])

    def before(self, call: Call) -> list[int]:
        return [self.at[id(each.call)] for each in call.operands() if each.data and each.call is not None]

    def place(self) -> str:
        """Gives each call the path of its layer. Says by what the layers were told."""
        scoped = self.by_scopes()
        if scoped and self.have_all_between():
            return "scopes"
        stretches = self.stretches()
        told = "parameters" if self.by_names(stretches) else self.by_stretches(stretches)
        return "scopes" if told == "nothing" and scoped and self.by_scopes() else told

    # Of the author.

    def by_scopes(self) -> bool:
        lists = {e for value in self.graph.stored if value.part is not None for e in [element_of(value.name)] if e}
        paths: list[Optional[str]] = []
        for call in self.calls:
            element = element_of(".".join(part for name in call.place.scope for part in spelled(name)))
            path = None
            if element is not None:
                path = f"{element[0]}.{element[1]}"
                path = next((f"{name}.{i}" for name, i in lists if path == f"{name}.{i}" or path.endswith(f".{name}.{i}")), path)
            paths.append(path)
        lists_of: Callable[..., Any] = lambda path: path.rpartition(".")[0]
        joining = {lists_of(path) for call, path in zip(self.calls, paths) if path and joins_tokens(self.graph, call)}
        for call, path in zip(self.calls, paths):
            call.layer = path if path and lists_of(path) in joining else ""
        return bool(joining) and all(call.layer for call in self.calls if joins_tokens(self.graph, call)) and self.is_convex()

    def have_all_between(self) -> bool:
        """Whether no parameter is read between the layers: scopes of attention alone are parts of layers."""
        inside = [i for i, call in enumerate(self.calls) if call.layer]
        return not any(self.own(call) for call in self.calls[inside[0]:inside[-1]] if not call.layer)

    def is_convex(self) -> bool:
        """Whether no layer reads what others have made of its own results."""
        left: list[frozenset[str]] = []
        for call in self.calls:
            behind: frozenset[str] = frozenset()
            for i in self.before(call):
                behind |= left[i]
                if self.calls[i].layer and self.calls[i].layer != call.layer:
                    behind |= {self.calls[i].layer}
            if call.layer in behind:
                return False
            left.append(behind)
        return True

    # Proved.

    def stretches(self) -> list[Stretch]:
        last = [0] * len(self.calls)
        for i, call in enumerate(self.calls):
            for j in self.before(call):
                last[j] = i
        made, begin, reach = [], 0, 0
        for i, call in enumerate(self.calls):
            if reach <= i and len(call.results) == 1:
                calls = self.calls[begin:i + 1]
                names = frozenset().union(*map(self.own, calls))
                made.append(Stretch(calls, any(joins_tokens(self.graph, each) for each in calls),
                                    {e for name in names for e in [element_of(name)] if e}, bool(names)))
                begin = i + 1
            reach = max(reach, last[i])
        return made

    def by_names(self, stretches: Sequence[Stretch]) -> bool:
        lists = {name for stretch in stretches if stretch.joins for name, _ in stretch.elements}
        owners: list[Optional[Element]] = []
        for stretch in stretches:
            own = {e for e in stretch.elements if e[0] in lists}
            if len(own) > 1:
                return False
            owners.append(next(iter(own), None))
        order = [owner for owner in owners if owner is not None]
        runs = [e for i, e in enumerate(order) if i == 0 or order[i - 1] != e]
        if not runs or len(runs) != len(set(runs)):
            return False
        for i, owner in enumerate(owners):
            if owner is None and owners[:i] and (before := [e for e in owners[:i] if e]) and \
                    (behind := [e for e in owners[i + 1:] if e]) and before[-1] == behind[0]:
                owners[i] = before[-1]
        if any(stretch.joins and owner is None for stretch, owner in zip(stretches, owners)):
            return False
        self.take((stretch, f"{owner[0]}.{owner[1]}") for stretch, owner in zip(stretches, owners) if owner)
        return True

    def by_stretches(self, stretches: Sequence[Stretch]) -> str:
        """From one stretch that joins tokens up to the next. The last layer is like the one before it, or ends before the head. What follows
        a layer's last parameter is no part of it: a norm there would keep the layer's output on a sphere, and the next one's input is
        what is patched."""
        begins = [i for i, stretch in enumerate(stretches) if stretch.joins]
        if not begins:
            return "nothing"
        head = max((i for i, stretch in enumerate(stretches) if stretch.has_parameters), default=len(stretches))
        ends = [*begins[1:], max(head, begins[-1] + 1)]
        if len(begins) > 1:
            size = begins[-1] - begins[-2]
            like = [stretch.ops for stretch in stretches[begins[-2]:begins[-1]]]
            if [stretch.ops for stretch in stretches[begins[-1]:begins[-1] + size]] == like:
                ends[-1] = begins[-1] + size
        ends = [1 + max((i for i in range(a, b) if stretches[i].has_parameters), default=a) for a, b in zip(begins, ends)]
        is_block = not any(value.dtype.kind in "iu" for value in self.graph.inputs)
        if is_block and len(begins) == 1:
            self.take([])
            return "nothing"
        self.take((stretch, f"layers.{k}") for k, (a, b) in enumerate(zip(begins, ends)) for stretch in stretches[a:b])
        return "values" if len(begins) > 1 else "nothing"

    def take(self, owned: object) -> None:
        for call in self.calls:
            call.layer = ""
        for stretch, path in owned:  # type: ignore[attr-defined]
            for call in stretch.calls:
                call.layer = path
