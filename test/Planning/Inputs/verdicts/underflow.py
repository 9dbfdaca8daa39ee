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


TAILS = ("gelu", "gelu_tanh", "silu", "quick_gelu", "exp", "sigmoid", "softplus")


def cases():
    for kind in TAILS:
        yield f"{kind} of one", bottleneck(kind, 1), [PARTLY]
        yield f"{kind} of two", bottleneck(kind, 2), [PARTLY]
        yield f"{kind}, scaled", scaled(kind), [PARTLY]
        yield f"{kind}, a gate", gated(kind), [PARTLY]
        yield f"{kind} of many", bottleneck(kind, 32), [("controllable", "output-only", *PARTLY)]
    for kind in ("tanh", "abs"):
        yield f"{kind} of one", bottleneck(kind, 1), [MAYBE]
