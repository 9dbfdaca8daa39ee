"""The numbers that a file carries of its own function: what JAX computes for some tokens (ctxc/_source_numbers.py has PyTorch's)."""

from __future__ import annotations

import base64
from typing import Any, Callable, Sequence

import jax
import numpy as np

from ctxc._axes import Leaf
from ctxc._program import Graph, Value
from ctxc._program_file import digest_of, read_in, role_of
from ctxc._random_numbers import MOST, random_numbers
from ctxc.jax import _jax_internals as internals

LENGTHS = (7, 17, 11, 5, 3, 2)
MOST_LOGITS = 1024  # numbers of a token
MOST_DOUBLES = 1 << 27  # parameters that are copied as doubles


def chosen(logits: np.ndarray) -> np.ndarray:
    """Of (1, tokens, words) at most so many numbers of each token, from the first to the last."""
    rows = logits.reshape(logits.shape[1], -1)
    count = min(rows.shape[1], MOST_LOGITS)
    return rows[:, np.arange(count) * rows.shape[1] // count]


def tokens_for(length: int, words: int, draw: np.random.Generator) -> np.ndarray:
    """Few are the same; the first ids are often of tokens that mean nothing."""
    first = 3 if words > 8 else 0
    return first + draw.permutation(words - first)[:length] if words - first >= length else draw.integers(first, words, length)


def run_of(f: Callable[..., Any], params: Any, inputs: Sequence[Any], in_doubles: bool) -> dict[str, Any]:
    """The logits for one sequence, and how much rounding changes them."""
    logits = np.asarray(jax.jit(f)(params, *inputs), np.float32)
    made, rounding = chosen(logits), 0.0
    if in_doubles:
        try:
            with internals.in_doubles():
                wide = jax.tree.map(lambda x: np.asarray(x, np.float64) if jax.numpy.issubdtype(x.dtype, np.floating) else x, params)
                exact = chosen(np.asarray(jax.jit(lambda *given: f(*given))(wide, *inputs), np.float64))
            rounding, made = float(np.abs(exact - made).max()), exact
        except Exception:  # a function may have types of its own
            pass
    if not np.isfinite(made).all() or not np.isfinite(rounding):
        raise ValueError("it gives numbers that are not finite")
    return {"tokens": np.asarray(inputs[0]).reshape(-1).tolist(), "width": int(logits.shape[-1]), "rounding": rounding, "layers": [],
            "logits": base64.b64encode(made.astype("<f4").tobytes()).decode()}


def with_random_numbers(params: Any, leaves: Sequence[Leaf], graph: Graph) -> Any:
    """A tree of the same form whose parameters have the numbers that ctxc gives to those that have none."""
    arrays = {leaf.path: np.zeros(leaf.array.shape, leaf.array.dtype) for leaf in leaves}
    for value in read_in(graph):
        if value.part is not None:
            drawn = random_numbers(value.name, value.dims).reshape(value.part.dims)
            value.part.entries(arrays[value.part.leaf.path].reshape(-1))[...] = drawn.astype(value.dtype)
    return internals.rebuilt(internals.named_leaves(params)[1], [arrays[leaf.path] for leaf in leaves])


def numbers_of(f: Callable[..., Any], params: Any, leaves: Sequence[Leaf], graph: Graph, result: Value, fixed: bool) -> dict[str, Any]:
    """What the file says of them: runs of two lengths, or why there are none."""
    if role_of(graph.inputs[0]) != "token":
        return {"why": "it is no model of tokens"}
    sizes, lacks = [leaf.array.size for leaf in leaves], not all(leaf.known for leaf in leaves)
    if lacks and sum(sizes) > MOST:
        return {"why": "it was exported without weights, which are too many to be replaced by random ones"}
    params = with_random_numbers(params, leaves, graph) if lacks else params
    words, draw, runs, why = int(result.dims[-1]), np.random.default_rng(1), [], ""
    for length in (graph.length, graph.length) if fixed else LENGTHS:
        inputs = [tokens_for(length, words, draw)[None].astype(np.int32), np.arange(length, dtype=np.int32)[None]][:len(graph.inputs)]
        try:
            runs.append(run_of(f, params, inputs, sum(sizes) <= MOST_DOUBLES))
        except Exception as error:  # a table may have fewer rows
            why = str(error).strip().partition("\n")[0] or type(error).__name__
        if len(runs) == 2:
            break
    if not runs:
        return {"why": f"JAX gave none: {why}"}
    return {"weights": digest_of(read_in(graph)), "random": lacks, "runs": runs}
