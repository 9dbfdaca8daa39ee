"""Reads a traced function: one equation after the other, calls and loops inlined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional, Sequence

import numpy as np

from ctxc._axes import Anything, Filled, Known, Part, Tensor, filled, identity, number_of
from ctxc._program import Graph, Place, Unsupported, is_known, product, same_sizes
from ctxc.jax import _jax_internals as internals
from ctxc.jax._build import Builder
from ctxc.jax._complex import Complex, in_pairs, is_complex

MOST_FOLDED = 1 << 20  # numbers of a constant that is computed while reading
MOST_STEPS = 1024  # of a loop
UNREAD = Known(np.zeros(()))


class Walk:
    def __init__(self, graph: Graph):
        from ctxc.jax._primitives import REFUSED, table
        self.graph, self.build = graph, Builder(graph)
        self.turned: dict[Any, list[int]] = {}  # the order in which a variable's axes are taken at once
        self.table, self.refused, self.outer = table(), REFUSED, ()  # type: tuple[dict[str, Any], dict[str, str], tuple[str, ...]]

    def run(self, called: Any, arguments: Sequence[Anything], place: Optional[Place] = None) -> list[Anything]:
        """What a function gives for these arguments; its lines are the author's, or all that of `place`."""
        jaxpr, constants = internals.unpacked(called)
        values: dict[Any, Anything] = dict(zip(jaxpr.constvars, [Known(np.asarray(each)) for each in constants]))
        values.update(zip(jaxpr.invars, arguments))

        def read(variable: Any) -> Anything:
            return Known(np.asarray(variable.val)) if internals.is_literal(variable) else values[variable]
        outer = self.outer
        self.turned.update({e.invars[0]: list(e.params["permutation"]) for e in jaxpr.eqns if e.primitive.name == "transpose"
                            if not internals.is_literal(e.invars[0])})
        for equation in jaxpr.eqns:
            if all(map(internals.is_dropped, equation.outvars)):
                continue
            self.graph.place = place or internals.place_of(equation, outer, self.graph.place)
            self.outer = self.graph.place.scope
            made = self.equation(equation, [read(variable) for variable in equation.invars])
            for variable, each in zip(equation.outvars, made):
                if isinstance(each, Tensor) and not same_sizes(each.shape, variable.aval.shape):
                    each = self.build.broadcast_to(each, variable.aval.shape)
                values[variable] = each
        self.outer = outer
        return [read(variable) for variable in jaxpr.outvars]

    def equation(self, equation: Any, inputs: list[Anything]) -> Sequence[Anything]:
        name = equation.primitive.name
        if name in internals.CALLS:
            return self.call(equation, equation.params[internals.CALLS[name]], inputs)
        if name in internals.SAME:
            return inputs
        loops = {"scan": self.scan, "while": self.loop, "cond": self.branch}
        if name in loops:
            return loops[name](equation, inputs)
        if not name.startswith("random_") and (known := self.folded(equation, inputs)) is not None:
            return known
        if name not in self.refused and any(map(is_complex, [*inputs, *[variable.aval for variable in equation.outvars]])):
            return in_pairs(self, equation, inputs)
        if name not in self.table:
            raise self.unsupported(f"primitive '{name}' is not read")
        made = self.table[name](self, equation, *inputs)
        return made if isinstance(made, list) else [made]

    def unsupported(self, what: str) -> Unsupported:
        return Unsupported(f"{self.graph.place}: {what}")

    def folded(self, equation: Any, inputs: Sequence[Anything]) -> Optional[list[Anything]]:
        """The results, if they are known numbers that have no axis of tokens."""
        shapes = [variable.aval.shape for variable in equation.outvars]
        if not inputs or any(isinstance(each, (Tensor, Complex)) for each in inputs):
            return None
        of_tokens = any(self.graph.counts_tokens(size) for shape in shapes for size in shape)
        small = is_known([size for each in inputs for size in each.shape]) and \
            sum(int(product(each.shape)) for each in inputs) <= MOST_FOLDED
        if not of_tokens and small and is_known([n for shape in shapes for n in shape]) and \
                not any(isinstance(number_of(each), internals.SYMBOLIC) for each in inputs):
            arrays = [each.array if isinstance(each, Known) else np.full(each.shape, number_of(each), each.dtype) for each in inputs]
            return [Known(array) for array in internals.evaluated(equation, arrays)]
        numbers = [number_of(each) for each in inputs]
        if equation.primitive.name not in ENTRYWISE or any(number is None for number in numbers):
            return None
        if equation.primitive.name == "select_n" and not isinstance(numbers[0], internals.SYMBOLIC):
            return [inputs[1 + bool(numbers[0])]]
        aval = equation.outvars[0].aval
        if any(isinstance(number, internals.SYMBOLIC) for number in numbers):
            made = internals.arithmetic(equation.primitive.name, numbers)
            if made is None:
                raise self.unsupported(f"'{equation.primitive.name}' of the number of tokens is not read")
            return [Filled(made, tuple(aval.shape), aval.dtype)]
        made = internals.evaluated(equation, [np.asarray(n, each.dtype) for n, each in zip(numbers, inputs)])[0]
        return [filled(made.item(), aval.shape, aval.dtype)]

    # Calls and loops.

    def call(self, equation: Any, called: Any, inputs: list[Anything]) -> Sequence[Anything]:
        from ctxc.jax._primitives import by_behaviour, recurrence
        name = str(equation.params.get("name", ""))
        if name == internals.RECURRENCE:
            return [inputs[0], recurrence(self, inputs[0], inputs[1])]
        known = by_behaviour(self, name, called, inputs)
        return [known] if known is not None else self.run(called, inputs)

    def scan(self, equation: Any, inputs: list[Anything]) -> Sequence[Anything]:
        p = equation.params
        first, kept, length = p["num_consts"], p["num_carry"], p["length"]
        if not isinstance(length, int):
            raise self.unsupported("a scan over the tokens is not read for any number of them; write it as jax.lax.associative_scan")
        if length > MOST_STEPS:
            raise self.unsupported(f"found a scan of {length} steps, expected at most {MOST_STEPS}")
        constants, carry, rows = inputs[:first], inputs[first:first + kept], inputs[first + kept:]
        stacked = [each for each in rows if isinstance(each, Tensor) and each.is_parameter]
        stem, outer, place = common_stem([each.base.leaf.name for each in stacked]), self.outer, self.graph.place
        made: dict[int, Sequence[Anything]] = {}
        for i in (reversed(range(length)) if p["reverse"] else range(length)):
            self.outer = (*outer, f"{stem or 'layers'}.{i}") if stacked else outer
            self.graph.place = Place(self.outer, place.file, place.line, place.function)
            results = self.run(p["jaxpr"], [*constants, *carry, *[self.row(each, i, stem) for each in rows]])
            carry, made[i] = list(results[:kept]), results[kept:]
        self.outer, self.graph.place = outer, place
        return [*carry, *[UNREAD if internals.is_dropped(variable) else self.stack([made[i][k] for i in range(length)], variable.aval)
                          for k, variable in enumerate(equation.outvars[kept:])]]

    def row(self, value: Anything, i: int, stem: str) -> Anything:
        """Row i of what is stacked; of a parameter, the layer's own."""
        if isinstance(value, Known):
            return Known(value.array[i])
        if isinstance(value, Filled):
            return Filled(value.number, value.shape[1:], value.dtype)
        if isinstance(value, Complex):
            real, imag = (None if part is None else self.row(part, i, stem) for part in (value.real, value.imag))
            return Complex(real, imag, value.shape[1:], value.dtype)
        if isinstance(value.base, Part) and len(value.axes[0]) == 1 and isinstance(value.axes[0][0], int):
            layer = value.base.element[1] < 0
            part = value.base.cut(value.axes[0][0], i, i + 1, note=not layer)
            if layer:
                part = replace(part, element=(stem, i))
            return Tensor(part, value.axes[1:])
        one = self.build.real(value)
        return identity(self.graph.emit("select.int", one.dims[1:], one.dtype, self=one, dim=0, index=i))

    def stack(self, values: Sequence[Anything], aval: Any) -> Anything:
        rows = [self.build.view(self.build.real(each), (1, *each.shape)) for each in values]
        return identity(self.graph.emit("cat.default", aval.shape, aval.dtype, tensors=rows, dim=0))

    def branch(self, equation: Any, inputs: list[Anything]) -> Sequence[Anything]:
        which = number_of(inputs[0])
        if which is None:
            raise self.unsupported("primitive 'cond' chooses by what the model reads; expected a choice that is known while tracing, or "
                                   "jnp.where of both results")
        branches = equation.params["branches"]
        return self.run(branches[min(max(int(which), 0), len(branches) - 1)], inputs[1:])

    def loop(self, equation: Any, inputs: list[Anything]) -> Sequence[Anything]:
        p = equation.params
        a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        carry = inputs[b:]
        for _ in range(MOST_STEPS):
            goes = number_of(self.run(p["cond_jaxpr"], [*inputs[:a], *carry])[0])
            if goes is None:
                raise self.unsupported("primitive 'while' ends by what the model reads; expected a number of steps that is known while "
                                       "tracing")
            if not goes:
                return carry
            carry = list(self.run(p["body_jaxpr"], [*inputs[a:b], *carry]))
        raise self.unsupported(f"primitive 'while' takes more than {MOST_STEPS} steps")


def common_stem(names: Sequence[str]) -> str:
    """What the names of stacked parameters have in common: the list's own name."""
    parts = [name.split(".") for name in names]
    common: list[str] = []
    for column in zip(*[each[:-1] for each in parts]):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    return ".".join(common)


ENTRYWISE = {"add", "sub", "mul", "div", "max", "min", "pow", "rem", "neg", "exp", "log", "sqrt", "rsqrt", "integer_pow", "square", "eq", "ne",
             "lt", "le", "gt", "ge", "and", "or", "not", "xor", "abs", "sign", "convert_element_type", "floor", "tanh", "logistic", "select_n",
             "clamp", "sin", "cos", "log1p", "expm1", "erf", "exp2"}
