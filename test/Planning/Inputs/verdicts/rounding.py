"""Blocks that float64 computes wrongly where a context or weights are large: no counterexample follows from that."""
from blocks import Block
from truths import MAYBE


def symmetric(kind, norm):
    """(W + Wᵀ) h, with any W, is anything unless h is zero, as it is where all entries underflow."""
    b = Block(3)
    v = b.add(b.x, b.context())
    h = b.normalize(norm, b.activation(kind, v), 1e-5)
    weight = b.param("W", 3, 3)
    turned = b.op(f"linear {weight.name} * {h.name} transposed", h.shape, f"{weight.type}, {h.type}")
    return b.text(b.add(v, b.add(b.linear(weight, h), turned)))


def shifted(grow):
    """s - tanh(s), where a bias beside what grows is rounded away."""
    b = Block(2)
    v = b.add(b.x, b.context())
    bias = b.param("bias", 2)
    s = b.op(f"bias {grow(b, v).name} + {bias.name}", v.shape, f"{v.type}, {bias.type}")
    return b.text(b.add(v, b.sub(s, b.activation("tanh", s))))


def turned(grow):
    """M (h + bias), where the bias beside what grows is rounded away, and M is any matrix of a layer's."""
    b = Block(4)
    v = b.add(b.x, b.context())
    bias = b.param("bias", 4)
    h = b.op(f"bias {b.mul(v, grow(b, v)).name} + {bias.name}", v.shape, f"{v.type}, {bias.type}")
    return b.text(b.add(v, b.linear(b.setting("M", shape=(4, 4)), h)))


def squared(b, v):
    for _ in range(5):
        v = b.mul(v, v)
    return v


GROW = {
    "an exponential": lambda b, v: b.activation("exp", v),
    "an exponential of a multiple": lambda b, v: b.activation("exp", b.times(v, 3)),
    "a power of 32": squared,
    "a product of exponentials": lambda b, v: b.mul(b.activation("exp", v), b.activation("exp", b.matrix("up", v.size, v))),
}


def cases():
    for kind in ("exp", "sigmoid", "softplus", "gelu"):
        for norm in ("layer", "rms", "l2"):
            yield f"{kind}, {norm} norm", symmetric(kind, norm), [MAYBE]
    for name, grow in GROW.items():
        yield f"a bias beside {name}", shifted(grow), [MAYBE]
        yield f"a matrix of a bias beside {name}", turned(grow), [MAYBE]
