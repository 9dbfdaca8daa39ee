"""What is divided by underflows on an open set: no plan may call that a null set."""
from blocks import Block
from truths import MAYBE

PARTLY = ("conditional", "undecided")


def bottleneck(kind, width):
    """A matrix reads what an activation makes of few numbers."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = b.activation(kind, b.matrix("up", width, v))
    return b.text(b.add(v, b.matrix("down", 8, h)))


def scaled(kind):
    """A scale divides by each entry."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h, m = b.activation(kind, b.matrix("up", 8, v)), b.param("scale", 8)
    return b.text(b.add(v, b.op(f"scale {h.name} by {m.name}", h.shape, f"{h.type}, {m.type}")))


def gated(kind):
    """A chain divides by a gate of its own."""
    b = Block(8)
    v = b.add(b.x, b.context())
    gate = b.activation(kind, b.matrix("gate", 8, b.x))
    return b.text(b.add(v, b.mul(b.matrix("down", 8, v), gate)))


def handed_on(op):
    """What an op makes of each entry, and a scale that divides by it."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = op(b, b.activation("gelu", b.matrix("up", 8, v)))
    m = b.param("scale", 8)
    return b.text(b.add(v, b.op(f"scale {h.name} by {m.name}", h.shape, f"{h.type}, {m.type}")))


HANDED_ON = {
    "a convolution": lambda b, h: b.context(h, "behind"),
    "a multiple": lambda b, h: b.times(h, -3),
    "a cube": lambda b, h: b.op(f"power {h.name} to 3", h.shape),
    "a root": lambda b, h: b.op(f"power {h.name} to 3 root", h.shape),
    "a leaky relu": lambda b, h: b.op(f"leaky {h.name} by 0.5", h.shape),
    "a cap": lambda b, h: b.softcap(h, 3),
    "tanh": lambda b, h: b.activation("tanh", h),
    "a rounding": lambda b, h: b.op(f"round {h.name} to bf16", h.shape),
    "a norm": lambda b, h: b.normalize("rms", h, 1e-5),
    "a length": lambda b, h: b.normalize("l2", h, 0),
    "other places": lambda b, h: b.op(f"permute {h.name} parts [4, 4] by [1, 0]", h.shape),
    "a part": lambda b, h: b.concat(b.slice(h, 4, 4), b.slice(h, 0, 4)),
    "another shape": lambda b, h: b.reshape(b.reshape(h, 2, 4), 8),
    "a known factor": lambda b, h: b.mul(h, b.setting("m", [2.0, -1.0] * 4)),
    "a product": lambda b, h: b.mul(h, b.matrix("other", 8, b.x)),
    "a quotient": lambda b, h: b.div(h, b.setting("m", [2.0, -1.0] * 4)),
    "a rotation": lambda b, h: b.rotary(h, b.setting("f", [1.0, 0.5, 0.0, 2.0])),
    "its square": lambda b, h: b.mul(h, h),
    "a matrix of one": lambda b, h: b.matrix("wide", 8, b.slice(h, 0, 1)),
    "a matrix of two": lambda b, h: b.matrix("wide", 8, b.slice(h, 0, 2)),
    "silu of it": lambda b, h: b.activation("silu", h),
}


def divided(by, norm=None):
    """A matrix reads quotients, whose divisor may be infinite, or a norm of them, whose squares may be."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = b.div(b.normalize("rms", v, 1e-5), by(b, b.slice(v, 0, 1)))
    h = b.normalize(norm, h, 0) if norm else h
    return b.text(b.add(v, b.matrix("down", 8, h)))


def quotient_last(by):
    """A chain goes through a quotient, whose divisor may be infinite."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = b.div(b.matrix("down", 8, b.normalize("rms", v, 1e-5)), by(b, b.slice(v, 0, 1)))
    return b.text(b.add(v, h))


def multiplied(kind, handed_on=lambda b, h: h):
    """A matrix reads products with one number, or what an op makes of them."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = b.mul(b.normalize("rms", v, 1e-5), b.activation(kind, b.matrix("gate", 1, v)))
    return b.text(b.add(v, b.matrix("down", 8, handed_on(b, h))))


INFINITE = {
    "an exponential": lambda b, g: b.activation("exp", g),
    "a product with one": lambda b, g: b.mul(b.activation("exp", g), b.slice(b.x, 1, 1)),
    "a sum with one": lambda b, g: b.add(b.activation("exp", g), b.slice(b.x, 1, 1)),
    "one over what underflows": lambda b, g: b.div(b.slice(b.x, 1, 1), b.activation("exp", g)),
    "a matrix of an exponential": lambda b, g: b.matrix("wide", 1, b.activation("exp", g)),
    "an exponential of all": lambda b, g: b.activation("exp", b.matrix("wide", 8, b.x)),
}

def cubes(b, v, count):
    for _ in range(count):
        v = b.op(f"power {v.name} to 3", v.shape)
    return v


def powers(count, times=False):
    """A matrix reads a norm of a high power, whose squares are infinite for numbers of a few hundred."""
    b = Block(8)
    v = b.add(b.x, b.context())
    h = cubes(b, v, count)
    if times:
        h = b.mul(b.matrix("up", 8, v), h)
    return b.text(b.add(v, b.matrix("down", 8, b.normalize("rms", h, 1e-5))))


def flat():
    """A matrix reads sinh of a power, beside which both exponentials are 1 for a tenth."""
    b = Block(8)
    v = b.add(b.x, b.context())
    u = b.matrix("up", 2, cubes(b, b.slice(v, 0, 1), 2))
    h = b.sub(b.activation("exp", u), b.activation("exp", b.times(u, -1)))
    return b.text(b.add(v, b.matrix("down", 8, h)))


# What an op makes of entries that vanish at once vanishes at once.
AT_ONCE = {
    "a layer norm": lambda b, h: b.normalize("layer", h, 1e-5),
    "a product": lambda b, h: b.mul(b.matrix("other", 8, b.x), h),
    "a sum": lambda b, h: b.add(h, b.matrix("other", 8, h)),
    "tanh": lambda b, h: b.activation("tanh", h),
    "other places": lambda b, h: b.op(f"permute {h.name} parts [4, 4] by [1, 0]", h.shape),
    "two parts": lambda b, h: b.concat(b.slice(h, 4, 4), b.slice(h, 0, 4)),
    "another shape": lambda b, h: b.reshape(b.reshape(h, 2, 4), 8),
    "a rotation": lambda b, h: b.rotary(h, b.setting("f", [1.0, 0.5, 0.0, 2.0])),
    "a convolution": lambda b, h: b.context(h, "behind"),
    "a cube": lambda b, h: b.op(f"power {h.name} to 3", h.shape),
    "a cap": lambda b, h: b.softcap(h, 3),
    "silu of a matrix": lambda b, h: b.activation("silu", b.matrix("other", 8, h)),
}

TAILS = ("gelu", "gelu_tanh", "silu", "quick_gelu", "exp", "sigmoid", "softplus")


def cases():
    for kind in TAILS:
        yield f"{kind} of one", bottleneck(kind, 1), [PARTLY]
        yield f"{kind} of two", bottleneck(kind, 2), [PARTLY]
        yield f"{kind}, scaled", scaled(kind), [PARTLY]
        yield f"{kind}, a gate", gated(kind), [PARTLY]
        yield f"{kind}, one gate of all", multiplied(kind), [PARTLY]
        yield f"{kind} of many", bottleneck(kind, 32), [("controllable", "output-only", *PARTLY)]
    for name, op in HANDED_ON.items():
        yield f"{name} of gelu", handed_on(op), [PARTLY]
    for kind in ("exp", "gelu"):
        for name, op in AT_ONCE.items():
            yield f"{kind}, one gate of all, and {name}", multiplied(kind, op), [PARTLY]
    for name, by in INFINITE.items():
        if name != "an exponential of all":
            yield f"divided by {name}", divided(by), [PARTLY]
        yield f"a matrix, divided by {name}", quotient_last(by), [PARTLY]
    for count in (2, 3):
        yield f"a norm of {count} cubes", powers(count), [PARTLY]
        yield f"a norm of a product with {count} cubes", powers(count, times=True), [PARTLY]
    yield "a matrix, divided by three cubes", quotient_last(lambda b, g: cubes(b, g, 3)), [PARTLY]
    yield "sinh of two cubes", flat(), [PARTLY]
    yield "a norm of a cube", powers(1), [("controllable", "output-only")]
    for name, norm in {"an l2 norm": "l2", "an rms norm": "rms"}.items():
        yield f"{name} of quotients by softplus", divided(lambda b, g: b.activation("softplus", g), norm), [PARTLY]
    for kind in ("tanh", "abs"):
        yield f"{kind} of one", bottleneck(kind, 1), [MAYBE]
