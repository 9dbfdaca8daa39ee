"""Rows of tables, and entries that are chosen by what the model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from ctxc._axes import Anything, Known, Tensor, identity, number_of
from ctxc._program import Size, Value, is_known, product, same, same_sizes

if TYPE_CHECKING:
    from ctxc.jax._walk import Walk

SAME_ENTRIES = ("view.default", "permute.default", "expand.default", "slice.Tensor", "select.int")


def not_negative(value: Any) -> bool:
    """Whether integers are known to be at least 0."""
    if not isinstance(value, Value):
        return isinstance(value, (int, float)) and value >= 0
    if value.call is None:
        return value.dtype.kind in "iu" if value.array is None else value.part is None and bool((value.array >= 0).all())
    arguments, base = value.call.arguments, value.call.base
    if value.call.op in SAME_ENTRIES:
        return not_negative(arguments["self"])
    if base in ("arange", "argmax", "topk", "sort"):  # the last result has places
        return value is value.call.results[-1]
    if base in ("add", "mul", "minimum"):
        return not_negative(arguments["self"]) and not_negative(arguments["other"])
    if base == "maximum":
        return not_negative(arguments["self"]) or not_negative(arguments["other"])
    if base == "clamp":
        below = arguments["self"] if "max" in arguments else arguments["min"]
        return not_negative(below) and not_negative(arguments.get("max", 0))
    if base in ("fmod", "_to_copy"):
        return not_negative(arguments["self"]) or arguments["self"].dtype == bool
    if base == "where":
        return not_negative(arguments["self"]) and not_negative(arguments["other"])
    return base == "full" and not_negative(arguments["fill_value"])


def is_chosen(value: Value) -> bool:
    """Whether they are places that the model chooses, as those of experts."""
    while value.call is not None and value.call.op in SAME_ENTRIES:
        value = value.call.arguments["self"]
    return value.call is not None and value.call.base in ("topk", "argmax", "sort")


def without_wrap(which: Anything, index: Anything) -> Optional[Anything]:
    """i of where(i < 0, i + n, i), if no i is negative: JAX lets an index count from the end."""
    if not isinstance(which, Tensor) or not isinstance(index, Tensor) or not isinstance(which.base, Value):
        return None
    compared = which.base.made_by("lt.Scalar")
    wraps = compared and compared["other"] == 0 and compared["self"] is index.base and index.dtype.kind in "iu"
    return index if wraps and not_negative(index.base) else None


def first_rows(walk: Walk, table: Tensor, shape: Sequence[Size], starts: Sequence[Any]) -> Optional[Tensor]:
    """A table's rows 0, 1, …, as many as there are tokens: those of its positions."""
    rows = [i for i, size in enumerate(shape) if not is_known([size])]
    if len(rows) != 1 or not table.is_parameter or any(start != 0 for start in starts):
        return None
    at = rows[0]
    if not is_known(table.shape) or not same_sizes([*table.shape[:at], *table.shape[at + 1:]], [*shape[:at], *shape[at + 1:]]) or \
            any(size != 1 for size in shape[:at]):
        return None
    line = walk.graph.emit("arange.default", (shape[at],), np.int64, end=shape[at])
    return taken_rows(walk, table, at, line, shape)


def taken_rows(walk: Walk, table: Tensor, at: int, line: Value, shape: Sequence[Size]) -> Tensor:
    width = int(product(table.shape[at + 1:]))
    weight = walk.build.real(table, (table.shape[at], width))
    made = walk.graph.emit("embedding.default", (*line.dims, width), table.dtype, weight=weight, indices=line)
    return identity(walk.build.view(made, shape))


def dynamic_slice(walk: Walk, equation: Any, x: Anything, *starts: Anything) -> Anything:
    from ctxc.jax._primitives import cut
    sizes, tensor = equation.params["slice_sizes"], walk.build.tensor(x)
    numbers = [number_of(start) for start in starts]
    if None not in numbers and (rows := first_rows(walk, tensor, sizes, numbers)) is not None:
        return rows
    for axis, (start, size) in enumerate(zip(numbers, sizes)):
        if same(size, tensor.shape[axis]):
            continue
        if start is None:
            raise walk.unsupported("primitive 'dynamic_slice' begins at a place that the model reads; expected one that is known while "
                                   "tracing, or an index of whole rows (x[i])")
        first = int(start) + (tensor.shape[axis] if start < 0 else 0)
        first = max(0, min(first, tensor.shape[axis] - size)) if is_known([tensor.shape[axis], size]) else first
        tensor = cut(walk, tensor, axis, first, first + size, 1, size)
    return tensor


def gather(walk: Walk, equation: Any, x: Anything, index: Anything) -> Anything:
    """x[i] along one axis, or for each row the entries that its own indices name."""
    numbers, sizes, aval = equation.params["dimension_numbers"], equation.params["slice_sizes"], equation.outvars[0].aval
    starts, batch = list(numbers.start_index_map), list(getattr(numbers, "operand_batching_dims", ()))
    tensor = walk.build.tensor(x)
    if isinstance(index, Known) and not batch and index.array.size == len(starts):
        return at_known_place(walk, tensor, dict(zip(starts, index.array.reshape(-1))), sizes, aval.shape)
    chosen = [k for k, axis in enumerate(starts) if not same(sizes[axis], tensor.shape[axis])] or [0]
    whole = all(same(size, tensor.shape[axis]) for axis, size in enumerate(sizes) if axis != starts[chosen[0]] and axis not in batch)
    if len(chosen) != 1 or sizes[starts[chosen[0]]] != 1 or not whole:
        raise walk.unsupported("primitive 'gather' of parts of several axes is not read; expected rows (x[i]) or jnp.take_along_axis")
    k, at = chosen[0], starts[chosen[0]]
    places = component(walk, index, k, len(starts))
    if isinstance(places, Known) and not batch and (found := evenly_spaced(walk, tensor, at, places.array, numbers)) is not None:
        return found
    if batch:
        return along_axis(walk, numbers, tensor, places, at, batch)
    turned = tensor.transposed([at, *[i for i in range(len(tensor.shape)) if i != at]])
    line = walk.build.real(places)
    rows = [i for i in range(len(aval.shape)) if i not in numbers.offset_dims]
    rest: tuple[Size, ...] = turned.shape[1:]
    order = rows + list(numbers.offset_dims)
    if at not in numbers.collapsed_slice_dims:  # the axis stays, with one entry
        rest = (*rest[:at], 1, *rest[at:])
    if len(turned.shape) == 2 and not is_chosen(line):
        made = walk.graph.emit("embedding.default", (*line.dims, turned.shape[1]), tensor.dtype, weight=walk.build.real(turned), indices=line)
    else:
        made = walk.graph.emit("index.Tensor", (*line.dims, *turned.shape[1:]), tensor.dtype, self=walk.build.real(turned),
                               indices=[line])
    made_tensor = walk.build.reshape(identity(made), [*line.dims, *rest])
    assert isinstance(made_tensor, Tensor)
    return made_tensor.transposed([order.index(i) for i in range(len(order))])


def evenly_spaced(walk: Walk, tensor: Tensor, at: int, line: np.ndarray, numbers: Any) -> Optional[Tensor]:
    """x[..., a:b:c], which JAX writes as a gather."""
    from ctxc.jax._primitives import cut
    steps = set(np.diff(line).tolist()) if line.ndim == 1 and line.size > 1 else set()
    rows = [i for i in range(len(tensor.shape)) if i not in numbers.offset_dims]
    if len(steps) != 1 or rows != [at] or at not in numbers.collapsed_slice_dims or min(steps) < 1 or line[0] < 0:
        return None
    step = steps.pop()
    return cut(walk, tensor, at, int(line[0]), int(line[-1]) + 1, step, line.size)


def at_known_place(walk: Walk, tensor: Tensor, starts: dict[int, Any], sizes: Sequence[Size], shape: Sequence[Size]) -> Anything:
    from ctxc.jax._primitives import cut
    rows = first_rows(walk, tensor, sizes, [int(starts.get(axis, 0)) for axis in range(len(sizes))])
    if rows is not None:
        return walk.build.reshape(rows, shape)
    for axis, start in starts.items():
        if not same(sizes[axis], tensor.shape[axis]):
            tensor = cut(walk, tensor, axis, int(start), int(start) + sizes[axis], 1, sizes[axis])
    return walk.build.reshape(tensor, shape)


def component(walk: Walk, index: Anything, k: int, count: int) -> Anything:
    """Number k of the `count` indices of each place."""
    if isinstance(index, Known):
        return Known(index.array[..., k])
    if count > 1:
        tensor = walk.build.concrete(index)
        base = tensor.base.made_by("cat.default")
        if base and len(base["tensors"]) == count and same_sizes(tensor.base.dims, tensor.shape):
            one = base["tensors"][k]
        else:
            whole = walk.build.real(index)
            one = walk.graph.emit("slice.Tensor", (*whole.dims[:-1], 1), whole.dtype, self=whole, dim=len(whole.dims) - 1, start=k,
                                  end=k + 1, step=1)
        index = identity(one)
    return walk.build.reshape(index, index.shape[:-1])


def along_axis(walk: Walk, numbers: Any, tensor: Tensor, places: Anything, at: int, batch: list[int]) -> Anything:
    """jnp.take_along_axis."""
    order = list(numbers.start_indices_batching_dims)
    lead = [i for i in range(len(places.shape)) if i not in order]
    if len(lead) != 1 or {*batch, at} != set(range(len(tensor.shape))):
        raise walk.unsupported("primitive 'gather' with batches and slices is not read; expected jnp.take_along_axis")
    turned = [lead[0] if axis == at else order[batch.index(axis)] for axis in range(len(tensor.shape))]
    index = walk.build.real(walk.build.concrete(places).transposed(turned))
    made = walk.graph.emit("gather.default", index.dims, tensor.dtype, self=walk.build.real(tensor), dim=at, index=index)
    return identity(made).transposed([turned.index(i) for i in range(len(turned))])
