"""Tensors that are a part of the program: of some the numbers are known, of others not."""
from blocks import Block, dense, type_of
from truths import MAYBE, NONE, PARTLY

WIDTH = 4
ANY = ("undecided",)
UNSURE = (*MAYBE, "undecided")


def constant(b, name, shape, values=None):
    """A setting with numbers, or a tensor whose numbers are not at hand."""
    if values is not None:
        return b.setting(name, values)
    return b.op(f'param "{name}" frozen constant', shape)


def masked(values):
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    return b.text(b.add(v, b.mul(b.matrix("down", WIDTH, v), constant(b, "mask", (WIDTH,), values))))


def shifted(values):
    """A constant is added to what is patched."""
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    return b.text(b.add(v, b.add(b.matrix("down", WIDTH, v), constant(b, "shift", (WIDTH,), values))))


def multiplied(values, inside):
    """A constant matrix behind what is patched, or before it."""
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    matrix = constant(b, "M", (WIDTH, WIDTH), values)
    if inside:
        return b.text(b.add(v, b.matrix("down", WIDTH, b.linear(matrix, v))))
    return b.text(b.add(v, b.linear(matrix, b.matrix("down", WIDTH, v))))


def mixed(values):
    """The context comes by a convolution with constant weights alone."""
    b = Block(WIDTH)
    kernel = constant(b, "kernel", (WIDTH, 3), values)
    c = b.op(f"conv {kernel.name}, {b.x.name}", (WIDTH,), f"{kernel.type}, {b.x.type}")
    v = b.add(b.x, c)
    return b.text(b.add(v, b.softcap(b.matrix("down", WIDTH, v), 3)))


def single(value):
    """A matrix of one entry behind a patch that has to bring a sign to its target."""
    b = Block(1)
    v = b.add(b.x, b.context())
    s = b.sub(v, b.linear(b.setting("M", [[value]]), b.matrix("inner", 1, v)))
    return b.text(b.div(b.normalize("rms", s, 0), b.activation("exp", b.matrix("outer", 1, s))))


def gained(values):
    """A norm with a gain that no patch changes."""
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    n = b.normalize("rms", b.matrix("down", WIDTH, v), 1e-6)
    return b.text(b.add(v, b.mul(n, constant(b, "gain", (WIDTH,), values))))


def blended(values):
    """alpha d + (1 - alpha) d, with an alpha that no patch changes."""
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    alpha = constant(b, "alpha", (1,), values)
    return b.text(b.add(v, b.mul(b.matrix("down", WIDTH, v), alpha)))


IDENTITY = [[float(i == j) for j in range(WIDTH)] for i in range(WIDTH)]
ONES, ZEROS = [[1.0] * WIDTH] * WIDTH, [[0.0] * WIDTH] * WIDTH


def cases():
    yield "a mask of ones", masked([1.0] * WIDTH), [MAYBE]
    yield "a mask of signs", masked([1.0, -1.0, 2.0, -0.5]), [MAYBE]
    yield "a mask with a zero", masked([1.0, 0.0, 1.0, 1.0]), [NONE]
    yield "a mask of zeros", masked([0.0] * WIDTH), [NONE]
    yield "an unknown mask", masked(None), [ANY]
    yield "a known shift", shifted([1.0, 0.0, 0.0, -1.0]), [MAYBE]
    yield "a shift of zeros", shifted([0.0] * WIDTH), [MAYBE]
    yield "an unknown shift", shifted(None), [MAYBE]
    yield "the identity behind", multiplied(IDENTITY, False), [MAYBE]
    yield "ones behind", multiplied(ONES, False), [NONE]
    yield "zeros behind", multiplied(ZEROS, False), [NONE]
    yield "an unknown matrix behind", multiplied(None, False), [ANY]
    yield "the identity inside", multiplied(IDENTITY, True), [MAYBE]
    yield "ones inside", multiplied(ONES, True), [MAYBE]
    yield "zeros inside", multiplied(ZEROS, True), [NONE]
    yield "an unknown matrix inside", multiplied(None, True), [("conditional", "undecided")]
    yield "one number behind", single(0.5), [UNSURE]
    yield "a zero behind", single(0.0), [PARTLY]
    yield "a known kernel", mixed([[0.5, -0.25, 1.0]] * WIDTH), [NONE]
    yield "a kernel that reads its own token", mixed([[0.0, 0.0, 1.0]] * WIDTH), [MAYBE]
    yield "a kernel of zeros", mixed([[0.0] * 3] * WIDTH), [MAYBE]
    yield "an unknown kernel", mixed(None), [ANY]
    yield "a known gain", gained([1.0, 2.0, 3.0, 4.0]), [NONE]
    yield "an unknown gain", gained(None), [ANY]
    yield "alpha is 0", blended([0.0]), [NONE]
    yield "alpha is 0.5", blended([0.5]), [MAYBE]
    yield "an unknown alpha", blended(None), [ANY]


if __name__ == "__main__":
    print(multiplied(ONES, False))
