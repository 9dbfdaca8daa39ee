"""Scores that fall by a factor for each token between two, as retention has them: the recurrence that gives the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ctxc._program import Graph, Value, is_known, product, same_sizes
from ctxc.jax._masks import computed
from ctxc.jax._patterns import factors

if TYPE_CHECKING:
    from ctxc.jax._walk import Walk

COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


def has_no_end(value: Value) -> bool:
    """Whether it is one function of all distances, as no number says from which one on it is another: a window's width would."""
    if value.call is None:
        return value.array is None or value.array.dtype.kind == "f"
    arguments, operands = value.call.arguments, list(value.call.operands())
    numbers = [arguments[name] for name in ("other", "fill_value") if not isinstance(arguments.get(name, 0), Value) and name in arguments]
    floats = [each.dtype.kind == "f" for each in operands]
    if value.call.base in COMPARED and any(floats) or (not all(floats) or value.dtype.kind != "f") and any(abs(n) > 1 for n in numbers):
        return False
    return all(map(has_no_end, operands))


def decay_of(graph: Graph, value: Value, heads: int) -> Optional[np.ndarray]:
    """The logarithms of the factors, one for each head, of which a value has powers for the tokens before, and 0 for those behind."""
    array = computed(graph, value, {}) if has_no_end(value) else None
    if array is None or array.shape[-2:] != (graph.length, graph.length):
        return None
    array = array.reshape(-1, graph.length, graph.length)
    rates, steps = array[:, 1, 0], np.subtract.outer(np.arange(graph.length), np.arange(graph.length))
    if len(array) not in (1, heads) or not (rates > 0).all():
        return None
    expected = np.where(steps >= 0, rates[:, None, None] ** np.maximum(steps, 0), 0)
    return np.broadcast_to(np.log(rates), heads).astype(np.float32) if np.allclose(array, expected, rtol=1e-5, atol=1e-7) else None


def retained(walk: Walk, weights: Value, values: Value) -> Optional[Value]:
    """weights · values for weights (…, tokens, tokens) = (queries · keysᵀ) × decays and values (…, tokens, entries)."""
    graph, batch = walk.graph, weights.dims[:-2]
    for scores, decays in factors(weights):
        made = scores.made_by("matmul.default")
        if not made or decays.data or not is_known(batch) or not same_sizes(scores.dims, weights.dims) or \
                not all(same_sizes(each.dims[:-2], batch) for each in (made["self"], made["other"], values)):
            continue
        heads, tokens = int(product(batch)), weights.dims[-1]
        logarithms = decay_of(graph, decays, heads)
        if logarithms is None:
            continue

        def by_tokens(value: Value, order: list[int]) -> Value:
            flat = walk.build.view(value, (heads, *value.dims[-2:]))
            turned = walk.build.permute(flat, order)
            return walk.build.view(turned, (1, *turned.dims))
        of_values = by_tokens(values, [1, 0, 2])
        decay: Any = walk.build.expand(graph.store(logarithms), (1, tokens, heads))
        result = graph.emit("ctxc.linear_attention.default", of_values.dims, values.dtype, query=by_tokens(made["self"], [1, 0, 2]),
                            key=by_tokens(made["other"], [2, 0, 1]), value=of_values, decay=decay)
        turned = walk.build.permute(walk.build.view(result, result.dims[1:]), [1, 0, 2])
        return walk.build.view(turned, (*batch, *turned.dims[1:]))
    return None
