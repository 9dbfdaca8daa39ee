"""All of JAX that is private or changes between its releases: what a traced function consists of, and where it came from.

It was run with jax 0.6 and 0.10. Another release needs at most changes here.
"""

from __future__ import annotations

import contextlib
import operator
import re
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import jax
import numpy as np
from jax import export as jax_export

from ctxc._program import Place, Size

CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr", "remat2": "jaxpr",
         "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr",
         "custom_lin": "call_jaxpr", "composite": "jaxpr"}
"""Primitives that call a function, and the parameter that has it."""
SAME = {"stop_gradient", "copy", "copy_p", "sharding_constraint", "optimization_barrier", "reduce_precision", "name", "pvary", "pcast",
        "device_put", "mesh_cast", "reshard", "layout_constraint"}
"""Primitives that give what they get."""
RECURRENCE = "ctxc_recurrence"
LIBRARIES = ("jax", "jaxlib", "flax", "equinox", "haiku", "jaxtyping", "einops", "ctxc")


def traced(f: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """The closed jaxpr of f. JAX remembers what it has traced of a function, and this must be traced anew."""
    def anew(*inputs: Any) -> Any:
        return f(*inputs)
    with recurrences_kept():
        return jax.jit(anew).trace(*specs).jaxpr


def number_of_tokens(most: int) -> Size:
    """A number of tokens that is not known while tracing."""
    return jax_export.symbolic_shape("t", constraints=["t >= 2", f"t <= {most}"])[0]


SYMBOLIC = type(number_of_tokens(64))
"""The type of sizes that depend on the number of tokens."""


def arithmetic(name: str, numbers: Sequence[Any]) -> Any:
    """A primitive's result for sizes; None where it is none."""
    known: dict[str, Callable[..., Any]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul,
                                            "convert_element_type": lambda size: size}
    return known[name](*numbers) if name in known else None


def at_tokens(size: Size, tokens: int) -> int:
    """A size for so many tokens."""
    return int(size) if isinstance(size, (int, np.integer)) else int(size._evaluate({"t": tokens}))


def unpacked(called: Any) -> tuple[Any, list[Any]]:
    """A jaxpr, and its constants."""
    return getattr(called, "jaxpr", called), list(getattr(called, "consts", []))


def is_literal(variable: Any) -> bool:
    return hasattr(variable, "val")


def is_dropped(variable: Any) -> bool:
    return type(variable).__name__ == "DropVar"


def evaluated(equation: Any, arrays: Sequence[Any]) -> list[np.ndarray]:
    """What a primitive gives for numbers."""
    with jax.ensure_compile_time_eval():
        made = equation.primitive.bind(*map(jax.numpy.asarray, arrays), **equation.params)
    return [np.asarray(each) for each in (made if equation.primitive.multiple_results else [made])]


def scope_of(equation: Any) -> tuple[str, ...]:
    """The named scopes around it, without those of transformations."""
    names = []
    for part in str(equation.source_info.name_stack).split("/"):
        part = re.sub(r"^(?:\w+\()+|\)+$", "", part)
        names += [part] if part else []
    return tuple(names)


def place_of(equation: Any, outer: tuple[str, ...], before: Place) -> Place:
    """The author's line: the innermost one outside of JAX's libraries. Scopes inside of a call are relative to it."""
    from jax._src import source_info_util
    scope = outer + scope_of(equation)
    traceback = equation.source_info.traceback
    try:
        frames = list(source_info_util.user_frames(traceback))
    except AttributeError:  # before 0.7 it took the whole of source_info
        frames = list(source_info_util.user_frames(equation.source_info))
    for frame in frames:
        if not is_of_library(frame.file_name):
            return Place(scope, frame.file_name, frame.start_line, frame.function_name)
    return Place(scope, before.file, before.line, before.function)


def is_of_library(file: str) -> bool:
    parts = Path(file).parts
    behind = next((i for i, part in enumerate(parts) if part in ("site-packages", "dist-packages")), None)
    return behind is not None and behind + 1 < len(parts) and parts[behind + 1] in LIBRARIES


def ctxc_recurrence(decay: Any, step: Any) -> Any:
    return decay, step  # what stands for a scan; its body is not read


def is_linear(combine: Callable[..., Any], elements: Any) -> bool:
    """Whether combine is (a, b), (c, d) ↦ (a c, c b + d), which it is asked with numbers."""
    with jax.ensure_compile_time_eval():
        shape = [size if isinstance(size, int) else 1 for size in elements[1].shape]
        a, b, c, d = np.random.default_rng(0).uniform(0.5, 1.5, (4, *shape)).astype(np.float32)
        try:
            decay, state = combine((a, b), (c, d))
        except Exception:
            return False
        return bool(np.shape(state) == b.shape and np.allclose(decay, a * c, rtol=1e-5) and np.allclose(state, c * b + d, rtol=1e-5))


@contextlib.contextmanager
def recurrences_kept() -> Iterator[None]:
    """Inside the `with` block, an associative scan of h = a h + b along the tokens is traced as one call."""
    scan, kept = jax.lax.associative_scan, jax.jit(ctxc_recurrence)

    def associative_scan(combine: Any, elements: Any, reverse: bool = False, axis: int = 0) -> Any:
        pair = isinstance(elements, (tuple, list)) and len(elements) == 2 and not reverse and axis == 1
        if pair and elements[0].ndim == elements[1].ndim and is_linear(combine, elements):
            return kept(*elements)
        return scan(combine, elements, reverse=reverse, axis=axis)
    jax.lax.associative_scan = associative_scan
    try:
        yield
    finally:
        jax.lax.associative_scan = scan


def in_doubles() -> Any:
    """Inside of this context, JAX computes with numbers of 64 bits."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # before 0.8
    return enable_x64()


def named_leaves(tree: Any) -> tuple[list[tuple[list[str], Any]], Any]:
    """The leaves of a tree of parameters with their paths, and the tree's form."""
    leaves, form = jax.tree_util.tree_flatten_with_path(tree)

    def text(key: Any) -> str:
        return str(next((getattr(key, each) for each in ("key", "name", "idx") if hasattr(key, each)), key)).strip(".")
    return [([text(key) for key in path], leaf) for path, leaf in leaves], form


def rebuilt(form: Any, leaves: Sequence[Any]) -> Any:
    return jax.tree_util.tree_unflatten(form, [jax.numpy.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves])
