"""Functions that are zero on an open set, too rare to be met by a few random numbers; and analytic ones."""
from blocks import Block
from truths import NONE, PARTLY

SURE = ("controllable", "output-only")  # and on no condition that fails on an open set


def behind(function, shift, frozen=False):
    """A matrix that reads what `function` makes of a number that is mostly near `shift`."""
    b = Block(4)
    v = b.add(b.x, b.context())
    u = b.matrix("a", 1, v, frozen=frozen)
    o = b.add(u, b.number("shift", shift))
    return b.text(b.add(v, b.matrix("down", 4, function(b, o))))


def negated(b, o):
    return b.times(o, -1)


def magnitude(b, o):
    return b.activation("sqrt", b.mul(o, o))


def larger(b, o):
    """max(o, 6)"""
    return b.add(b.activation("relu", b.sub(o, b.number("six", 6))), b.number("6", 6))


def of_norm(kind, *others):
    """The first entry of a norm without epsilon of (o, …), less the number that it often is."""

    def function(b, o):
        less, entries = others[0], others[1:]
        parts = [o if e == "o" else b.times(o, e) if isinstance(e, float) else b.number(f"c{i}", e) for i, e in enumerate(entries)]
        n = b.normalize(kind, b.concat(o, *parts), 0)
        return b.sub(b.slice(n, 0, 1), b.number("less", less))

    return function


ONE_SIDED = {
    "root of a square": (lambda b, o: b.add(magnitude(b, o), o), 6),
    "root of a square, less": (lambda b, o: b.sub(magnitude(b, o), o), -6),
    "magnitude": (lambda b, o: b.add(b.activation("abs", o), o), 6),
    "two relus": (lambda b, o: b.sub(b.add(b.activation("relu", o), b.activation("relu", negated(b, o))), o), -6),
    "ratio to the larger": (lambda b, o: b.sub(b.mul(o, b.div(b.number("one", 1), larger(b, o))), b.number("1", 1)), 0),
    "product with a ratio": (lambda b, o: b.sub(b.div(o, larger(b, o)), b.number("1", 1)), 0),
    "ratio to its magnitude": (lambda b, o: b.sub(b.div(o, magnitude(b, o)), b.number("1", 1)), -6),
    "smaller": (lambda b, o: b.sub(o, b.activation("relu", o)), -6),
    "clamped": (lambda b, o: b.sub(b.op(f"clamp {o.name} to 3.0", o.shape), b.number("3", 3)), 0),
    "unit on a line": (of_norm("l2", 1, 0), -6),
    "mean square on a line": (of_norm("rms", 1, "o"), -6),
    "on a slope": (of_norm("l2", 0.6, 4 / 3), -6),
    "centred on a line": (of_norm("layer", 2**0.5, 0, 0), -6),
    "root of a root": (lambda b, o: b.sub(b.activation("sqrt", b.activation("sqrt", b.mul(b.mul(o, o), b.mul(o, o)))), o), -6),
}

ANALYTIC = {
    "tanh": (lambda b, o: b.add(b.activation("tanh", o), o), 6),
    "sigmoid": (lambda b, o: b.add(b.mul(o, b.activation("sigmoid", o)), o), 6),
    "root of what is positive": (lambda b, o: b.sub(b.activation("sqrt", b.add(b.mul(o, o), b.number("one", 1))), o), -6),
    "softplus": (lambda b, o: b.add(b.activation("softplus", o), o), 6),
    "ratio to what is positive": (lambda b, o: b.sub(b.div(o, b.activation("exp", o)), b.number("1", 1)), 0),
    "with an epsilon": (lambda b, o: b.add(b.normalize("l2", o, 1.0), o), 6),
}


def one_number_twice():
    """A matrix of one number is its own transpose."""
    b = Block(1)
    v = b.add(b.x, b.context())
    w, m = b.param("w", 1, 1), b.param("scale", 1)
    turned = b.op(f"linear {w.name} * {v.name} transposed", (1,), f"{w.type}, {v.type}")
    rest = b.sub(b.linear(w, v), turned)
    return b.text(b.add(v, b.op(f"scale {rest.name} by {m.name}", (1,), f"{rest.type}, {m.type}")))


def cases():
    for name, (function, shift) in ONE_SIDED.items():
        yield name, behind(function, shift), [PARTLY]
        yield f"{name}, frozen", behind(function, shift, frozen=True), [PARTLY]
    for name, (function, shift) in ANALYTIC.items():
        yield name, behind(function, shift), [SURE]
    yield "one number, twice", one_number_twice(), [NONE]
