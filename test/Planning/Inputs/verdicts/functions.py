"""Blocks of which an engineer says at once whether a patch exists: each with what is true of it. The count of verdicts that
are decided may only grow (verdicts-of-functions.test)."""
from blocks import Block
from truths import MAYBE, NONE

WIDTH = 4
EXACT = MAYBE  # a patch exists almost everywhere


def stream(b):
    return b.add(b.x, b.context())


def last(function):
    """What `function` makes of a matrix behind the stream is added to the stream."""
    b = Block(WIDTH)
    v = stream(b)
    return b.text(b.add(v, function(b, b.matrix("down", WIDTH, v))))


def ones(b, like, factor=1.0):
    return b.times(b.setting(f"one_{b.count}", [1.0] * like.size), factor)


def plus(b, x, number):
    return b.add(x, ones(b, x, number))


def relu(b, x):
    return b.activation("relu", x)


def leaky(b, x):
    return b.sub(relu(b, x), b.times(relu(b, b.times(x, -1)), 0.1))


def odd(kind):
    return lambda b, x: b.sub(b.activation(kind, x), b.activation(kind, b.times(x, -1)))


def direction(scale):
    """A norm's direction times, or over, a number with a matrix of its own."""

    def text():
        b = Block(WIDTH)
        v = stream(b)
        n = b.normalize("rms", b.matrix("down", WIDTH, v), 1e-6)
        return b.text(b.add(v, scale(b, n, b.matrix("length", 1, v))))

    return text


def bias_twice():
    b = Block(WIDTH)
    v, bias = stream(b), b.param("bias", WIDTH)
    twice = v
    for _ in range(2):
        twice = b.op(f"bias {twice.name} + {bias.name}", v.shape, f"{v.type}, {bias.type}")
    return b.text(twice)


def matrix_twice():
    b = Block(WIDTH)
    v, w = stream(b), b.param("down", WIDTH, WIDTH)
    both = b.add(b.linear(w, v), b.linear(w, b.activation("tanh", b.matrix("up", WIDTH, v))))
    return b.text(b.add(v, both))


def coupling():
    """The second half is moved by a function of the first."""
    b = Block(WIDTH)
    v = stream(b)
    first, second = (b.add(b.slice(v, i * 2, 2), b.matrix(f"down{i}", 2, v)) for i in range(2))
    moved = b.add(second, b.activation("tanh", b.matrix("shift", 2, first)))
    return b.text(b.concat(first, moved))


def fixed_matrix(rows):
    return lambda b, x: b.linear(b.setting("M", rows), x)


def rotation(b, x):
    return b.rotary(x, b.setting("f", [1.0, 0.5]))


def both_streams():
    b = Block(WIDTH)
    a = b.context()
    moved = b.add(a, b.matrix("down", WIDTH, b.add(b.x, a)))
    return b.text(b.add(b.x, moved), b.add(b.times(b.x, 2), moved))


def masks():
    b = Block(WIDTH)
    v = stream(b)
    parts = [b.mul(b.setting(f"m{i}", m), b.matrix(f"down{i}", WIDTH, v)) for i, m in enumerate(([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]))]
    return b.text(b.add(v, b.add(*parts)))


def position_row():
    b = Block(WIDTH)
    table, v = b.param("positions", 32, WIDTH), stream(b)
    place = b.op("position", (), "tensor<i32>")
    row = b.op(f"embed {table.name}[{place.name}]", (WIDTH,), f"{table.type}, tensor<i32>")
    return b.text(b.add(v, row))


def conv_behind(channels, scale):
    b = Block(WIDTH)
    v = stream(b)
    d = b.matrix("down", WIDTH, v)
    c = b.context(b.slice(d, 0, channels), "behind")
    if channels < WIDTH:
        c = b.concat(c, b.slice(d, channels, WIDTH - channels))
    if scale:
        m = b.param("gain", WIDTH)
        c = b.op(f"scale {c.name} by {m.name}", c.shape, f"{c.type}, {m.type}")
    return b.text(b.add(v, c))


def low_rank():
    """LoRA: W + B A, as one product more."""
    b = Block(WIDTH)
    v = stream(b)
    return b.text(b.add(v, b.add(b.matrix("down", WIDTH, v), b.matrix("B", WIDTH, b.matrix("A", 2, v)))))


def mixing_gate():
    """gMLP: one half is multiplied by what a convolution makes of the other."""
    b = Block(WIDTH)
    h = b.matrix("up", 2 * WIDTH, b.x)
    gate = b.context(b.slice(h, 0, WIDTH))
    d = b.matrix("down", WIDTH, b.mul(b.slice(h, WIDTH, WIDTH), gate))
    return b.text(b.add(b.x, d))


def gram(b, x):
    w = b.param("W", WIDTH, WIDTH)
    inner = b.linear(w, x)
    return b.op(f"linear {w.name} * {inner.name} transposed", x.shape, f"{w.type}, {x.type}")


def skew(b, x):
    w = b.param("W", WIDTH, WIDTH)
    turned = b.op(f"linear {w.name} * {x.name} transposed", x.shape, f"{w.type}, {x.type}")
    return b.sub(b.linear(w, x), turned)


def of_stream(function):
    b = Block(WIDTH)
    v = stream(b)
    return b.text(b.add(v, function(b, v)))


def elu(b, x):
    below = b.activation("exp", b.times(relu(b, b.times(x, -1)), -1))
    return plus(b, b.add(relu(b, x), below), -1)


def hardswish(b, x):
    gate = b.op(f"clamp {relu(b, plus(b, x, 3)).name} to 6.0 above", x.shape)
    return b.mul(x, b.times(gate, 1 / 6))


HADAMARD = [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]]
SOLVABLE = {
    "x |x|": lambda: last(lambda b, x: b.mul(x, b.activation("abs", x))),
    "x |x|, as a power": lambda: last(lambda b, x: b.op(f"power {x.name} to 2", x.shape)),
    "a cube": lambda: last(lambda b, x: b.mul(b.mul(x, x), x)),
    "a cube, as a power": lambda: last(lambda b, x: b.op(f"power {x.name} to 3", x.shape)),
    "a leaky relu": lambda: last(lambda b, x: b.op(f"leaky {x.name} by 0.1", x.shape)),
    "a leaky relu, written out": lambda: last(leaky),
    "an odd silu": lambda: last(odd("silu")),
    "an odd gelu": lambda: last(odd("gelu")),
    "an odd relu": lambda: last(odd("relu")),
    "a bias twice": bias_twice,
    "a matrix twice": matrix_twice,
    "a direction and a number": direction(lambda b, n, g: b.mul(n, g)),
    "a direction and an exponential": direction(lambda b, n, g: b.mul(n, b.activation("exp", g))),
    "a direction over a number": direction(lambda b, n, g: b.div(n, g)),
    "a coupling": coupling,
    "a known invertible matrix": lambda: last(fixed_matrix(HADAMARD)),
    "a known diagonal": lambda: last(fixed_matrix([[float(i + 1) * (i == j) for j in range(4)] for i in range(4)])),
    "a rotation": lambda: last(rotation),
    "sums of earlier entries": lambda: last(fixed_matrix([[float(j <= i) for j in range(4)] for i in range(4)])),
    "the same in both streams": both_streams,
    "complementary masks": masks,
    "a row of positions": position_row,
    "a convolution, then a scale": lambda: conv_behind(WIDTH, True),
    "a convolution of some channels": lambda: conv_behind(2, False),
    "a product of small matrices beside a matrix": low_rank,
    "a gate that mixes tokens": mixing_gate,
    "a quotient by a known number": lambda: last(lambda b, x: b.div(x, b.setting("c", [2.0, -3.0, 0.5, 1.0]))),
}
IMPOSSIBLE = {
    "x + x²": lambda: last(lambda b, x: b.add(x, b.mul(x, x))),
    "x - silu x": lambda: last(lambda b, x: b.sub(x, b.activation("silu", x))),
    "x - gelu x": lambda: last(lambda b, x: b.sub(x, b.activation("gelu", x))),
    "softsign": lambda: last(lambda b, x: b.div(x, plus(b, b.activation("abs", x), 1))),
    "x e^x": lambda: last(lambda b, x: b.mul(x, b.activation("exp", x))),
    "a matrix and its transpose": lambda: of_stream(gram),
    "a skew matrix": lambda: of_stream(skew),
    "a norm by the sum": lambda: last(lambda b, x: b.normalize("sum", x, 0)),
    "hardtanh": lambda: last(lambda b, x: b.op(f"clamp {x.name} to 1.0", x.shape)),
    "elu": lambda: last(elu),
    "hardswish": lambda: last(hardswish),
    "x tanh x": lambda: last(lambda b, x: b.mul(x, b.activation("tanh", x))),
    "x² over 1 + x²": lambda: last(lambda b, x: b.div(b.mul(x, x), plus(b, b.mul(x, x), 1))),
    "a known matrix of rank 2": lambda: last(fixed_matrix([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]] * 2)),
    "a mask with zeros": lambda: last(lambda b, x: b.mul(x, b.setting("m", [1.0, 0.0, 1.0, 1.0]))),
}


def cases():
    for name, text in SOLVABLE.items():
        # What a convolution follows belongs to the contextual part, whose parameters stay as they are.
        yield name, text(), [EXACT if text is not mixing_gate else NONE]
    for name, text in IMPOSSIBLE.items():
        yield name, text(), [NONE]
