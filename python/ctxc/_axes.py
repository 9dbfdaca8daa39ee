"""What a variable stands for while a program is read: numbers, or axes of a tensor of the program.

Most of what is called reshape, transpose, broadcast and squeeze only renames axes. A `Tensor` keeps these names, and nothing is
written until an op needs the axes in an order of its own: [batch, tokens, heads, tokens] scores and [batch, heads, tokens,
tokens] ones are the same tensor. Parts of a parameter (slices, rows, transposes) are places in the author's own: a leaf of a
tree of JAX, or a parameter of a module of PyTorch. Nothing here knows either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from ctxc._program import Number, Size, Unsupported, Value, is_known, product, same, same_sizes


@dataclass(frozen=True)
class Known:
    """Numbers that do not depend on what the model reads."""
    array: np.ndarray

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.array.shape

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def number(self) -> Optional[Number]:
        """The one number that all entries are."""
        flat = self.array.reshape(-1)
        return flat[0].item() if flat.size and (flat == flat[0]).all() else None


@dataclass(frozen=True)
class Filled:
    """One number in every entry."""
    number: Any
    shape: tuple[Size, ...]
    dtype: Any


@dataclass(frozen=True)
class Leaf:
    """A parameter of the author."""
    name: str
    path: str
    array: Any
    """Its numbers, or what has their shape and type."""
    known: bool = True
    """Whether these are its numbers."""


@dataclass(frozen=True)
class Part:
    """Entries of a leaf: those at offset + Σ index · stride."""
    leaf: Leaf
    offset: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[str, ...] = ()
    """How the author's code came to it, for its name: ".2"."""
    element: tuple[str, int] = ("", -1)
    """The list of layers, and the layer, that a scan has taken it for."""

    @property
    def dtype(self) -> Any:
        return self.leaf.array.dtype

    @property
    def name(self) -> str:
        path = self.leaf.name
        if self.element[1] >= 0:
            stem = self.element[0]
            rest = path[len(stem):].strip(".") if path.startswith(stem) else path
            path = ".".join(filter(None, [stem or "layers", str(self.element[1]), rest]))
        return path + "".join(self.steps)

    @property
    def place(self) -> dict[str, Any]:
        """As a file says it."""
        return {"of": self.leaf.path, "offset": self.offset, "dims": list(self.dims), "strides": list(self.strides)}

    def entries(self, array: np.ndarray) -> np.ndarray:
        """A view of these entries of `array`, which has one axis."""
        strides = [stride * array.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(array[self.offset:], self.dims, strides)

    def cut(self, axis: int, start: int, stop: int, step: int = 1, note: bool = True) -> Part:
        size = len(range(start, stop, step))
        dims, strides = list(self.dims), list(self.strides)
        which = f".{start}" if size == 1 else f".{start}_{stop}" if step == 1 else f".{start}_{stop}_{step}"
        steps = self.steps + ((which,) if note and size != dims[axis] else ())
        offset = self.offset + start * strides[axis]
        dims[axis], strides[axis] = size, strides[axis] * step
        return replace(self, offset=offset, dims=tuple(dims), strides=tuple(strides), steps=steps)

    def split(self, axis: int, sizes: Sequence[int]) -> Part:
        behind = [int(product(sizes[i + 1:])) for i in range(len(sizes))]
        return replace(self, dims=(*self.dims[:axis], *sizes, *self.dims[axis + 1:]),
                       strides=(*self.strides[:axis], *[self.strides[axis] * n for n in behind], *self.strides[axis + 1:]))

    def ordered(self, axes: Sequence[int]) -> Part:
        """With these axes alone, in this order; the others have one entry."""
        return replace(self, dims=tuple(self.dims[a] for a in axes), strides=tuple(self.strides[a] for a in axes))

    def runs(self) -> list[tuple[int, int]]:
        """(entries, stride) of its axes in order, where those that follow each other without a gap are one."""
        made: list[tuple[int, int]] = []
        for size, stride in zip(self.dims, self.strides):
            if size == 1:
                continue
            if made and made[-1][1] == size * stride:
                made[-1] = (made[-1][0] * size, stride)
            else:
                made.append((size, stride))
        return made


def whole(leaf: Leaf) -> Tensor:
    dims = leaf.array.shape
    strides = tuple(int(product(dims[i + 1:])) for i in range(len(dims)))
    return identity(Part(leaf, 0, dims, strides))


@dataclass(frozen=True)
class Repeat:
    """A factor of an axis along which all entries are the same."""
    size: Size


Factor = Union[int, Repeat]


@dataclass(frozen=True)
class Tensor:
    """A tensor whose axes are products of factors: axes of `base`, or repetitions."""
    base: Any
    """A Value, or a Part of a parameter."""
    axes: tuple[tuple[Factor, ...], ...]

    def size(self, factor: Factor) -> Size:
        return factor.size if isinstance(factor, Repeat) else self.base.dims[factor]

    @property
    def shape(self) -> tuple[Size, ...]:
        return tuple(product([self.size(f) for f in axis]) for axis in self.axes)

    @property
    def dtype(self) -> Any:
        return self.base.dtype

    @property
    def data(self) -> bool:
        return isinstance(self.base, Value) and self.base.data

    @property
    def is_parameter(self) -> bool:
        return isinstance(self.base, Part)

    def factors(self) -> list[Factor]:
        return [factor for axis in self.axes for factor in axis]

    def own(self) -> list[int]:
        """The axes of the base, in order."""
        return [factor for factor in self.factors() if isinstance(factor, int)]

    def transposed(self, order: Sequence[int]) -> Tensor:
        return Tensor(self.base, tuple(self.axes[i] for i in order))

    def with_axis(self, at: int) -> Tensor:
        return Tensor(self.base, (*self.axes[:at], (), *self.axes[at:]))

    def without_axis(self, at: int) -> Tensor:
        assert not self.axes[at]
        return Tensor(self.base, (*self.axes[:at], *self.axes[at + 1:]))

    def broadcast(self, shape: Sequence[Size], places: Sequence[int]) -> Tensor:
        """With its axes at `places` of `shape`."""
        axes: list[tuple[Factor, ...]] = [() if same(size, 1) else (Repeat(size),) for size in shape]
        for axis, own, at in zip(self.axes, self.shape, places):
            if not same(own, 1) or same(shape[at], 1):
                axes[at] = axis
        return Tensor(self.base, tuple(axes))

    def cut(self, axis: int, start: int, stop: int, step: int = 1) -> Optional[Tensor]:
        """Entries start, start + step, … of an axis of a part; None where they are not evenly spaced."""
        factors, base = self.axes[axis], self.base
        if not isinstance(base, Part) or any(isinstance(f, Repeat) for f in factors):
            return None
        if (start, stop, step) == (0, int(product([self.size(f) for f in factors])), 1):
            return self
        inner = int(product([self.size(f) for f in factors[1:]]))
        if not factors or (len(factors) > 1 and (start % inner or stop % inner or step != 1)):
            return None
        outer: Any = factors[0]
        part = base.cut(outer, start // inner, stop // inner if len(factors) > 1 else stop, step)
        kept = factors if part.dims[outer] > 1 else factors[1:]
        return Tensor(part, (*self.axes[:axis], kept, *self.axes[axis + 1:]))

    def grouped(self, shape: Sequence[Size]) -> Optional[Tensor]:
        """With another shape, if its sizes are products of factors; a factor of a part is split where necessary."""
        rest, tensor = self.factors(), self
        axes: list[tuple[Factor, ...]] = []
        for size in shape:
            taken: list[Factor] = []
            while not same(product([tensor.size(f) for f in taken]), size):
                if not rest:
                    return None
                more = product([tensor.size(f) for f in [*taken, rest[0]]])
                if is_known([more, size]) and (more > size or size % more):
                    wanted, has = size // product([tensor.size(f) for f in taken]), tensor.size(rest[0])
                    halves = tensor.halves(rest[0], wanted, has)
                    if halves is None:
                        return None
                    tensor, at = halves
                    moved: Callable[..., Any] = lambda f: f + 1 if isinstance(f, int) and isinstance(rest[0], int) and f > rest[0] else f
                    taken, axes = [moved(f) for f in taken], [tuple(map(moved, axis)) for axis in axes]
                    rest = [*at, *[moved(f) for f in rest[1:]]]
                    continue
                taken.append(rest.pop(0))
                if not is_known([size]) and len(taken) > 8:
                    return None
            axes.append(tuple(taken))
        return Tensor(tensor.base, tuple(axes)) if not rest else None

    def halves(self, factor: Factor, first: Size, has: Size) -> Optional[tuple[Tensor, list[Factor]]]:
        """With `factor` as two: the first of `first` entries. The tensor's own axes are then without meaning."""
        if not is_known([first, has]) or first < 1 or has % first:
            return None
        if isinstance(factor, Repeat):
            return self, [Repeat(first), Repeat(has // first)]
        if isinstance(self.base, Part):
            return Tensor(self.base.split(factor, (first, has // first)), ()), [factor, factor + 1]
        return None


def identity(base: Union[Value, Part]) -> Tensor:
    return Tensor(base, tuple(() if same(size, 1) else (i,) for i, size in enumerate(base.dims)))


Anything = Union[Known, Filled, Tensor]


def number_of(value: Anything) -> Optional[Number]:
    return None if isinstance(value, Tensor) else value.number


def filled(number: Any, shape: Sequence[Size], dtype: Any) -> Filled:
    return Filled(np.asarray(number).astype(dtype).item(), tuple(shape), np.dtype(dtype))


def expect_shape(value: Anything, shape: Sequence[Size], what: str) -> None:
    if not same_sizes(value.shape, shape):
        raise Unsupported(f"{what}: found the shape {value.shape}, expected {tuple(shape)}")
