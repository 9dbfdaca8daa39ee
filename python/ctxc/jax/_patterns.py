"""What JAX spells out, as the one op that it is: softmax, mean, variance, GELU, and norms whose factors stand in another order.

Each pattern is told by what it computes, not by its author's names. It gets the operands of a call that is about to be
written, and gives the value that takes its place, or None.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Union

from ctxc._program import Graph, Value, product, same_sizes

Operand = Union[Value, bool, int, float, None]
Pattern = Callable[[Graph, Any, Any], Optional[Value]]


def near(found: Any, number: float) -> bool:
    """Whether a constant is this one, as people round it."""
    return isinstance(found, (int, float)) and abs(found - number) <= 1e-3 * abs(number)


def times(value: Operand, number: float) -> Any:
    """y of y · number, or of y / (1 / number)."""
    if not isinstance(value, Value):
        return None
    for op, inverse in (("mul.Tensor", False), ("div.Tensor", True)):
        made = value.made_by(op)
        by = made.get("other")
        if isinstance(by, (int, float)) and by and near(1 / by if inverse else by, number):
            return made["self"]
    if number == -1 and (made := value.made_by("neg.default")):
        return made["self"]
    if number < 0 and (made := value.made_by("neg.default")):
        return times(made["self"], -number)
    made = value.made_by("mul.Tensor", "div.Tensor")
    inner = made["self"].made_by("neg.default") if made and number < 0 else {}
    return inner["self"] if inner and times(value, -number) is made["self"] else None


def factors(value: Operand) -> list[tuple[Value, Value]]:
    made = value.made_by("mul.Tensor") if isinstance(value, Value) else {}
    if not made or not isinstance(made["other"], Value):
        return []
    return [(made["self"], made["other"]), (made["other"], made["self"])]


def summands(value: Operand) -> list[tuple[Value, Any]]:
    made = value.made_by("add.Tensor") if isinstance(value, Value) else {}
    if not made:
        return []
    pairs = [(made["self"], made["other"])]
    return pairs + [(made["other"], made["self"])] if isinstance(made["other"], Value) else pairs


def squared(value: Operand) -> Any:
    """x of x²."""
    power = value.made_by("pow.Tensor_Scalar") if isinstance(value, Value) else {}
    if power and power["exponent"] == 2:
        return power["self"]
    return next((a for a, b in factors(value) if a is b), None)


def emitted(graph: Graph, op: str, like: Value, dims: Any, /, **arguments: Any) -> Value:
    return graph.emit(op, dims, like.dtype, **arguments)


def mean(graph: Graph, total: Value, by: float) -> Optional[Value]:
    """Σ x / n, and the variance where x is a squared distance from a mean."""
    made = total.made_by("sum.dim_IntList")
    if not made or by != product([made["self"].dims[axis] for axis in made["dim"]]):
        return None
    x, along = made["self"], {"dim": made["dim"], "keepdim": True}
    centred = squared(x)
    difference = centred.made_by("sub.Tensor") if centred is not None else {}
    if difference and isinstance(difference["other"], Value):
        average = difference["other"].made_by("mean.dim")
        if average and average["self"] is difference["self"] and average["dim"] == made["dim"]:
            return emitted(graph, "var.correction", x, total.dims, self=difference["self"], dim=made["dim"], correction=0, keepdim=True)
    return emitted(graph, "mean.dim", x, total.dims, self=x, **along)


def mean_by_quotient(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    return None if isinstance(b, Value) else mean(graph, a, b)


def mean_by_product(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    made = a.made_by("sum.dim_IntList") if isinstance(b, float) else {}
    count = product([made["self"].dims[axis] for axis in made["dim"]]) if made else 1
    return mean(graph, a, count) if isinstance(count, int) and count > 1 and abs(b * count - 1) < 1e-6 else None


def variance(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """mean x² − (mean x)²."""
    whole, x = a.made_by("mean.dim"), squared(b)
    average = x.made_by("mean.dim") if x is not None else {}
    if not whole or not average or squared(whole["self"]) is not average["self"] or whole["dim"] != average["dim"]:
        return None
    return emitted(graph, "var.correction", a, a.dims, self=average["self"], dim=average["dim"], correction=0, keepdim=True)


def added_to_scores(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """x − c = x + (−c), where c has a number for each pair of tokens, as a slope by their distance has."""
    if not isinstance(b, Value) or not a.data or b.data or len(b.dims) < 2 or not all(map(graph.counts_tokens, b.dims[-2:])):
        return None
    return emitted(graph, "add.Tensor", a, a.dims, self=a, other=emitted(graph, "neg.default", b, b.dims, self=b))


def no_limit(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """max(variance, 0)."""
    return a if b == 0 and not isinstance(b, Value) and a.made_by("var.correction") else None


def softmax(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """eˣ / Σ eˣ, where x may be without its largest entry."""
    power, total = a.made_by("exp.default"), b.made_by("sum.dim_IntList") if isinstance(b, Value) else {}
    if not power or not total or total["self"] is not a or len(total["dim"]) != 1:
        return None
    x = power["self"]
    less = x.made_by("sub.Tensor")
    most = less["other"].made_by("amax.default") if less and isinstance(less["other"], Value) else {}
    if most and most["self"] is less["self"] and most["dim"] == total["dim"]:
        x = less["self"]
    return emitted(graph, "softmax.int", a, a.dims, self=x, dim=total["dim"][0])


def scaled_norm(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """(s x) / √v = (x / √v) s, with a parameter s."""
    if not isinstance(b, Value) or not b.data or not b.made_by("sqrt.default"):
        return None
    for x, scale in factors(a):
        if x.data and not scale.data and same_sizes(x.dims, a.dims):
            normed = emitted(graph, "div.Tensor", x, x.dims, self=x, other=b)
            return emitted(graph, "mul.Tensor", a, a.dims, self=normed, other=scale)
    return None


def norm_scaled(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """x (r s) = (x r) s, with the inverse of a length r and a parameter s."""
    if not isinstance(b, Value):
        return None
    for x, factor in ((a, b), (b, a)):
        for inverse, scale in factors(factor):
            inner = inverse.made_by("view.default").get("self", inverse)
            if x.data and inverse.data and not scale.data and inner.made_by("rsqrt.default") and len(x.dims) >= len(inverse.dims):
                normed = emitted(graph, "mul.Tensor", x, x.dims, self=x, other=inverse)
                return emitted(graph, "mul.Tensor", x, x.dims, self=normed, other=scale)
    return None


def gelu_of(x: Value, inner: Operand) -> Optional[str]:
    """Which form, where x · inner is 2 GELU(x)."""
    if isinstance(inner, Value) and (made := inner.made_by("erfc.default")):
        return "none" if times(made["self"], -1 / math.sqrt(2)) is x else None
    one = next((a for a, b in summands(inner) if not isinstance(b, Value) and b == 1), None)
    if one is None:
        return None
    if made := one.made_by("erf.default"):
        return "none" if times(made["self"], 1 / math.sqrt(2)) is x else None
    made = one.made_by("tanh.default")
    for first, second in summands(times(made["self"], math.sqrt(2 / math.pi))) if made else []:
        cube = times(second, 0.044715)
        if first is x and cube is not None and is_cube(cube, x):
            return "tanh"
    return None


def is_cube(value: Value, x: Value) -> bool:
    power = value.made_by("pow.Tensor_Scalar")
    return bool(power and power["exponent"] == 3 and power["self"] is x) or \
        any(a is x and squared(b) is x for a, b in factors(value))


def gelu(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """½ x (1 + erf(x / √2)) and its like, in any order of the factors."""
    pairs: list[tuple[Any, Any]] = []
    if not isinstance(b, Value):
        pairs = factors(a) if near(b, 0.5) else []
    else:
        for x, inner in ((a, b), (b, a)):
            pairs += [(x, times(inner, 0.5)), (times(x, 0.5), inner)]
    for x, inner in pairs:
        form = gelu_of(x, inner) if isinstance(x, Value) else None
        if form:
            return emitted(graph, "gelu.default", x, x.dims, self=x, approximate=form)
    return None


def inverse_root(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    made = a.made_by("sqrt.default")
    return emitted(graph, "rsqrt.default", a, a.dims, self=made["self"]) if made else None


def flag(graph: Graph, a: Value, b: Any) -> Optional[Value]:
    """A flag that was made a number, ≠ 0."""
    made = a.made_by("_to_copy.default") if not isinstance(b, Value) and b == 0 else {}
    return made["self"] if made and made["self"].dtype == bool else None


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "reciprocal.default": (inverse_root,), "div": (mean_by_quotient, softmax, scaled_norm), "mul": (mean_by_product, norm_scaled, gelu),
    "sub": (variance, added_to_scores), "maximum": (no_limit,), "ne": (flag,)}


def matched(graph: Graph, op: str, a: Value, b: Operand = None) -> Optional[Value]:
    """What takes the place of op(a, b)."""
    return next((made for pattern in PATTERNS.get(op, ()) if (made := pattern(graph, a, b)) is not None), None)
