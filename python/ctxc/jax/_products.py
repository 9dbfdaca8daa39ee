"""Products: of a value with a parameter, as one matrix of it; of two values, with the asking tokens as rows; convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from ctxc._axes import Anything, Part, Tensor, identity
from ctxc._program import Size, product, same
from ctxc.jax._decays import retained

if TYPE_CHECKING:
    from ctxc.jax._walk import Walk

MOST_EXPERTS = 64  # matrices of a stack that are written one by one
SMALL = 16  # entries of one token that are multiplied and added without a product of matrices


def without(axes: Sequence[int], at: int) -> list[int]:
    return [axis - (axis > at) for axis in axes]


def linear(walk: Walk, x: Anything, w: Tensor, cx: Sequence[int], cw: Sequence[int]) -> Tensor:
    """x W over the axes cx of x and cw of a parameter: [axes of x, axes of W]."""
    fx, fw = [i for i in range(len(x.shape)) if i not in cx], [i for i in range(len(w.shape)) if i not in cw]
    pairs = sorted(zip(cx, cw))
    inner = int(product([w.shape[j] for _, j in pairs]))
    rows = walk.build.concrete(x).transposed([*fx, *[i for i, _ in pairs]])
    left = walk.build.real(walk.build.reshape(rows, [*[x.shape[i] for i in fx], inner]))
    columns = [w.shape[i] for i in fw]
    matrix = walk.build.real(w.transposed([*[j for _, j in pairs], *fw]), (inner, int(product(columns))))
    made = walk.graph.emit("matmul.default", [*left.dims[:-1], matrix.dims[1]], left.dtype, self=left, other=matrix)
    shape = [*left.dims[:-1], *columns]
    return walk.build.reshape(identity(made), shape) if columns else identity(walk.build.view(made, shape))  # type: ignore[return-value]


def by_experts(walk: Walk, x: Anything, w: Tensor, cx: Sequence[int], cw: Sequence[int], bx: int, bw: int) -> Tensor:
    """A matrix of a stack for each entry of an axis of x: [axes of x, that axis, axes of W]."""
    parts = []
    for e in range(w.shape[bw]):
        assert isinstance(w.base, Part)
        (axis,) = w.axes[bw]
        matrix = Tensor(w.base.cut(axis, e, e + 1), (*w.axes[:bw], *w.axes[bw + 1:]))  # type: ignore[arg-type]
        one = walk.build.real(x)
        dims = [n for i, n in enumerate(one.dims) if i != bx]
        of_one = identity(walk.graph.emit("select.int", dims, one.dtype, self=one, dim=bx, index=e))
        parts.append(linear(walk, of_one, matrix, without(cx, bx), without(cw, bw)))
    free = len(x.shape) - len(cx) - 1
    rows = [walk.build.view(walk.build.real(part), [*part.shape[:free], 1, *part.shape[free:]]) for part in parts]
    dims = [len(parts) if i == free else n for i, n in enumerate(rows[0].dims)]
    return identity(walk.graph.emit("cat.default", dims, rows[0].dtype, tensors=rows, dim=free))


def dot_general(walk: Walk, equation: Any, a: Anything, b: Anything) -> Anything:
    (ca, cb), (ba, bb) = equation.params["dimension_numbers"]
    free: Callable[..., Any] = lambda v, c, batch: [i for i in range(len(v.shape)) if i not in (*c, *batch)]
    fa, fb = free(a, ca, ba), free(b, cb, bb)
    wanted = [("batch", i) for i in range(len(ba))] + [("a", i) for i in range(len(fa))] + [("b", i) for i in range(len(fb))]
    for x, w, cx, cw, bx, bw, fx, fw, names in ((a, b, ca, cb, ba, bb, fa, fb, "ab"), (b, a, cb, ca, bb, ba, fb, fa, "ba")):
        if not isinstance(w, Tensor) or not w.is_parameter or not isinstance(x, Tensor) or x.is_parameter or not cx:
            continue
        if not bw:
            made = linear(walk, x, w, cx, cw)
            has = [(names[0], i) for i in range(len(fx))] + [(names[1], i) for i in range(len(fw))]
            return made.transposed([has.index(name) for name in wanted])
        if len(bw) == 1 and w.shape[bw[0]] <= MOST_EXPERTS and len(w.axes[bw[0]]) == 1:
            made = by_experts(walk, x, w, cx, cw, bx[0], bw[0])
            has = [(names[0], i) for i in range(len(fx))] + [("batch", 0)] + [(names[1], i) for i in range(len(fw))]
            return made.transposed([has.index(name) for name in wanted])
    return Product(walk, (a, b), (ca, cb), (ba, bb), (fa, fb), equation.outvars[0].aval, walk.turned.get(equation.outvars[0])).made(wanted)


class Product:
    """Of two values, or of one with itself. `order` says how the author turns its axes at once."""

    def __init__(self, walk: Walk, values: Any, contracted: Any, batch: Any, free: Any, aval: Any, order: Optional[Sequence[int]]):
        self.walk, self.aval, self.order = walk, aval, order
        self.a, self.b = (walk.build.concrete(value) for value in values)
        (self.ca, self.cb), (self.ba, self.bb), (self.fa, self.fb) = contracted, batch, free

    def sizes(self, of: Tensor, axes: Sequence[int]) -> list[Size]:
        return [of.shape[axis] for axis in axes]

    def made(self, wanted: list[tuple[str, int]]) -> Anything:
        a, counts = self.a, self.walk.graph.counts_tokens
        if not self.ca:
            return self.entrywise((), ())
        size = product(self.sizes(a, self.ca))
        if any(counts(n) for n in self.sizes(a, self.ba)) and not counts(size) and size <= SMALL:
            return self.summed()
        return self.matrices(size, wanted)

    def entrywise(self, more: Sequence[Size], last: Sequence[int]) -> Anything:
        """Products of entries: [batch, free of a, free of b, contracted]."""
        a, b = self.a, self.b
        shape = [*self.sizes(a, self.ba), *self.sizes(a, self.fa), *self.sizes(b, self.fb), *more]
        places: Callable[..., Any] = lambda own, start: [*range(len(self.ba)), *range(start, start + len(own)), *range(len(shape) - len(more), len(shape))]
        x = a.transposed([*self.ba, *self.fa, *(self.ca if more else [])]).broadcast(shape, places(self.fa, len(self.ba)))
        y = b.transposed([*self.bb, *self.fb, *(self.cb if more else [])]).broadcast(shape, places(self.fb, len(self.ba) + len(self.fa)))
        return self.walk.build.binary("mul", x, y, shape, self.aval.dtype)

    def summed(self) -> Anything:
        """Of one token's few entries: Σ of products, as a mixture adds up its experts."""
        more = self.sizes(self.a, self.ca)
        made = self.entrywise(more, self.ca)
        n = len(self.aval.shape)
        return self.walk.build.reduced("sum.dim_IntList", made, list(range(n, n + len(more))), self.aval.dtype)

    def matrices(self, size: Size, wanted: list[tuple[str, int]]) -> Anything:
        """One free axis of each is the matrices': the tokens', or the last. Others are repeated. The rows are the tokens that ask: those
        whose axis stands first in what the author writes."""
        graph, order = self.walk.graph, self.order or list(range(len(wanted)))
        pick: Callable[..., Any] = lambda of, free: next((i for i in free if graph.counts_tokens(of.shape[i])), free[-1] if free else None)
        sides = [("a", self.a, self.ba, self.ca, self.fa, pick(self.a, self.fa)), ("b", self.b, self.bb, self.cb, self.fb, pick(self.b, self.fb))]
        of_tokens = [row is not None and graph.counts_tokens(of.shape[row]) for _, of, _, _, _, row in sides]
        place: Callable[..., Any] = lambda name, free, row: order.index(wanted.index((name, free.index(row))))
        if of_tokens == [False, True] or (all(of_tokens) and place("b", self.fb, sides[1][5]) < place("a", self.fa, sides[0][5])):
            sides.reverse()
        (first, a, ba, ca, fa, ra), (second, b, bb, cb, fb, rb) = sides
        several: Callable[..., Any] = lambda of, free, row: [i for i in free if i != row and not same(of.shape[i], 1)]
        one: Callable[..., Any] = lambda axis: [] if axis is None else [axis]
        length: Callable[..., Any] = lambda of, axis: 1 if axis is None else of.shape[axis]
        ea, eb = several(a, fa, ra), several(b, fb, rb)
        batch, extra_a, extra_b = self.sizes(a, ba), self.sizes(a, ea), self.sizes(b, eb)
        dropped: Callable[..., Any] = lambda of, free, row, extra: [i for i in free if i != row and i not in extra]
        left = self.walk.build.real(a.transposed([*dropped(a, fa, ra, ea), *ba, *ea, *one(ra), *ca]),
                                    [*batch, *extra_a, *[1] * len(eb), length(a, ra), size])
        right = self.walk.build.real(b.transposed([*dropped(b, fb, rb, eb), *bb, *eb, *cb, *one(rb)]),
                                     [*batch, *[1] * len(ea), *extra_b, size, length(b, rb)])
        made = retained(self.walk, left, right) or graph.emit(
            "matmul.default", [*batch, *extra_a, *extra_b, length(a, ra), length(b, rb)], self.aval.dtype, self=left, other=right)
        names = [*[("batch", i) for i in range(len(batch))], *[(first, fa.index(i)) for i in ea], *[(second, fb.index(i)) for i in eb],
                 (first, fa.index(ra)) if ra is not None else None, (second, fb.index(rb)) if rb is not None else None]
        axes = dict(zip(names, identity(made).axes))
        return Tensor(made, tuple(axes.get(name, ()) for name in wanted))


def convolution(walk: Walk, equation: Any, x: Anything, w: Anything) -> Anything:
    p, aval = equation.params, equation.outvars[0].aval
    lhs, rhs, out = p["dimension_numbers"]
    if len(lhs) != 3 or p["batch_group_count"] != 1 or tuple(p["lhs_dilation"]) != (1,) or tuple(p["window_strides"]) != (1,):
        raise walk.unsupported("primitive 'conv_general_dilated' of two dimensions, or with strides, is not read")
    rows, kernel = (walk.build.real(walk.build.tensor(v).transposed(order))
                    for v, order in ((x, lhs), (w, rhs)))
    low, high = p["padding"][0]
    dilation, width, padding = p["rhs_dilation"][0], kernel.dims[2], max(low, high)
    length = rows.dims[2] + 2 * padding - dilation * (width - 1)
    made = walk.graph.emit("conv1d.default", (rows.dims[0], kernel.dims[0], length), aval.dtype, input=rows, weight=kernel, stride=[1],
                           padding=[padding], dilation=[dilation], groups=p["feature_group_count"])
    if low != high:  # it is padded on both sides alike
        start, size = max(high - low, 0), aval.shape[out[2]]
        made = walk.graph.emit("slice.Tensor", (*made.dims[:2], size), aval.dtype, self=made, dim=2, start=start, end=size + start, step=1)
    return identity(made).transposed([list(out).index(i) for i in range(3)])
