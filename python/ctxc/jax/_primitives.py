"""JAX's primitives, each as ops that ctxc reads. A primitive that is not in the table is refused by its name and line."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

import jax
import numpy as np

from ctxc._axes import Anything, Filled, Known, Part, Repeat, Tensor, identity, number_of
from ctxc._program import Value, is_known, product, same, same_sizes
from ctxc.jax import _indexing, _jax_internals as internals, _products
from ctxc.jax._patterns import summands

if TYPE_CHECKING:
    from ctxc.jax._walk import Walk

UNARY = {"exp2": "exp2", "log": "log", "log1p": "log1p", "expm1": "expm1", "tanh": "tanh", "logistic": "sigmoid", "erf": "erf",
         "erfc": "erfc", "rsqrt": "rsqrt", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "abs": "abs", "neg": "neg",
         "sign": "sign", "floor": "floor", "ceil": "ceil", "round": "round", "not": "bitwise_not"}
BINARY = {"add": "add", "add_any": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "maximum", "min": "minimum", "pow": "pow",
          "rem": "fmod", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "and": "bitwise_and", "or": "bitwise_or",
          "xor": "bitwise_xor", "atan2": "atan2"}
REFUSED = {
    "dynamic_update_slice": "writes into a tensor, as a cache of keys and values is written; export the forward without a cache",
    "scatter": "writes into a tensor (x.at[…].set), as a cache of keys and values is written; export the forward without a cache",
    "pallas_call": "is a kernel of Pallas, whose body is not read; export the function that it computes, written in jax.numpy",
    "shard_map": "divides the function over devices; export the function of one device",
    "psum": "adds over devices; export the function of one device",
    "all_gather": "reads other devices; export the function of one device",
    "custom_partitioning": "divides the function over devices; export the function of one device",
    "fft": "reads all tokens for each frequency; write a long convolution with a filter h as a product with the matrix "
           "jnp.where(i >= j, h[abs(i - j)], 0) of the tokens' numbers i and j",
    "pure_callback": "calls Python, which is not read", "io_callback": "calls Python, which is not read",
    "random_bits": "draws random numbers; export the function as it is used, without dropout",
    "random_unwrap": "draws random numbers; export the function as it is used, without dropout",
    "threefry2x32": "draws random numbers; export the function as it is used, without dropout",
}

KEYS = ("random_seed", "random_wrap", "random_split", "random_fold_in", "random_clone")
"""They make keys of random numbers, which nothing may draw."""


def key(walk: Walk, equation: Any, *_: Anything) -> Anything:
    return Known(np.zeros(equation.outvars[0].aval.shape, np.uint32))


def refused(name: str, why: str) -> Callable[..., Any]:
    def refuse(walk: Walk, equation: Any, *inputs: Anything) -> Anything:
        raise walk.unsupported(f"primitive '{name}' {why}")
    return refuse


def unary(op: str) -> Callable[..., Any]:
    return lambda walk, equation, x: walk.build.unary(op + ".default", x, equation.outvars[0].aval.dtype)


def binary(op: str) -> Callable[..., Any]:
    def write(walk: Walk, equation: Any, a: Anything, b: Anything) -> Anything:
        aval = equation.outvars[0].aval
        return walk.build.binary(op, a, b, aval.shape, aval.dtype)
    return write


# Shapes.

def dim_as_value(walk: Walk, equation: Any) -> Anything:
    return Filled(equation.params["dim"], (), np.dtype(np.int32))


def iota(walk: Walk, equation: Any, *_: Anything) -> Anything:
    p = equation.params
    if is_known(p["shape"]) and not any(map(walk.graph.counts_tokens, p["shape"])):
        return Known(internals.evaluated(equation, [])[0])
    size = p["shape"][p["dimension"]]
    line = walk.graph.emit("arange.default", (size,), p["dtype"], end=size)
    return identity(line).broadcast(p["shape"], (p["dimension"],))


def broadcast_in_dim(walk: Walk, equation: Any, x: Anything, *_: Anything) -> Anything:
    shape = equation.outvars[0].aval.shape
    if number_of(x) is not None:
        return Filled(number_of(x), tuple(shape), x.dtype)
    tensor = walk.build.tensor(x)
    return tensor.broadcast(shape, equation.params["broadcast_dimensions"])


def reshape(walk: Walk, equation: Any, x: Anything, *_: Anything) -> Anything:
    return walk.build.reshape(x, equation.outvars[0].aval.shape)


def transpose(walk: Walk, equation: Any, x: Anything) -> Anything:
    order = equation.params["permutation"]
    if isinstance(x, Known):
        return Known(x.array.transpose(order))
    return x.transposed(order) if isinstance(x, Tensor) else Filled(x.number, tuple(x.shape[i] for i in order), x.dtype)


def tile(walk: Walk, equation: Any, x: Anything) -> Anything:
    tensor = walk.build.concrete(x)
    return Tensor(tensor.base, tuple(axis if same(n, 1) else (Repeat(n), *axis) for n, axis in zip(equation.params["reps"], tensor.axes)))


def of_padded(walk: Walk, x: Value, axis: int, start: Any, stop: Any, dims: Sequence[Any]) -> Optional[Value]:
    """A slice of what is padded, as the same padded less: so a shift of the tokens is one op."""
    whole, at = x.made_by("constant_pad_nd.default"), 2 * (len(x.dims) - 1 - axis)
    if not whole or not is_known([start, x.dims[axis] - stop]) or at >= len(whole["pad"]):
        return None
    pads = list(whole["pad"])
    pads[at:at + 2] = [pads[at] - int(start), pads[at + 1] - int(x.dims[axis] - stop)]
    of: Value = whole["self"]
    return walk.graph.emit("constant_pad_nd.default", dims, x.dtype, self=of, pad=pads, value=whole["value"]) if any(pads) else of


def cut(walk: Walk, x: Tensor, axis: int, start: int, stop: int, step: int, size: Any) -> Tensor:
    """Entries start, start + step, … of an axis."""
    if same(size, x.shape[axis]) and step == 1:
        return x
    factors = x.axes[axis]
    if len(factors) == 1 and isinstance(factors[0], Repeat):
        return Tensor(x.base, (*x.axes[:axis], () if same(size, 1) else (Repeat(size),), *x.axes[axis + 1:]))
    if len(factors) != 1:
        if isinstance(x.base, Part) and is_known(x.shape):
            outer = int(x.size(factors[0]))
            inner = int(product(x.shape[axis:axis + 1])) // outer
            if start % inner == 0 and stop % inner == 0 and step == 1 and isinstance(factors[0], int):
                part = x.base.cut(factors[0], start // inner, stop // inner)
                return Tensor(part, x.axes)
        x = identity(walk.build.real(x))
        factors = x.axes[axis]
    at = factors[0]
    assert isinstance(at, int)
    if isinstance(x.base, Part) and is_known([start, stop]):
        base: Any = x.base.cut(at, start, stop, step)
    else:
        if isinstance(x.base, Part):
            x = walk.build.concrete(x)
            at = x.axes[axis][0]
            assert isinstance(at, int)
        dims = [size if i == at else n for i, n in enumerate(x.base.dims)]
        less = of_padded(walk, x.base, at, start, stop, dims) if step == 1 else None
        base = less or walk.graph.emit("slice.Tensor", dims, x.dtype, self=x.base, dim=at, start=start, end=stop, step=step)
    return Tensor(base, (*x.axes[:axis], () if same(size, 1) else (at,), *x.axes[axis + 1:]))


def sliced(walk: Walk, equation: Any, x: Anything) -> Anything:
    p, shape = equation.params, equation.outvars[0].aval.shape
    tensor = walk.build.tensor(x)
    if (rows := _indexing.first_rows(walk, tensor, shape, p["start_indices"])) is not None and p["strides"] is None:
        return rows
    for axis, (start, stop) in enumerate(zip(p["start_indices"], p["limit_indices"])):
        tensor = cut(walk, tensor, axis, start, stop, (p["strides"] or [1] * len(shape))[axis], shape[axis])
    return tensor


def split(walk: Walk, equation: Any, x: Anything) -> list[Anything]:
    sizes, axis = equation.params["sizes"], equation.params["axis"]
    tensor = walk.build.tensor(x)
    if tensor.is_parameter or len(tensor.axes[axis]) != 1 or isinstance(tensor.axes[axis][0], Repeat):
        ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
        return [cut(walk, tensor, axis, end - size, end, 1, size) for size, end in zip(sizes, ends)]
    base, at = tensor.base, tensor.axes[axis][0]
    assert isinstance(base, Value)
    dims = [[size if i == at else n for i, n in enumerate(base.dims)] for size in sizes]
    parts = walk.graph.emit_several("split_with_sizes.default", [(each, base.dtype) for each in dims], self=base, split_sizes=list(sizes),
                                    dim=at)
    return [Tensor(part, tuple(() if i == axis and same(size, 1) else a for i, a in enumerate(tensor.axes)))
            for part, size in zip(parts, sizes)]


def concatenate(walk: Walk, equation: Any, *parts: Anything) -> Anything:
    aval, axis = equation.outvars[0].aval, equation.params["dimension"]
    tensors = [walk.build.concrete(part) for part in parts]
    first = tensors[0]
    alike = all(t.axes == first.axes and len(t.axes[axis]) == 1 and isinstance(t.axes[axis][0], int) and
                same_sizes([n for i, n in enumerate(t.base.dims) if i != first.axes[axis][0]],
                           [n for i, n in enumerate(first.base.dims) if i != first.axes[axis][0]]) for t in tensors)
    if not alike:
        tensors = [Tensor(walk.build.real(t), tuple((i,) for i in range(len(aval.shape)))) for t in tensors]
        first = tensors[0]
    at = first.axes[axis][0]
    dims = [aval.shape[axis] if i == at else n for i, n in enumerate(first.base.dims)]
    made = walk.graph.emit("cat.default", dims, aval.dtype, tensors=[t.base for t in tensors], dim=at)
    return Tensor(made, first.axes) if alike else identity(made)


def stack(walk: Walk, equation: Any, *rows: Anything) -> Anything:
    aval, axis = equation.outvars[0].aval, equation.params["axis"]
    dims = [*aval.shape[:axis], 1, *aval.shape[axis + 1:]]
    parts = [walk.build.view(walk.build.real(row), dims) for row in rows]
    return identity(walk.graph.emit("cat.default", aval.shape, aval.dtype, tensors=parts, dim=axis))


def unstack(walk: Walk, equation: Any, x: Anything) -> list[Anything]:
    axis, tensor = equation.params["axis"], walk.build.tensor(x)
    return [cut(walk, tensor, axis, i, i + 1, 1, 1).without_axis(axis) for i in range(tensor.shape[axis])]


def pad(walk: Walk, equation: Any, x: Anything, value: Anything) -> Anything:
    aval, config = equation.outvars[0].aval, equation.params["padding_config"]
    if any(inner for _, _, inner in config) or number_of(value) is None:
        raise walk.unsupported("primitive 'pad' between entries, or with a number that is not known, is not read")
    pads = [each for low, high, _ in reversed(config) for each in (low, high)]
    one = walk.build.real(x)
    return identity(walk.graph.emit("constant_pad_nd.default", aval.shape, aval.dtype, self=one, pad=pads, value=number_of(value)))


def rev(walk: Walk, equation: Any, x: Anything) -> Anything:
    one = walk.build.real(x)
    return identity(walk.graph.emit("flip.default", one.dims, one.dtype, self=one, dims=list(equation.params["dimensions"])))


# Entry by entry.

def convert(walk: Walk, equation: Any, x: Anything) -> Anything:
    to = np.dtype(equation.params["new_dtype"])
    return x if to == x.dtype else walk.build.copied(x, to)


def integer_pow(walk: Walk, equation: Any, x: Anything) -> Anything:
    y, dtype = equation.params["y"], equation.outvars[0].aval.dtype
    if y == -1:
        return walk.build.unary("reciprocal.default", x, dtype)
    of = walk.build.concrete(x)
    return Tensor(walk.build.with_number("pow", of.base, y, dtype), of.axes)


def square(walk: Walk, equation: Any, x: Anything) -> Anything:
    of = walk.build.concrete(x)
    return Tensor(walk.build.with_number("pow", of.base, 2, x.dtype), of.axes)


def is_finite(walk: Walk, equation: Any, x: Anything) -> Anything:
    most = float(np.finfo(x.dtype).max)
    size = walk.build.unary("abs.default", x, x.dtype)
    return walk.build.binary("le", size, Filled(most, tuple(x.shape), x.dtype), x.shape, np.bool_)


def clamp(walk: Walk, equation: Any, low: Anything, x: Anything, high: Anything) -> Anything:
    aval = equation.outvars[0].aval
    return walk.build.binary("minimum", walk.build.binary("maximum", x, low, aval.shape, aval.dtype), high, aval.shape, aval.dtype)


def select_n(walk: Walk, equation: Any, which: Anything, *cases: Anything) -> Anything:
    aval = equation.outvars[0].aval
    if (known := number_of(which)) is not None:
        return cases[int(known)]
    if len(cases) != 2 or which.dtype != bool:
        raise walk.unsupported(f"primitive 'select_n' of {len(cases)} cases is not read; expected jnp.where")
    no, yes = cases
    if (index := _indexing.without_wrap(which, no)) is not None:
        return index
    x, y = number_of(no), number_of(yes)
    if aval.dtype == bool and x is not None and y is not None:
        return which if y else walk.build.unary("bitwise_not.default", which, np.bool_)
    return walk.build.where(which, yes, no, aval.shape, aval.dtype)


# Along axes.

def reduction(op: str) -> Callable[..., Any]:
    def write(walk: Walk, equation: Any, x: Anything, *_: Anything) -> Anything:
        aval, axes = equation.outvars[0].aval, equation.params["axes"]
        number = number_of(x)
        count = product([x.shape[axis] for axis in axes])
        if number is not None and (op != "sum.dim_IntList" or is_known([count])):
            return Filled(number * count if op == "sum.dim_IntList" else number, tuple(aval.shape), aval.dtype)
        return walk.build.reduced(op, x, axes, aval.dtype)
    return write


def along_one(op: str) -> Callable[..., Any]:
    return lambda walk, equation, x: walk.build.reduced(op, x, equation.params["axes"], equation.outvars[0].aval.dtype, several=False)


def running_sum(walk: Walk, equation: Any, x: Anything) -> Anything:
    axis, dtype = equation.params["axis"], x.dtype
    if equation.params["reverse"]:
        raise walk.unsupported(f"primitive '{equation.primitive.name}' from behind is not read")
    return walk.build.along("cumsum.default", x, axis, dtype)


def top_k(walk: Walk, equation: Any, x: Anything) -> list[Anything]:
    one = walk.build.real(x)
    results = [(variable.aval.shape, variable.aval.dtype) for variable in equation.outvars]
    made = walk.graph.emit_several("topk.default", [results[0], (results[1][0], np.int64)], self=one, k=equation.params["k"], dim=-1)
    return [identity(each) for each in made]


def sort(walk: Walk, equation: Any, *values: Anything) -> list[Anything]:
    dim, ones = equation.params["dimension"], [walk.build.real(each) for each in values]
    first = ones[0]
    ordered, order = walk.graph.emit_several("sort.default", [(first.dims, first.dtype), (first.dims, np.int64)], self=first, dim=dim,
                                             descending=False)
    rest = [walk.graph.emit("gather.default", each.dims, each.dtype, self=each, dim=dim, index=order) for each in ones[1:]]
    return [identity(each) for each in (ordered, *rest)]


# Functions that are called by a name.

def by_behaviour(walk: Walk, name: str, called: Any, inputs: Sequence[Anything]) -> Optional[Anything]:
    """Softplus, by what it computes: its name only says what to compare it with."""
    live = [i for i, each in enumerate(inputs) if isinstance(each, Tensor)]
    jaxpr, constants = internals.unpacked(called)
    if name not in ("softplus", "logaddexp") or len(live) != 1 or len(jaxpr.outvars) != 1 or constants:
        return None
    x, probe = inputs[live[0]], np.linspace(-30, 30, 61, dtype=np.float32)
    other = next((number_of(each) for each in inputs if not isinstance(each, Tensor)), 0)
    if other != 0 or not same_sizes(x.shape, jaxpr.outvars[0].aval.shape):
        return None
    function = jax.nn.softplus if name == "softplus" else lambda y: jax.numpy.logaddexp(y, 0.0)
    with jax.ensure_compile_time_eval():
        if not np.allclose(np.asarray(function(probe)), np.logaddexp(probe.astype(np.float64), 0), rtol=1e-5, atol=1e-6):
            return None
    return walk.build.unary("softplus.default", x, x.dtype)


def recurrence(walk: Walk, decay: Anything, step: Anything) -> Anything:
    """h = a h + b along axis 1."""
    tensor = walk.build.concrete(decay)
    power = tensor.base.made_by("exp.default") if isinstance(tensor.base, Value) else {}
    logarithm = Tensor(power["self"], tensor.axes) if power else walk.build.unary("log.default", decay, step.dtype)
    return by_logarithm(walk, walk.build.broadcast_to(logarithm, step.shape), step)


def by_logarithm(walk: Walk, logarithm: Anything, step: Anything) -> Anything:
    """h = eᵃ h + b along axis 1, as heads of one number: ctxc.linear_attention with the decay a."""
    shape, dtype = step.shape, step.dtype
    heads = product(shape[2:])
    flat: Callable[..., Any] = lambda value, dims: walk.build.view(walk.build.real(value), dims)
    one = walk.build.expand(walk.build.full(1.0, dtype), (shape[0], shape[1], 1, 1))
    made = walk.graph.emit("ctxc.linear_attention.default", (shape[0], shape[1], heads, 1), dtype, query=one, key=one,
                           value=flat(step, (shape[0], shape[1], heads, 1)), decay=flat(logarithm, (shape[0], shape[1], heads)))
    return identity(walk.build.view(made, shape))


def running_logsumexp(walk: Walk, equation: Any, x: Anything) -> Anything:
    powers = walk.build.unary("exp.default", x, x.dtype)
    return walk.build.unary("log.default", running_sum(walk, equation, powers), x.dtype)


def exponential(walk: Walk, equation: Any, x: Anything) -> Anything:
    """eˣ; with x = c + log Σ exp(b − c) for running sums Σ and c = Σ a, it is what the recurrence h = eᵃ h + eᵇ gives."""
    of = walk.build.concrete(x)
    for running, logarithm in summands(of.base):
        total = logarithm.made_by("log.default").get("self") if isinstance(logarithm, Value) else None
        along = total.made_by("cumsum.default") if total is not None else {}
        difference = along["self"].made_by("exp.default").get("self") if along else None
        steps, decays = difference.made_by("sub.Tensor") if difference is not None else {}, running.made_by("cumsum.default")
        if steps and decays and steps["other"] is running and decays["dim"] == along["dim"] and of.axes[1:2] == ((along["dim"],),):
            named: Callable[[Value], Tensor] = lambda value: Tensor(value, of.axes)
            return by_logarithm(walk, named(decays["self"]), walk.build.unary("exp.default", named(steps["self"]), x.dtype))
    return walk.build.unary("exp.default", of, x.dtype)


@functools.lru_cache(maxsize=None)
def table() -> dict[str, Callable[..., Any]]:
    """What writes each primitive: a function of the walk, the equation and its inputs."""
    return {
        **{name: refused(name, why) for name, why in REFUSED.items()},
        **{name: key for name in KEYS}, **{name: unary(op) for name, op in UNARY.items()}, **{name: binary(op) for name, op in BINARY.items()},
        "dim_as_value": dim_as_value, "iota": iota, "broadcast_in_dim": broadcast_in_dim, "reshape": reshape, "squeeze": reshape,
        "expand_dims": reshape, "transpose": transpose, "tile": tile, "slice": sliced, "split": split, "concatenate": concatenate,
        "stack": stack, "unstack": unstack, "pad": pad, "rev": rev, "convert_element_type": convert, "integer_pow": integer_pow, "square": square, "is_finite": is_finite,
        "clamp": clamp, "select_n": select_n, "reduce_sum": reduction("sum.dim_IntList"), "reduce_max": reduction("amax.default"),
        "reduce_min": reduction("amin.default"), "argmax": along_one("argmax.default"), "reduce_and": along_one("all.dim"),
        "reduce_or": along_one("any.dim"), "reduce_prod": along_one("prod.dim_int"), "cumsum": running_sum, "cumlogsumexp": running_logsumexp,
        "exp": exponential, "top_k": top_k, "sort": sort, "dynamic_slice": _indexing.dynamic_slice, "gather": _indexing.gather,
        "dot_general": _products.dot_general, "conv_general_dilated": _products.convolution,
    }
