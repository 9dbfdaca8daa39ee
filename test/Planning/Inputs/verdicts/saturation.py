"""What is rounded to a bound, or to another value, on an open set: where that leaves zero, no plan may call it a null set."""
from blocks import Block
from underflow import PARTLY

ALWAYS = ("controllable", "output-only")  # almost everywhere


def with_entries(make, width=8):
    """A block whose scale divides by each entry of what `make` makes of two generic vectors."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = make(b, b.matrix("up", width, v), b.matrix("other", width, v))
    if width < 8:
        return b.text(b.add(v, b.matrix("down", 8, h)))
    m = b.param("scale", 8)
    return b.text(b.add(v, b.op(f"scale {h.name} by {m.name}", h.shape, f"{h.type}, {m.type}")))


def gated(make):
    """A chain divides by a gate of its own."""
    b = Block(8)
    v = b.add(b.x, b.context())
    gate = make(b, b.matrix("gate", 8, b.x), b.matrix("other", 8, b.x))
    return b.text(b.add(v, b.mul(b.matrix("down", 8, v), gate)))


def plus(b, h, number):
    return b.add(h, b.setting(f"n{b.count}", [float(number)] * h.shape[0]))


def tanh(b, u):
    return b.activation("tanh", u)


def sigmoid(b, u):
    return b.activation("sigmoid", u)


def ones(b, like):
    return b.setting(f"one{b.count}", [1.0] * like.shape[0])


def sigmoid_of_exp(b, u):
    e = b.activation("exp", u)
    return b.div(e, plus(b, e, 1))


def gelu_tanh(b, u):
    cubic = b.add(u, b.times(b.mul(u, b.mul(u, u)), 0.044715))
    return b.times(b.mul(u, plus(b, tanh(b, b.times(cubic, 0.7978845608)), 1)), 0.5)


def times_difference(b, u, w):
    """tanh(u) w - w."""
    return b.sub(b.mul(tanh(b, u), w), w)


def with_opposite(b, kind, u):
    return b.add(b.activation(kind, u), b.activation(kind, b.times(u, -1)))


def antisymmetric(b, u, w):
    """(W - Wᵀ) u, where an entry beside which the others are rounded away has the diagonal's zero."""
    weight = b.param("W", 8, 8)
    turned = b.op(f"linear {weight.name} * {u.name} transposed", u.shape, f"{weight.type}, {u.type}")
    return b.sub(b.linear(weight, u), turned)


def of_both(f, sign=-1):
    """f(tanh(u) w) - f(w): behind the same op, too, the one is the other where tanh(u) is 1. With `sign` 1 where it is -1."""
    def make(b, u, w):
        f_of = f(b)
        return b.add(f_of(b.mul(tanh(b, u), w)), b.times(f_of(w), sign))
    return make


def scaled(b):
    m = b.param("gain", 8)
    return lambda h: b.op(f"scale {h.name} by {m.name}", h.shape, f"{h.type}, {m.type}")


def rotated(b):
    table = b.setting("table", [1.0, 0.5, 0.0, 2.0])
    return lambda h: b.rotary(h, table)


def by_known(b):
    matrix = b.setting("M", [[float(i == j) for j in range(8)] for i in range(8)])
    return lambda h: b.linear(matrix, h)


def by_matrix(b):
    weight = b.param("W", 8, 8)
    return lambda h: b.linear(weight, h)


def gated_by_one(b):
    gate = b.matrix("gate", 8, b.x)
    return lambda h: b.mul(h, gate)


# What both vectors go through.
BOTH = {"a scale": scaled, "a rotation": rotated, "a known matrix": by_known, "a matrix": by_matrix, "a gate": gated_by_one,
        "a scale and a rotation": lambda b: (lambda f, g: lambda h: g(f(h)))(scaled(b), rotated(b))}

# Of one vector and of another.
CANCELS = {
    "tanh + 1": lambda b, u, w: plus(b, tanh(b, u), 1),
    "tanh - 1": lambda b, u, w: plus(b, tanh(b, u), -1),
    "1 - tanh": lambda b, u, w: b.sub(ones(b, u), tanh(b, u)),
    "1 - tanh²": lambda b, u, w: b.sub(ones(b, u), b.mul(tanh(b, u), tanh(b, u))),
    "twice tanh + 2": lambda b, u, w: plus(b, b.times(tanh(b, u), 2), 2),
    "sigmoid - 1": lambda b, u, w: plus(b, sigmoid(b, u), -1),
    "a cap - 3": lambda b, u, w: plus(b, b.softcap(u, 3), -3),
    "sigmoid by exp - 1": lambda b, u, w: plus(b, b.div(ones(b, u), plus(b, b.activation("exp", b.times(u, -1)), 1)), -1),
    "exp by exp + 1, - 1": lambda b, u, w: plus(b, sigmoid_of_exp(b, u), -1),
    "softsign - 1": lambda b, u, w: plus(b, b.div(u, plus(b, b.activation("abs", u), 1)), -1),
    "tanh of a cube + 1": lambda b, u, w: plus(b, tanh(b, b.op(f"power {u.name} to 3", u.shape)), 1),
    "a root of tanh + 1": lambda b, u, w: plus(b, b.op(f"power {tanh(b, u).name} to 3 root", u.shape), 1),
    "a convolution of tanh + 1": lambda b, u, w: b.context(plus(b, tanh(b, u), 1), "behind"),
    "a part of tanh + 1": lambda b, u, w: plus(b, b.concat(b.slice(tanh(b, u), 4, 4), b.slice(u, 0, 4)), 1),
    "parts of which one underflows": lambda b, u, w: b.concat(b.slice(u, 0, 4), b.slice(b.activation("gelu", w), 0, 4)),
    "another shape": lambda b, u, w: plus(b, b.reshape(b.reshape(tanh(b, u), 2, 4), 8), 1),
    "other places": lambda b, u, w: plus(b, b.op(f"permute {tanh(b, u).name} parts [4, 4] by [1, 0]", u.shape), 1),
    "a matrix - its transpose": antisymmetric,
    "tanh - tanh": lambda b, u, w: b.sub(tanh(b, u), tanh(b, w)),
    "tanh + tanh": lambda b, u, w: b.add(tanh(b, u), tanh(b, w)),
    "sigmoid + sigmoid - 2": lambda b, u, w: plus(b, b.add(sigmoid(b, u), sigmoid(b, w)), -2),
    "sigmoid + sigmoid - 1": lambda b, u, w: plus(b, b.add(sigmoid(b, u), sigmoid(b, w)), -1),
    "tanh - twice sigmoid + 1": lambda b, u, w: plus(b, b.sub(tanh(b, u), b.times(sigmoid(b, w), 2)), 1),
    "tanh times tanh + 1": lambda b, u, w: plus(b, b.mul(tanh(b, u), tanh(b, w)), 1),
    "tanh by sigmoid - 1": lambda b, u, w: plus(b, b.div(tanh(b, u), sigmoid(b, w)), -1),
    "tanh by exp + 1": lambda b, u, w: plus(b, b.div(tanh(b, u), b.activation("exp", w)), 1),
    "w by exp, - w": lambda b, u, w: b.sub(w, b.div(w, b.activation("exp", u))),
    "tanh and a clamp": lambda b, u, w: b.sub(tanh(b, u), b.op(f"clamp {w.name} to 1.0", w.shape)),
    "relu + tanh + 1": lambda b, u, w: plus(b, b.add(b.activation("relu", u), tanh(b, w)), 1),
    "gelu + tanh + 1": lambda b, u, w: plus(b, b.add(b.activation("gelu", u), tanh(b, w)), 1),
    "tanh times w, - w": times_difference,
    "sigmoid times w, - w": lambda b, u, w: b.sub(w, b.mul(sigmoid(b, u), w)),
    "(1 - tanh) times w": lambda b, u, w: b.mul(w, b.sub(ones(b, u), tanh(b, u))),
    "silu - its data": lambda b, u, w: b.sub(b.activation("silu", u), u),
    "gelu - its data": lambda b, u, w: b.sub(u, b.activation("gelu", u)),
    "softplus - its data": lambda b, u, w: b.sub(b.activation("softplus", u), u),
    "gelu written out": lambda b, u, w: gelu_tanh(b, u),
    "gelu written out - its data": lambda b, u, w: b.sub(gelu_tanh(b, u), u),
    "silu of silu - its data": lambda b, u, w: b.sub(b.activation("silu", b.activation("silu", u)), u),
    "tanh - its data": lambda b, u, w: b.sub(tanh(b, u), u),
    "a cap - its data": lambda b, u, w: b.sub(u, b.softcap(u, 3)),
    "tanh of a cube - the cube": lambda b, u, w: b.sub(*[f(b, b.mul(u, b.mul(u, u))) for f in (tanh, lambda b, cube: cube)]),
    "tanh of a product - the product": lambda b, u, w: b.sub(*[f(b, b.mul(u, w)) for f in (tanh, lambda b, product: product)]),
    "a bell - 1": lambda b, u, w: plus(b, b.div(ones(b, u), plus(b, b.mul(u, u), 1)), -1),
    "softmax": lambda b, u, w: b.softmax(u),
    "softmax - 1": lambda b, u, w: plus(b, b.softmax(u), -1),
    "tanh and unlike numbers": lambda b, u, w: b.add(tanh(b, u), b.setting("n", [0.5, -1.0] * 4)),
    "unlike numbers times tanh + 2": lambda b, u, w: plus(b, b.mul(tanh(b, u), b.setting("n", [0.5, -2.0] * 4)), 2),
    "a norm": lambda b, u, w: b.normalize("rms", plus(b, tanh(b, u), 1), 1e-5),
    "tanh of it": lambda b, u, w: tanh(b, plus(b, tanh(b, u), 1)),
    "a rotation": lambda b, u, w: b.rotary(plus(b, tanh(b, u), 1), b.setting("f", [1.0, 0.5, 0.0, 2.0])),
    "a known matrix of gelu": lambda b, u, w: b.linear(
        b.setting("M", [[float(i == j) for j in range(8)] for i in range(8)]), b.activation("gelu", u)),
    "a known matrix of differences": lambda b, u, w: b.linear(
        b.setting("M", [[float(i == j) - float((i + 1) % 8 == j) for j in range(8)] for i in range(8)]), tanh(b, u)),
    "a matrix of one": lambda b, u, w: b.matrix("wide", 8, b.slice(plus(b, tanh(b, u), 1), 0, 1)),
    "a layer norm of two": lambda b, u, w: b.concat(*[b.normalize("layer", b.slice(tanh(b, u), i, 2), 1e-5) for i in range(0, 8, 2)]),
    "a product with what is kept": lambda b, u, w: b.mul(b.activation("gelu", u), b.matrix("kept", 8, b.x, frozen=True)),
    "tanh of twenty norms + 1": lambda b, u, w: plus(b, tanh(b, b.times(b.normalize("rms", u, 1e-5), 20)), 1),
    "tanh of more - tanh of less - 2": lambda b, u, w: plus(b, b.sub(tanh(b, plus(b, u, 30)), tanh(b, plus(b, u, -30))), -2),
    "norms of one - 1": lambda b, u, w: plus(
        b, b.reshape(b.normalize("rms", b.reshape(u, 8, 1), 1e-5), 8), -1),
}
KEEPS = {
    "tanh + 2": lambda b, u, w: plus(b, tanh(b, u), 2),
    "tanh - a half": lambda b, u, w: plus(b, tanh(b, u), -0.5),
    "sigmoid - a half": lambda b, u, w: plus(b, sigmoid(b, u), -0.5),
    "sigmoid + 1": lambda b, u, w: plus(b, sigmoid(b, u), 1),
    "tanh + half of tanh": lambda b, u, w: b.add(tanh(b, u), b.times(tanh(b, w), 0.5)),
    "tanh of a norm + 1": lambda b, u, w: plus(b, tanh(b, b.normalize("rms", u, 1e-5)), 1),
    "tanh + w": lambda b, u, w: b.add(tanh(b, u), w),
    "tanh times w": lambda b, u, w: b.mul(tanh(b, u), w),
    "tanh times w, - twice w": lambda b, u, w: b.sub(b.mul(tanh(b, u), w), b.times(w, 2)),
    "silu + its data": lambda b, u, w: b.add(b.activation("silu", u), b.times(u, 2)),
    "gelu - twice its data": lambda b, u, w: b.sub(b.activation("gelu", u), b.times(u, 2)),
    "tanh - twice its data": lambda b, u, w: b.sub(tanh(b, u), b.times(u, 2)),
    "a bell + 1": lambda b, u, w: plus(b, b.div(ones(b, u), plus(b, b.mul(u, u), 1)), 1),
    "tanh of two matrices": lambda b, u, w: b.matrix("wide", 8, tanh(b, u)),
    "tanh and unlike numbers": lambda b, u, w: b.add(tanh(b, u), b.setting("n", [0.5, -2.0] * 4)),
    "softplus + softplus of the opposite": lambda b, u, w: with_opposite(b, "softplus", u),
    "gelu + gelu of the opposite": lambda b, u, w: with_opposite(b, "gelu", b.add(u, w)),
    "silu - silu of the opposite": lambda b, u, w: b.sub(b.activation("silu", u), b.activation("silu", b.times(u, -1))),
    "norms of two": lambda b, u, w: b.concat(*[b.normalize("rms", b.slice(tanh(b, u), i, 2), 1e-5) for i in range(0, 8, 2)]),
    "gelu + 1": lambda b, u, w: plus(b, b.activation("gelu", u), 1),
}
GATES = ("tanh + 1", "1 - tanh", "sigmoid - 1", "tanh - tanh", "tanh times tanh + 1", "tanh times w, - w", "gelu - its data")


def unknown_number(width):
    """A bias that is a part of the program, and is not at hand: it may be a bound."""
    b = Block(8)
    v = b.add(b.x, b.context())
    c, m = b.op('param "c" frozen constant', (8,)), b.param("scale", 8)
    h = b.op(f"bias {tanh(b, b.matrix('up', 8, v)).name} + {c.name}", (8,), f"{c.type}, {c.type}")
    return b.text(b.add(v, b.op(f"scale {h.name} by {m.name}", h.shape, f"{h.type}, {m.type}")))


def mixture(kind, count):
    """A chain divides by the sum of the weights of rows."""
    b = Block(8)
    v = b.add(b.x, b.context())
    weights = b.activation(kind, b.matrix("weights", count, b.x))
    return b.text(b.add(v, b.combine(weights, b.reshape(b.matrix("rows", 8 * count, v), count, 8))))


def cases():
    for name, make in CANCELS.items():
        yield name, with_entries(make), [PARTLY]
    for name, f in BOTH.items():
        yield f"{name} of both", with_entries(of_both(f)), [PARTLY]
        yield f"{name} of opposites", with_entries(of_both(f, 1)), [PARTLY]
        yield f"{name} of both, kept", with_entries(of_both(f, -2)), [ALWAYS]
    for name, make in KEEPS.items():
        yield f"{name}, kept", with_entries(make), [ALWAYS]
    for name in GATES:
        yield f"{name}, a gate", gated(CANCELS[name]), [PARTLY]
        yield f"{name} of one", with_entries(CANCELS[name], 1), [PARTLY]
        yield f"{name} of two", with_entries(CANCELS[name], 2), [PARTLY]
    for count in (2, 4):
        yield f"{count} weights by tanh", mixture("tanh", count), [PARTLY]
    yield "sixteen weights by exp", mixture("exp", 16), [ALWAYS]
    yield "an unknown number", unknown_number(8), [PARTLY]
