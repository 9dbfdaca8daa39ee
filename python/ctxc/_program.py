"""A program as it is written into the file: calls of ops on tensors. Nothing here knows JAX or PyTorch."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np

Size = Any
"""An int, or an expression of the number of tokens, which can be compared, added and multiplied."""


class Unsupported(ValueError):
    """Something of a program that ctxc does not read. The message says what, and where."""


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are one for every number of tokens."""
    if isinstance(a, (int, np.integer)) != isinstance(b, (int, np.integer)):
        return False
    return bool(a is b or a == b)


def same_sizes(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def product(sizes: Sequence[Size]) -> Size:
    count: Size = 1
    for size in sizes:
        count = size if same(count, 1) else count * size
    return count


def is_known(sizes: Sequence[Size]) -> bool:
    return all(isinstance(size, (int, np.integer)) for size in sizes)


@dataclass(eq=False)
class Value:
    """A tensor of the program: a result of a call, an input, or one that is stored."""
    dims: tuple[Size, ...]
    dtype: Any
    data: bool = False
    """Whether it is made of what the model reads, beside positions."""
    call: Optional[Call] = None
    name: str = ""
    array: Optional[np.ndarray] = None
    """The numbers of what is stored."""
    part: Any = None
    """The part of a parameter that is stored so; None for a constant."""
    kind: str = ""
    """What it is in the file: "parameter", "buffer" or "constant" of what is stored, "token", "position" or "activation" of an input."""

    def made_by(self, *ops: str) -> dict[str, Any]:
        """The arguments of the call that made it, if that is one of `ops`; empty otherwise."""
        return self.call.arguments if self.call and self.call.op in ops else {}


@dataclass(eq=False)
class Call:
    op: str
    arguments: dict[str, Any]
    results: list[Value]
    place: Place
    layer: str = ""
    lines: str = ""
    """The author's lines, as Python prints a traceback; by default that of `place`."""

    def operands(self) -> Iterator[Value]:
        for argument in self.arguments.values():
            if isinstance(argument, Value):
                yield argument
            elif isinstance(argument, list):
                yield from (each for each in argument if isinstance(each, Value))

    @property
    def base(self) -> str:
        return self.op.split(".")[-2:][0]

    @property
    def trace(self) -> str:
        at = self.place
        return self.lines or (f'File "{at.file}", line {at.line}, in {at.function}\n    {linecache.getline(at.file, at.line).strip()}'
                              if at.file else "")


@dataclass(frozen=True)
class Place:
    """Where in the author's code a call is made."""
    scope: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else "a place without a line"
        return where + (f" (in {'/'.join(self.scope)})" if self.scope else "")


class DType(str):
    """An argument that names a type of numbers."""


@dataclass
class Graph:
    tokens: Size
    length: int
    """The number of tokens that stands for any."""
    calls: list[Call] = field(default_factory=list)
    stored: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    place: Place = Place()
    known: dict[Any, list[Value]] = field(default_factory=dict)

    def counts_tokens(self, size: Size) -> bool:
        return not isinstance(size, (int, np.integer)) or size == self.length

    def emit(self, op: str, dims: Sequence[Size], dtype: Any, /, **arguments: Any) -> Value:
        return self.emit_several(op, [(dims, dtype)], **arguments)[0]

    def emit_several(self, op: str, results: Sequence[tuple[Sequence[Size], Any]], /, **arguments: Any) -> list[Value]:
        """The results of a call. The same call is written once."""
        def key_of(argument: Any) -> Any:
            if isinstance(argument, Value):
                return id(argument)
            return tuple(map(key_of, argument)) if isinstance(argument, (list, tuple)) else (type(argument), str(argument))
        key = (op, tuple((name, key_of(argument)) for name, argument in arguments.items()), tuple(str(r) for r in results))
        if key not in self.known:
            call = Call(op, arguments, [], self.place)
            data = any(each.data for each in call.operands())
            call.results = [Value(tuple(dims), np.dtype(dtype), data, call) for dims, dtype in results]
            self.calls.append(call)
            self.known[key] = call.results
        return self.known[key]

    def store(self, array: np.ndarray, name: str = "", part: Any = None) -> Value:
        """A stored tensor; a constant where no part of a parameter is given."""
        for each in self.stored:
            if part is None and each.part is None and each.array is not None and each.dtype == array.dtype and \
                    each.dims == array.shape and np.array_equal(each.array, array):
                return each
        names = {each.name for each in self.stored}
        name = name or f"constant_{len(self.stored)}"
        while name in names:
            name += "_"
        self.stored.append(Value(tuple(array.shape), array.dtype, name=name, array=array, part=part))
        return self.stored[-1]


Number = Union[bool, int, float]


