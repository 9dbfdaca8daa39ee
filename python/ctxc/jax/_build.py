"""Writes ops on tensors whose axes have names alone (_values.py): brings operands into one layout where an op needs that."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from ctxc._axes import Anything, Factor, Filled, Known, Part, Repeat, Tensor, identity, number_of
from ctxc._program import DType, Graph, Size, Unsupported, Value, is_known, same, same_sizes
from ctxc.jax._patterns import matched

SCALAR_FORMS = ("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "remainder", "fmod")
MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne", "add": "add", "mul": "mul", "maximum": "maximum",
            "minimum": "minimum", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}
FORMS = {"pow": "pow.Tensor_Tensor", "maximum": "maximum.default", "minimum": "minimum.default", "atan2": "atan2.default"}
HIDDEN = -1e9  # eˣ is nothing
MOST_OVERLAP = 1 << 28  # entries of a leaf of which several parts are compared


class Builder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.parts: dict[int, list[Value]] = {}  # what is stored of a leaf

    # Tensors of the program.

    def stored(self, part: Part, dims: Sequence[int]) -> Value:
        """A stored tensor with these entries, as axes `dims`; made of one that is stored in another form, if there is one. Two
        that overlap otherwise would be patched apart, so that they are refused."""
        known, runs = self.parts.setdefault(id(part.leaf.array), []), part.runs()
        for each in known:
            own: Part = each.part
            if own.offset == part.offset and (pieces := common_pieces(own.runs(), runs)) is not None:
                before, behind = in_pieces(own.runs(), pieces), in_pieces(runs, pieces)
                made = self.view(each, [size for size, _ in before]) if before != behind else each
                return self.view(self.permute(made, [before.index(piece) for piece in behind]), dims)
        for each in known:
            self.expect_apart(each.part, part)
        array = part.leaf.array
        entries = part.entries(np.ascontiguousarray(array).reshape(-1)).reshape(tuple(dims)) if part.leaf.known else \
            np.broadcast_to(np.zeros((), array.dtype), tuple(dims))
        known.append(self.graph.store(entries, part.name, part))
        return known[-1]

    def expect_apart(self, a: Part, b: Part) -> None:
        size = a.leaf.array.size
        if size <= MOST_OVERLAP:
            marks = np.zeros(size, np.uint8)
            a.entries(marks)[...] = 1
            if not b.entries(marks).any():
                return
        raise Unsupported(f"{self.graph.place}: parameter {a.leaf.path} is used as {a.name} of shape {a.dims}, and as {b.name} of shape "
                          f"{b.dims}, which have entries in common; expected parts that are apart, or one form of it")

    def view(self, value: Value, dims: Sequence[Size]) -> Value:
        while value.made_by("view.default") and not same_sizes(value.dims, dims):
            value = value.made_by("view.default")["self"]
        if same_sizes(value.dims, dims):
            return value
        return self.graph.emit("view.default", dims, value.dtype, self=value, size=list(dims))

    def permute(self, value: Value, order: Sequence[int]) -> Value:
        order = list(order)
        if order == sorted(order):
            return value
        if inner := value.made_by("permute.default"):
            return self.permute(inner["self"], [inner["dims"][i] for i in order])
        return self.graph.emit("permute.default", [value.dims[i] for i in order], value.dtype, self=value, dims=order)

    def expand(self, value: Value, dims: Sequence[Size]) -> Value:
        if same_sizes(value.dims, dims):
            return value
        return self.graph.emit("expand.default", dims, value.dtype, self=value, size=list(dims))

    def tensor(self, value: Anything) -> Tensor:
        """Its axes; a parameter is not written by that."""
        return value if isinstance(value, Tensor) else self.concrete(value)

    def concrete(self, value: Anything) -> Tensor:
        """On a tensor of the program, with the same axes."""
        if isinstance(value, Tensor):
            if isinstance(value.base, Value):
                return value
            own = value.own()
            at = {axis: i for i, axis in enumerate(own)}
            rename: Callable[..., Any] = lambda f: at[f] if isinstance(f, int) else f
            part = value.base.ordered(own)
            return Tensor(self.stored(part, part.dims), tuple(tuple(map(rename, axis)) for axis in value.axes))
        if isinstance(value, Known) and value.number is None:
            return self.constant(value.array)
        one = self.full(number_of(value), value.dtype)
        return identity(one).broadcast(value.shape, ()) if not one.dims else identity(one)

    def constant(self, array: np.ndarray) -> Tensor:
        """Numbers; where the number of tokens is fixed, those of an axis of so many are its positions' rows, as of a table."""
        at = [axis for axis, size in enumerate(array.shape) if size == self.graph.length]
        if not is_known([self.graph.tokens]) or len(at) != 1:
            return identity(self.graph.store(np.ascontiguousarray(array)))
        first = np.moveaxis(array, at[0], 0)
        line = self.graph.emit("arange.default", first.shape[:1], np.int64, end=len(first))
        table = first.reshape(len(first), -1)
        weight = self.graph.store(np.concatenate([table, table[-1:]]))  # a row more: its rows are not the tokens
        rows = self.graph.emit("embedding.default", table.shape, array.dtype, weight=weight, indices=line)
        order = list(range(1, array.ndim))
        return identity(self.view(rows, first.shape)).transposed([*order[:at[0]], 0, *order[at[0]:]])

    def full(self, number: Any, dtype: Any) -> Value:
        return self.graph.emit("full.default", (), dtype, size=[], fill_value=number)

    def arranged(self, tensor: Tensor, order: Sequence[Optional[int]]) -> Value:
        """The base with axes in this order; None is an axis of one entry. Leading axes of one entry are left out."""
        base = tensor.base
        assert isinstance(base, Value)
        dims = [1 if axis is None else base.dims[axis] for axis in order]
        own = [axis for axis in order if axis is not None]
        if own == sorted(own) and same_sizes(dims, base.dims):
            return base
        rest = [axis for axis in range(len(base.dims)) if axis not in own]
        first = [axis for axis in rest if not own or axis < min(own)]
        moved = base if own == sorted(own) else self.permute(base, [*first, *own, *[axis for axis in rest if axis not in first]])
        if same_sizes(dims, moved.dims):
            return moved
        while dims and same(dims[0], 1):
            dims = dims[1:]
        return self.view(moved, dims)

    def real(self, value: Anything, dims: Optional[Sequence[Size]] = None) -> Value:
        """A tensor of the program with the axes of `value`, or with these sizes if each is a product of some."""
        if isinstance(value, Tensor) and isinstance(value.base, Part) and not any(isinstance(f, Repeat) for f in value.factors()):
            return self.stored(value.base.ordered(value.own()), value.shape if dims is None else dims)
        tensor = self.concrete(value)
        order: list[Any] = [factor if isinstance(factor, int) else None for factor in tensor.factors()]
        made = self.arranged(tensor, order)
        if any(isinstance(factor, Repeat) for factor in tensor.factors()):
            ones = [1 if axis is None else tensor.base.dims[axis] for axis in order]
            made = self.expand(self.view(made, ones), [tensor.size(factor) for factor in tensor.factors()])
        return self.view(made, tensor.shape if dims is None else dims)

    def reshape(self, value: Anything, shape: Sequence[Size]) -> Anything:
        if isinstance(value, Filled) or (isinstance(value, Known) and value.number is not None and not is_known(shape)):
            return Filled(value.number, tuple(shape), value.dtype)
        if isinstance(value, Known):
            return Known(value.array.reshape(tuple(shape)))
        return value.grouped(shape) or identity(self.view(self.real(value), shape))

    # Entry by entry.

    def aligned(self, values: Sequence[Tensor]) -> tuple[list[Tensor], list[tuple[Factor, ...]], tuple[int, ...]]:
        """Tensors of one shape with the same factors in every axis: for each place the factors of all, and how many places each
        axis has."""
        tensors = list(values)
        places: list[tuple[Factor, ...]] = []
        counts: list[int] = []
        for axis in range(len(tensors[0].axes)):
            size = next((t.shape[axis] for t in tensors if not same(t.shape[axis], 1)), 1)
            rows = [list(t.axes[axis]) if not same(t.shape[axis], 1) else [] if same(size, 1) else [Repeat(size)] for t in tensors]
            before = len(places)
            while any(rows):
                if not all(rows):
                    raise Misfit
                sizes = [t.size(row[0]) for t, row in zip(tensors, rows)]
                if not all(same(sizes[0], each) for each in sizes):
                    least = self.least(sizes)
                    for t, row, has in zip(tensors, rows, sizes):
                        if not same(has, least):
                            if not isinstance(row[0], Repeat):
                                raise Misfit
                            row[0:1] = [Repeat(least), Repeat(self.quotient(has, least))]
                    continue
                places.append(tuple(row.pop(0) for row in rows))
            counts.append(len(places) - before)
        return tensors, places, tuple(counts)

    @staticmethod
    def least(sizes: Sequence[Size]) -> Size:
        known = [size for size in sizes if is_known([size])]
        if len(known) != len(sizes):
            raise Misfit
        return min(known)

    @staticmethod
    def quotient(size: Size, by: Size) -> Size:
        if size % by:
            raise Misfit
        return size // by

    def in_one_layout(self, values: Sequence[Anything], shape: Sequence[Size]) -> tuple[list[Value], list[Size], Callable[[Value], Tensor]]:
        """The values as operands that broadcast, the sizes of what is made of them, and a function that gives this the axes of
        `shape`."""
        tensors = [self.concrete(value) for value in values]
        tensors = [t if t.axes or not shape else t.broadcast(shape, ()) for t in tensors]
        try:
            tensors, places, counts = self.aligned(tensors)
        except Misfit:
            tensors = [identity(self.real(t)) for t in tensors]
            tensors, places, counts = self.aligned(tensors)
        own: Callable[..., Any] = lambda t: sum(isinstance(place[t], int) for place in places)
        first = max(range(len(tensors)), key=lambda t: (own(t), tensors[t].data))
        covers = all(isinstance(place[first], int) or all(isinstance(f, Repeat) for f in place) for place in places)
        if covers:  # the layout of this one
            base = tensors[first].base
            at = {place[first]: place for place in places if isinstance(place[first], int)}
            layout: list[Any] = [at.get(axis) for axis in range(len(base.dims))]
            rename: Callable[..., Any] = lambda place: place[first]
        else:
            layout, rest = [], iter(places)
            for count in counts:  # an axis of one entry keeps its place
                layout += [p for p in (next(rest) for _ in range(count)) if any(isinstance(f, int) for f in p)] or [None]
            number = {place: i for i, place in enumerate(layout) if place}
            rename = lambda place: number.get(place, place[0])
        operands: list[Value] = []
        dims: list[Size] = [1] * len(layout)
        for t, tensor in enumerate(tensors):
            order = [place[t] if place and isinstance(place[t], int) else None for place in layout]
            operands.append(tensor.base if covers and t == first else self.arranged(tensor, order))
            dims = [tensor.base.dims[axis] if axis is not None and same(size, 1) else size for axis, size in zip(order, dims)]
        factors = iter(places)
        axes = tuple(tuple(rename(next(factors)) for _ in range(count)) for count in counts)
        return operands, dims, lambda made: Tensor(made, axes)

    def unary(self, op: str, x: Anything, dtype: Any, **more: Any) -> Anything:
        x = self.concrete(x)
        made = matched(self.graph, op, x.base) if not more else None
        return Tensor(made or self.graph.emit(op, x.base.dims, dtype, self=x.base, **more), x.axes)

    def binary(self, op: str, a: Anything, b: Anything, shape: Sequence[Size], dtype: Any) -> Anything:
        x, y = number_of(a), number_of(b)
        if x is not None and op in MIRRORED:
            return self.binary(MIRRORED[op], b, a, shape, dtype)
        if x is not None:
            return self.from_number(op, x, b, shape, dtype)
        if y is not None:
            of = self.concrete(a)
            made = self.with_number(op, of.base, y, dtype)
            result: Anything = of if made is of.base else Tensor(made, of.axes)
            return result if same_sizes(result.shape, shape) else self.broadcast_to(result, shape)
        (first, second), dims, named = self.in_one_layout([a, b], shape)
        return named(matched(self.graph, op, first, second) or self.call(op, first, second, dims, dtype))

    def call(self, op: str, a: Value, b: Value, dims: Sequence[Size], dtype: Any) -> Value:
        last = "exponent" if op == "pow" else "other"
        return self.graph.emit(FORMS.get(op, op + ".Tensor"), dims, dtype, **{"self": a, last: b})

    def broadcast_to(self, value: Anything, shape: Sequence[Size]) -> Tensor:
        return self.tensor(value).broadcast(shape, range(len(shape) - len(value.shape), len(shape)))

    def from_number(self, op: str, number: Any, b: Anything, shape: Sequence[Size], dtype: Any) -> Anything:
        """Number − b, number / b, numberᵇ."""
        if op == "sub":
            return self.unary("rsub.Scalar", b, dtype, other=number)
        if op == "div":
            return self.binary("mul", self.unary("reciprocal.default", b, dtype), Filled(number, tuple(shape), dtype), shape, dtype)
        of = self.concrete(b)
        if op == "pow":
            return Tensor(self.graph.emit("pow.Scalar", of.base.dims, dtype, self=number, exponent=of.base), of.axes)
        one = identity(self.full(number, dtype)).broadcast(shape, ())
        (first, second), dims, named = self.in_one_layout([one, b], shape)
        return named(self.call(op, first, second, dims, dtype))

    def with_number(self, op: str, a: Value, number: Any, dtype: Any) -> Value:
        neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1, "maximum": -np.inf, "minimum": np.inf, "bitwise_and": True, "bitwise_or": False,
                   "pow": 1}
        if op in neutral and number == neutral[op] and (op[:3] != "bit" or a.dtype == bool):
            return a
        if (made := matched(self.graph, op, a, number)) is not None:
            return made
        if op in ("maximum", "minimum"):
            if op == "maximum" and number == 0 and a.dtype.kind not in "iu":
                return self.graph.emit("relu.default", a.dims, dtype, self=a)
            return self.graph.emit("clamp.default", a.dims, dtype, **{"self": a, "min" if op == "maximum" else "max": number})
        if op == "pow":
            return self.graph.emit("pow.Tensor_Scalar", a.dims, dtype, self=a, exponent=number)
        return self.graph.emit(op + (".Scalar" if op in SCALAR_FORMS else ".Tensor"), a.dims, dtype, self=a, other=number)

    def where(self, condition: Anything, yes: Anything, no: Anything, shape: Sequence[Size], dtype: Any) -> Anything:
        if number_of(no) == 0 and isinstance(yes, Tensor) and isinstance(condition, Tensor) and hides(yes.base, condition.base):
            return yes
        tensors = [condition, *[each for each in (yes, no) if number_of(each) is None]]
        operands, dims, named = self.in_one_layout(tensors, shape)
        rest = iter(operands[1:])
        sides = [next(rest) if number_of(each) is None else self.full(number_of(each), dtype) for each in (yes, no)]
        return named(self.graph.emit("where.self", dims, dtype, condition=operands[0], self=sides[0], other=sides[1]))

    def copied(self, x: Anything, dtype: Any) -> Anything:
        """In another type of numbers."""
        of = self.concrete(x)
        inner = of.base.made_by("_to_copy.default")
        if inner and inner["self"].dtype == bool == dtype:
            return Tensor(inner["self"], of.axes)
        if dtype.kind in "iu" and of.dtype.kind in "iu":
            return of
        return Tensor(self.graph.emit("_to_copy.default", of.base.dims, dtype, self=of.base, dtype=DType(dtype.name)), of.axes)

    # Along axes.

    def reduced(self, op: str, x: Anything, axes: Sequence[int], dtype: Any, several: bool = True, **more: Any) -> Anything:
        of = self.concrete(x)
        factors = [factor for axis in axes for factor in of.axes[axis]]
        along = sorted(factor for factor in factors if isinstance(factor, int))
        if any(isinstance(f, Repeat) for f in factors) or (not several and len(along) != 1):
            of = identity(self.real(x))
            along = [axis for axis in axes if not same(of.shape[axis], 1)]
        kept = tuple(axis for i, axis in enumerate(of.axes) if i not in axes)
        if not along:
            return Tensor(of.base, kept) if op != "argmax.default" else filled_zeros(kept, of, dtype)
        dims = [1 if i in along else size for i, size in enumerate(of.base.dims)]
        if not several and len(along) != 1:
            raise Unsupported(f"{self.graph.place}: '{op.partition('.')[0]}' along several axes is not read; expected one")
        made = self.graph.emit(op, dims, dtype, self=of.base, dim=along if several else along[0], keepdim=True, **more)
        return Tensor(made, kept)

    def along(self, op: str, x: Anything, axis: int, dtype: Any, **more: Any) -> Anything:
        """An op along one axis that keeps it."""
        of = self.concrete(x)
        if len(of.axes[axis]) != 1 or not isinstance(of.axes[axis][0], int):
            of = identity(self.real(x))
        (at,) = of.axes[axis] or (None,)
        if at is None:
            raise Unsupported(f"{self.graph.place}: '{op.partition('.')[0]}' along an axis of one entry is not read")
        return Tensor(self.graph.emit(op, of.base.dims, dtype, self=of.base, dim=at, **more), of.axes)


def hides(value: Any, condition: Any) -> bool:
    """Whether eˣ or a softmax of x gives nothing where x was hidden by the same condition, as softmax(…, where=…) asks once more."""
    if not isinstance(value, Value):
        return False
    x = value.made_by("exp.default", "softmax.int").get("self")
    x = x.made_by("sub.Tensor").get("self", x) if isinstance(x, Value) else None
    chosen = x.made_by("where.self") if isinstance(x, Value) else {}
    filled_with = chosen["other"].made_by("full.default") if chosen else {}
    return bool(chosen) and chosen["condition"] is condition and filled_with.get("fill_value", 0) < HIDDEN


class Misfit(Exception):
    """Axes whose factors are not the same."""


def filled_zeros(axes: Any, of: Tensor, dtype: Any) -> Filled:
    return Filled(0, Tensor(of.base, axes).shape, np.dtype(dtype))


Runs = list[tuple[int, int]]


def common_pieces(a: Runs, b: Runs) -> Optional[Runs]:
    """(entries, stride) of which both are products; None where they are not the same entries."""
    rows, pieces = [sorted(runs, key=lambda run: run[1]) for runs in (a, b)], []
    while all(rows):
        (n, stride), (m, other) = rows[0].pop(0), rows[1].pop(0)
        if stride != other or max(n, m) % min(n, m):
            return None
        least = min(n, m)
        pieces.append((least, stride))
        for row, size in zip(rows, (n, m)):
            if size != least:
                row.insert(0, (size // least, stride * least))
    return None if any(rows) else pieces


def in_pieces(runs: Runs, pieces: Runs) -> Runs:
    """The pieces in the order of the runs that they make."""
    made: Runs = []
    for size, stride in runs:
        made += sorted((p for p in pieces if stride <= p[1] < stride * size), key=lambda piece: -piece[1])
    return made
