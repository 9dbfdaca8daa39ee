"""Outputs of layers that the model does not read: what they give with the context is nobody's matter."""
from blocks import Block, model
from truths import GOOD, NONE


def two_outputs(function):
    """A layer that can be patched, and another output of it."""
    b = Block(4)
    c = b.context()
    v = b.add(b.x, c)
    y = b.add(v, b.matrix("down", 4, v))
    return b.text(y, function(b, c, v))


def norm_last(b, c, v):
    return b.normalize("rms", v, 1e-6)


OTHERS = {
    "context": lambda b, c, v: c,
    "stream": lambda b, c, v: v,
    "norm": norm_last,
    "cap": lambda b, c, v: b.softcap(v, 3),
    "root": lambda b, c, v: b.activation("sqrt", b.mul(v, v)),
}


def cases():
    for name, function in OTHERS.items():
        text = two_outputs(function)
        yield f"{name}, unread", model(text, 4, [{}], outputs=2), [GOOD]
        yield f"{name}, unread in two layers", model(text, 4, [{}, {}], outputs=2), [GOOD, GOOD]
        read = ["  %both = xf.add %l0#0, %l0#1 : tensor<4xf32>"]
        yield f"{name}, read", model(text, 4, [{}], reads=read, outputs=2).replace("yield %l0#0", "yield %both"), [NONE]
