"""The program of a model, as the compiler planned it: blocks of ops, and the steps that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ctxc._model import Model


@dataclass(frozen=True)
class Op:
    """One op: its name ("xf.linear"), the numbers of the values that it reads and makes, its attributes, and the
    shape of each result for one token."""

    name: str
    operands: list[int]
    results: list[int]
    attributes: Mapping[str, Any]
    shapes: list[tuple[int, ...]]


@dataclass(frozen=True)
class Block:
    """A block: the values that it takes, its ops in order, and the values that it gives."""

    arguments: list[int]
    ops: list[Op]
    results: list[int]


@dataclass(frozen=True)
class Step:
    """A step of the program: a layer, with its block, the dual block that makes a patch, and the applied block that
    takes one (None where the layer is not patched). names: stored names by the block's; settings: numbers by name."""

    block: Block
    dual: Optional[Block]
    applied: Optional[Block]
    index: Optional[int]
    inputs: list[int]
    outputs: list[int]
    names: Mapping[str, str]
    settings: Mapping[str, list[float]]


@dataclass(frozen=True)
class Graph:
    """All steps, first to last. head: the number of the step that makes logits of the last layer's output."""

    steps: list[Step]
    head: Optional[int]
    logits: int
    bidirectional: bool
    start_layer: int
    positions: Optional[int]

    def patches(self, step: Step) -> bool:
        """Whether a patch of this step is made."""
        return step.dual is not None and (step.index or 0) >= self.start_layer


def graph_of(model: Model) -> Graph:
    """The program of a model with its plan. Raises Refused where a layer has no patch."""
    told = model._core.graph()
    blocks = {name: Block(arguments, [Op(*op) for op in ops], results)
              for name, (arguments, ops, results) in told["blocks"].items()}

    def block(name: Optional[str]) -> Optional[Block]:
        return None if name is None else blocks[name]

    steps = [Step(blocks[each["block"]], block(each["dual"]), block(each["applied"]), each["index"], each["inputs"],
                  each["outputs"], each["names"], each["settings"]) for each in told["steps"]]
    return Graph(steps, told["head"], told["logits"], told["bidirectional"], told["start_layer"], told["positions"])
