"""What masks of a program of JAX let a token see, and its sizes as text."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from ctxc._program import Call, Graph, Size, Unsupported, Value
from ctxc._program_file import role_of
from ctxc.jax import _jax_internals as internals

HIDDEN = -1e4  # below it an entry of an additive mask hides a token
ENTRYWISE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
             "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or}
OF_ONE = {"bitwise_not": np.invert, "exp": np.exp, "neg": np.negative, "abs": np.abs}


def computed(graph: Graph, value: Value, known: dict[int, Optional[np.ndarray]]) -> Optional[np.ndarray]:
    """A value of positions alone, for graph.length tokens; None where it is made of anything else."""
    if id(value) not in known:
        if value.call is None:
            known[id(value)] = np.arange(graph.length)[None] if role_of(value) == "position" and value.array is None else \
                value.array if value.part is None else None
        else:
            known[id(value)] = of_call(graph, value, value.call, known)
    return known[id(value)]


def of_call(graph: Graph, value: Value, call: Call, known: dict[int, Optional[np.ndarray]]) -> Optional[np.ndarray]:
    at: Callable[..., Any] = lambda size: internals.at_tokens(size, graph.length)
    given: dict[str, Any] = {name: computed(graph, each, known) if isinstance(each, Value) else each for name, each in call.arguments.items()}
    if any(each is None for each in given.values()):
        return None
    dims, base = tuple(map(at, value.dims)), call.base
    if base == "arange":
        return np.arange(dims[0])
    if base == "full":
        return np.full(dims, given["fill_value"])
    if base in ENTRYWISE:
        return np.asarray(ENTRYWISE[base](given["self"], given["other"]))
    if base == "view":
        return np.asarray(given["self"].reshape(dims))
    if base == "expand":
        return np.broadcast_to(given["self"], dims)
    if base == "permute":
        return np.asarray(given["self"].transpose(given["dims"]))
    if base == "where":
        return np.asarray(np.where(given["condition"], given["self"], given["other"]))
    if base in OF_ONE:
        return np.asarray(OF_ONE[base](given["self"]))
    return np.asarray(given["self"].astype(value.dtype)) if base == "_to_copy" else None


def visible_masks(graph: Graph) -> dict[int, bool]:
    """For each value of (…, tokens, tokens) that is made of positions alone, by id: whether it lets a token see one before it."""
    found: dict[int, bool] = {}
    known: dict[int, Optional[np.ndarray]] = {}
    for call in graph.calls:
        for value in call.results:
            if value.data or len(value.dims) < 2 or not all(graph.counts_tokens(size) for size in value.dims[-2:]):
                continue
            array = computed(graph, value, known)
            if array is not None and array.shape[-2:] == (graph.length, graph.length):
                row = array.reshape(-1, graph.length)[-1]
                hidden = row < HIDDEN if row.dtype.kind not in "iub" else row == 0
                found[id(value)] = bool((hidden[:-1] == hidden[-1]).any())
    return found


def size_of(size: Size) -> int | str:
    """A number, or an expression of the tokens' number t."""
    if isinstance(size, (int, np.integer)):
        return int(size)
    at = [internals.at_tokens(size, n) for n in (64, 65, 66)]
    slope, offset = at[1] - at[0], at[0] - 64 * (at[1] - at[0])
    if at[2] - at[1] != slope:
        raise Unsupported(f"found the size {size}, expected one that grows with the number of tokens alone")
    text = "t" if slope == 1 else f"Mul({slope}, t)"
    return f"Add({text}, {offset})" if offset else text
