"""One block's ops, one after the other, for some tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Optional, Union

import torch

from ctxc._errors import BadInput
from ctxc.torch._graph import Block, Op, Step

Tensor = torch.Tensor
Stored = Union[Tensor, list[Tensor]]
"""A parameter as the module stores it; of experts that are stored apart, a list."""


@dataclass
class State:
    """What a contextual op keeps of the tokens before: rows of each of its tensors, and their positions."""

    tensors: list[Tensor] = field(default_factory=list)
    positions: Optional[Tensor] = None

    def append(self, positions: Tensor, *tensors: Tensor) -> int:
        """Adds a row for each token, and returns how many there were."""
        if self.positions is None:
            self.positions, self.tensors = positions, list(tensors)
            return 0
        before = len(self.positions)
        self.positions = torch.cat([self.positions, positions])
        self.tensors = [torch.cat(pair) for pair in zip(self.tensors, tensors)]
        return before

    def truncated(self, tokens: int) -> State:
        if self.positions is None:
            return State()
        return State([tensor[:tokens] for tensor in self.tensors], self.positions[:tokens])


class States:
    """The states of one block's contextual ops, in their order."""

    def __init__(self, states: Optional[list[State]] = None):
        self._states = states or []

    def at(self, index: int) -> State:
        while len(self._states) <= index:
            self._states.append(State())
        return self._states[index]

    def truncated(self, tokens: int) -> States:
        return States([state.truncated(tokens) for state in self._states])


class Evaluation:
    """The values of a block. An activation has a row for each token, (tokens, …); a parameter is as it is stored."""

    def __init__(self, step: Step, tokens: Tensor, positions: Tensor, weights: Callable[[str], Stored],
                 dtype: torch.dtype, states: Mapping[str, States],
                 loads: Optional[Mapping[str, list[Tensor]]] = None):
        self.step, self.tokens, self.positions, self.weights = step, tokens, positions, weights
        self.dtype, self.loads = dtype, loads or {}
        self.stores: list[tuple[str, list[Tensor]]] = []
        self.harmless = self.harmful = 0
        self._states = states
        self._counts: dict[str, int] = {}
        self._computed: dict[int, Tensor] = {}
        self._parameters: dict[int, Stored] = {}

    @property
    def count(self) -> int:
        """How many tokens are run."""
        return len(self.tokens)

    def run(self, block: Block, inputs: list[Tensor]) -> list[Tensor]:
        """The block's results, for its inputs of (tokens, …)."""
        for number, value in zip(block.arguments, inputs):
            self._computed[number] = value
        for op in block.ops:
            try:
                meaning = MEANINGS[op.name]
            except KeyError:
                raise BadInput(f"'{op.name}': ctxc.torch does not know this op; expected a meaning, given by "
                               f"@ctxc.torch.meaning('{op.name}')") from None
            meaning(op, self)
        return [self._computed[number] for number in block.results]

    def set(self, number: int, value: Tensor) -> None:
        self._computed[number] = value

    def set_parameter(self, number: int, stored: Stored) -> None:
        self._parameters[number] = stored

    def parameter(self, number: int) -> Optional[Stored]:
        """A parameter that is the same for all tokens; None where the value is an activation."""
        return self._parameters.get(number)

    def exact(self, number: int) -> Tensor:
        """A value in the type that it has."""
        return self._computed[number]

    def rows(self, number: int) -> Tensor:
        """A value with a row for each token, (tokens, …)."""
        value = self.wide(number)
        return value.expand(self.count, *value.shape[1:]) if len(value) != self.count else value

    def wide(self, number: int) -> Tensor:
        """A value in the type of the run; a parameter has one row for all tokens, (1, …)."""
        stored = self._parameters.get(number)
        if stored is None:
            value = self._computed[number]
            return value.to(self.dtype) if value.is_floating_point() else value
        if isinstance(stored, list):
            stored = torch.stack(stored)
        return stored.to(self.dtype)[None]

    def state(self, op: Op) -> State:
        """The state of a contextual op: by its run, and its place among the ops of that run."""
        run = op.attributes.get("run", "")
        place = self._counts.get(run, 0)
        self._counts[run] = place + 1
        return self._states[run].at(place)


Meaning = Callable[[Op, Evaluation], None]
MEANINGS: dict[str, Meaning] = {}


def meaning(name: str) -> Callable[[Meaning], Meaning]:
    """Gives an op its meaning in PyTorch, for ops of a plugin's dialect:

    >>> import ctxc.torch
    >>> @ctxc.torch.meaning("mine.negate")
    ... def negate(op, run):
    ...     run.set(op.results[0], -run.rows(op.operands[0]))
    """

    def register(function: Meaning) -> Meaning:
        MEANINGS[name] = function
        return function

    return register
