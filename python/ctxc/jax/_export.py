"""A function of JAX as a program of ctxc: traced for any number of tokens where possible."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

import jax
import numpy as np

from ctxc import _layers
from ctxc._axes import Leaf, identity, whole
from ctxc._program import Graph, Size, Unsupported, Value
from ctxc._program_file import write
from ctxc.jax import _jax_internals as internals
from ctxc.jax._masks import size_of, visible_masks
from ctxc.jax._numbers import numbers_of
from ctxc.jax._patch import path_of
from ctxc.jax._walk import Walk

# In no size of a parameter, so that the tokens' axis is known by its length where that is fixed.
LENGTHS = (13, 17, 19, 23, 29, 31, 37)
MOST_TOKENS = 8192
COLLECTIONS = ("params", "value")


@dataclass(frozen=True)
class Exported:
    """What was written: the file, the number of ops, what the layers were told by ("scopes", "parameters", "values", or "nothing":
    all is one layer), and the only number of tokens that it runs for, if it is fixed."""
    path: str
    ops: int
    layers: str
    tokens: Optional[int]


def name_of(keys: Sequence[str]) -> str:
    parts = [part for key in keys if key not in COLLECTIONS for part in _layers.spelled(key)]
    return ".".join(part for part in parts if part) or "parameter"


def leaves_of(params: Any) -> list[Leaf]:
    found, _ = internals.named_leaves(params)
    names: dict[str, int] = {}
    leaves = []
    for keys, array in found:
        name = name_of(keys)
        names[name] = names.get(name, 0) + 1
        known = not isinstance(array, jax.ShapeDtypeStruct)
        numbers = np.asarray(array) if known else np.broadcast_to(np.zeros((), array.dtype), array.shape)
        leaves.append(Leaf(name + (f"_{names[name]}" if names[name] > 1 else ""), path_of(keys), numbers, known))
    if len({leaf.known for leaf in leaves}) > 1:
        raise Unsupported("found parameters with numbers and others without; expected a tree of arrays, or of shapes alone")
    return leaves


def positions_taken(f: Callable[..., Any], params: Any, first: np.ndarray) -> bool:
    """Whether f takes a third argument, which has the tokens' positions. A function that takes any number of arguments, as `apply` of
    Flax and Haiku, is asked."""
    kinds = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty]
    if not any(p.kind is p.VAR_POSITIONAL for p in kinds):
        return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in kinds) > 2
    try:
        jax.eval_shape(f, params, first)
    except TypeError:
        return True
    return False


def examples_of(f: Callable[..., Any], params: Any, example: Any) -> list[np.ndarray]:
    given = [np.asarray(each) for each in (example if isinstance(example, (tuple, list)) and np.ndim(example[0]) > 0 else [example])]
    if given[0].ndim < 2 or given[0].shape[0] != 1:
        raise Unsupported(f"found an example of shape {given[0].shape}, expected (1, tokens) ids, or (1, tokens, …) activations")
    if len(given) == 1 and positions_taken(f, params, given[0]):
        given.append(np.arange(given[0].shape[1])[None])
    if len(given) > 2:
        raise Unsupported(f"found {len(given)} example inputs, expected ids or activations, and positions")
    return given


class Attempt:
    """The function, read for a number of tokens: a symbol with a largest value, or a number."""

    def __init__(self, f: Callable[..., Any], params: Any, leaves: Sequence[Leaf], examples: Sequence[np.ndarray], tokens: Size, length: int):
        self.graph = Graph(tokens, length)
        names = ["input_ids" if examples[0].dtype.kind in "iu" else "x", "position_ids"]
        types = [np.int32 if each.dtype.kind in "iu" else np.float32 for each in examples]
        specs = [jax.ShapeDtypeStruct((1, tokens, *each.shape[2:]), dtype) for each, dtype in zip(examples, types)]
        shapes = internals.rebuilt(internals.named_leaves(params)[1], [jax.ShapeDtypeStruct(leaf.array.shape, leaf.array.dtype) for leaf in leaves])
        traced = internals.traced(f, [shapes, *specs])
        for i, spec in enumerate(specs):
            dtype = np.dtype(np.int64) if spec.dtype.kind in "iu" else spec.dtype
            self.graph.inputs.append(Value(spec.shape, dtype, data=i == 0, name=names[i]))
        walk = Walk(self.graph)
        results = walk.run(traced, [*map(whole, leaves), *map(identity, self.graph.inputs)])
        self.result = walk.build.real(results[0])
        if self.result.call is None or not self.result.data:
            raise Unsupported("the function's first result does not depend on what it reads")
        _layers.keep_live(self.graph, self.result)


def attempts(leaves: Sequence[Leaf]) -> list[tuple[str, int]]:
    """For any number of tokens; for as many as the rows of some table; for one number."""
    sizes = {n for leaf in leaves for n in leaf.array.shape}
    tables = sorted({n for n in sizes if n >= 16}, reverse=True)[:6]
    fixed = next((n for n in LENGTHS if all(size % n for size in sizes if size)), LENGTHS[0])
    return [("any", MOST_TOKENS), *[("any", n) for n in tables if n < MOST_TOKENS], ("one", fixed)]


def read(f: Callable[..., Any], params: Any, leaves: Sequence[Leaf], examples: Sequence[np.ndarray]) -> tuple[Attempt, bool]:
    """The program, and whether its number of tokens is fixed. What ctxc does not read is said as it was found first."""
    tried, problems = attempts(leaves), []  # type: tuple[list[tuple[str, int]], list[Exception]]
    length = tried[-1][1]
    for kind, number in tried:
        tokens = internals.number_of_tokens(number) if kind == "any" else number
        try:
            return Attempt(f, params, leaves, examples, tokens, length), kind == "one"
        except Exception as problem:  # JAX says by many types that a number of tokens must be known
            problems.append(problem)
            if isinstance(problem, Unsupported) and "number of tokens" not in str(problem) and "any number" not in str(problem):
                break
    raise next((problem for problem in problems if isinstance(problem, Unsupported)), problems[-1])


def export(f: Callable[..., Any], params: Any, example: Any, path: str | os.PathLike[str]) -> Exported:
    """Writes f(params, input_ids) or f(params, input_ids, position_ids) → logits, with its parameters, as a file that ctxc reads.

    `params` is any tree of arrays, or of shapes alone, as jax.eval_shape gives them: then the file has no numbers; `example` are ids of shape (1, tokens), activations (1, tokens, …), or these and positions. Raises
    Unsupported, a ValueError, for what ctxc does not read, with the primitive and the author's line.
    """
    leaves, examples = leaves_of(params), examples_of(f, params, example)
    attempt, fixed = read(f, params, leaves, examples)
    layers = _layers.Layers(attempt.graph).place()
    numbers = numbers_of(f, params, leaves, attempt.graph, attempt.result, fixed)
    source = {"framework": "jax", "class": getattr(f, "__qualname__", type(f).__name__), "layers": layers}
    write(attempt.graph, [attempt.result], path, size_of, visible_masks(attempt.graph), source, numbers)
    return Exported(os.fspath(path), len(attempt.graph.calls), layers, attempt.graph.length if fixed else None)
