"""Complex numbers, as pairs of real ones: what a primitive computes of them is traced as a function of the pairs, and read as any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

import jax
import numpy as np

from ctxc._axes import Anything, Filled, Known, Tensor, number_of
from ctxc._program import Size
from ctxc.jax import _jax_internals as internals

if TYPE_CHECKING:
    from ctxc.jax._walk import Walk

Part = Optional[Any]
"""A real or imaginary part; None where it is zero."""
Pair = tuple[Part, Part]


@dataclass(frozen=True)
class Complex:
    real: Optional[Anything]
    imag: Optional[Anything]
    shape: tuple[Size, ...]
    dtype: Any


def plus(x: Part, y: Part) -> Part:
    return y if x is None else x if y is None else x + y


def less(x: Part, y: Part) -> Part:
    return x if y is None else -y if x is None else x - y


def conj(x: Pair) -> Pair:
    return x[0], less(None, x[1])


def product_by(times: Callable[[Any, Any], Any]) -> Callable[[Pair, Pair], Pair]:
    """The pair of a product, by the product of real numbers."""
    def of_pairs(x: Pair, y: Pair) -> Pair:
        real: Callable[[Part, Part], Part] = lambda a, b: None if a is None or b is None else times(a, b)
        return less(real(x[0], y[0]), real(x[1], y[1])), plus(real(x[0], y[1]), real(x[1], y[0]))
    return of_pairs


multiplied = product_by(lambda a, b: a * b)


def square_of_length(x: Pair) -> Any:
    return plus(*[None if part is None else part * part for part in x])


def quotient(x: Pair, y: Pair) -> Pair:
    if y[1] is None:
        return tuple(None if part is None else part / y[0] for part in x)  # type: ignore[return-value]
    real, imag = multiplied(x, conj(y))
    return quotient((real, imag), (square_of_length(y), None))


def exponential(x: Pair) -> Pair:
    if x[1] is None:
        return jax.lax.exp(x[0]), None
    turned = jax.lax.cos(x[1]), jax.lax.sin(x[1])
    return turned if x[0] is None else multiplied((jax.lax.exp(x[0]), None), turned)


RULES: dict[str, Callable[..., Pair]] = {
    "complex": lambda x, y: (x[0], y[0]), "real": lambda x: (x[0], None), "imag": lambda x: (x[1], None), "conj": conj,
    "neg": lambda x: (less(None, x[0]), less(None, x[1])), "add": lambda x, y: (plus(x[0], y[0]), plus(x[1], y[1])),
    "sub": lambda x, y: (less(x[0], y[0]), less(x[1], y[1])), "mul": multiplied, "div": quotient, "exp": exponential,
    "abs": lambda x: (jax.lax.sqrt(square_of_length(x)), None), "square": lambda x: multiplied(x, x)}
BY_PARTS = {"reshape", "broadcast_in_dim", "transpose", "slice", "squeeze", "expand_dims", "split", "concatenate", "gather",
            "dynamic_slice", "reduce_sum", "rev", "tile", "convert_element_type"}
"""Primitives that give the real part of the real parts, and the imaginary part of the imaginary ones."""


def is_complex_type(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "c"


def is_complex(value: Any) -> bool:
    return is_complex_type(value.dtype)


def parts_of(value: Any) -> tuple[Optional[Anything], Optional[Anything]]:
    if isinstance(value, Complex):
        return value.real, value.imag
    if not is_complex(value):
        return value, None
    array = value.array if isinstance(value, Known) else np.asarray(value.number)
    real, imag = (None if not part.any() else Known(part) if isinstance(value, Known) else Filled(part.item(), value.shape, part.dtype)
                  for part in (array.real, array.imag))
    return real, imag


def in_pairs(walk: Walk, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """The results of a primitive that reads or gives complex numbers."""
    name, params = equation.primitive.name, equation.params
    if name not in RULES and name not in BY_PARTS and name != "dot_general" or any(isinstance(x, Tensor) and is_complex(x) for x in inputs):
        raise walk.unsupported(f"primitive '{name}' of complex numbers is not read; expected the same of their real and imaginary parts")
    real_types = {key: np.finfo(each).dtype if is_complex_type(each) else each for key, each in params.items()}
    is_index = [np.dtype(each.dtype).kind in "iub" for each in inputs]
    pairs = [parts_of(each) for each in inputs]
    made: list[Pair] = []

    def of_reals(*parts: Any) -> Any:
        results = equation.primitive.bind(*parts, **real_types)
        return results if equation.primitive.multiple_results else [results]

    def by_parts(given: Sequence[Pair]) -> list[Pair]:
        both = []
        for k in (0, 1):
            parts = [pair[0] if index else pair[k] for pair, index in zip(given, is_index)]
            if all(part is None or index for part, index in zip(parts, is_index)):
                both.append([None] * len(equation.outvars))
            else:
                zero = [jax.numpy.zeros_like(pair[1 - k]) if part is None else part for part, pair in zip(parts, given)]
                both.append(of_reals(*zero))
        return list(zip(*both))

    def function(*present: Any) -> list[Any]:
        rest = iter(present)
        given = [(None if real is None else next(rest), None if imag is None else next(rest)) for real, imag in pairs]
        rule = RULES.get(name) or product_by(lambda *parts: of_reals(*parts)[0])
        made.extend(by_parts(given) if name in BY_PARTS else [rule(*given)])
        return [part for pair in made for part in pair if part is not None]
    present = [part for pair in pairs for part in pair if part is not None]
    called = internals.traced(function, [jax.ShapeDtypeStruct(part.shape, part.dtype) for part in present])
    found = iter(walk.run(called, present, walk.graph.place))
    results: list[Any] = []
    for pair, variable in zip(made, equation.outvars):
        shape, dtype = tuple(variable.aval.shape), variable.aval.dtype
        real, imag = (None if part is None else next(found) for part in pair)
        none = Filled(0.0, shape, dtype)
        results.append(Complex(real, imag, shape, dtype) if is_complex_type(dtype) else none if real is None else real)
    return results
