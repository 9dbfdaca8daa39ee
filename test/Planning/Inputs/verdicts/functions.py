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


def exponential_of_two_readers():
    """A number that is positive is a length, and the second output's rest, of either sign."""
    b = Block(WIDTH)
    v = stream(b)
    number = b.activation("exp", b.matrix("length", 1, v))
    rest = b.add(b.slice(v, 0, 1), number)
    direction = b.mul(b.normalize("rms", b.matrix("down", WIDTH, v), 1e-6), number)
    bias = b.param("bias", WIDTH)
    moved = b.add(v, direction)
    return b.text(b.op(f"bias {moved.name} + {bias.name}", v.shape, f"{v.type}, {bias.type}"), rest)


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


def masks(*all_of, computed=False):
    """A sum of products with known masks, each with a matrix of its own; or of one with m and one with 1 - m."""

    def text():
        b = Block(WIDTH)
        y = v = stream(b)
        given = [b.setting(f"m{i}", mask) for i, mask in enumerate(all_of)]
        if computed:
            given.append(b.sub(b.setting("one", [1.0] * WIDTH), given[0]))
        for i, mask in enumerate(given):
            y = b.add(y, b.mul(mask, b.matrix(f"down{i}", WIDTH, v)))
        return b.text(y)

    return text


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


def turned(b, w, x):
    return b.op(f"linear {w.name} * {x.name} transposed", (w.shape[1],), f"{w.type}, {x.type}")


def gram(rows, other=None):
    """Wᵀ W x, or Vᵀ W x."""

    def of(b, x):
        w = b.param("W", rows, WIDTH)
        return turned(b, b.param(other, rows, WIDTH) if other else w, b.linear(w, x))

    return of


def with_transpose(join):
    def of(b, x):
        w = b.param("W", x.size, x.size)
        return join(b, b.linear(w, x), turned(b, w, x))

    return of


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
    "a direction over an exponential": direction(lambda b, n, g: b.div(n, b.activation("exp", g))),
    "a direction and an opposite exponential": direction(lambda b, n, g: b.mul(n, b.times(b.activation("exp", g), -1))),
    "a coupling": coupling,
    "a known invertible matrix": lambda: last(fixed_matrix(HADAMARD)),
    "a known diagonal": lambda: last(fixed_matrix([[float(i + 1) * (i == j) for j in range(4)] for i in range(4)])),
    "a rotation": lambda: last(rotation),
    "sums of earlier entries": lambda: last(fixed_matrix([[float(j <= i) for j in range(4)] for i in range(4)])),
    "the same in both streams": both_streams,
    "complementary masks": masks([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]),
    "a mask and its rest": masks([1.0, 0.0, 0.0, 1.0], computed=True),
    "three masks": masks([0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, -1.0]),
    "masks that overlap": masks([1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]),
    "a row of positions": position_row,
    "a convolution, then a scale": lambda: conv_behind(WIDTH, True),
    "a norm by the sum and ε": lambda: last(lambda b, x: b.normalize("sum", x, 0.5)),
    "a matrix and the transpose of another": lambda: of_stream(gram(WIDTH, "V")),
    "a matrix and its transpose, of what a patch moves": lambda: last(gram(WIDTH)),
    "a symmetric matrix": lambda: of_stream(with_transpose(lambda b, a, c: b.add(a, c))),
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
    "a matrix and its transpose": lambda: of_stream(gram(WIDTH)),
    "a wide matrix and its transpose": lambda: of_stream(gram(2 * WIDTH)),
    "a skew matrix": lambda: of_stream(with_transpose(lambda b, a, c: b.sub(a, c))),
    "masks that leave an entry out": masks([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]),
    "an exponential of two readers": exponential_of_two_readers,
    "a direction and a share": direction(lambda b, n, g: b.mul(n, b.activation("sigmoid", g))),
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
