"""Identities that hold at a block's own sizes alone, of blocks too large to be tried with whole matrices."""
from blocks import Block
from truths import MAYBE, NONE

WIDTH = 512  # a matrix of its square has more than 200,000 numbers


def mean_of_squares(b, of):
    """mean(rms(of)²), which is 1."""
    n = b.normalize("rms", of, 0)
    return b.times(b.dot(n, n), 1 / of.size)


def sum_of_shares(b, of):
    """The mean of a softmax, times its size."""
    shares = b.softmax(of)
    ones = b.setting("ones", [1.0] * of.size) if of.size < 600 else None
    return b.dot(ones, shares)


def squares_of_unit(b, of):
    """The sum of the squares of what an l2 norm gives."""
    n = b.normalize("l2", of, 0)
    return b.dot(n, n)


def mean_of_layer_norm(b, of):
    """mean(layer norm²), which is 1."""
    n = b.normalize("layer", of, 0)
    return b.times(b.dot(n, n), 1 / of.size)


def root_of_size(b, of):
    """‖rms(of)‖ by its largest size: the square of a norm times 1/√d, twice."""
    n = b.times(b.normalize("rms", of, 0), of.size ** -0.5)
    return b.dot(n, n)


def ratio_of_sizes(b, of):
    """Half as many entries, each twice: the mean square by the number of halves."""
    half = b.slice(of, 0, of.size // 2)
    n = b.normalize("rms", half, 0)
    return b.times(b.dot(n, n), 2 / of.size)


def in_two_steps(b, of):
    """mean(rms(of)²) by factors that are no powers of the size."""
    n = b.normalize("rms", of, 0)
    return b.times(b.times(b.dot(n, n), 2.0**-15), 2.0**15 / of.size)


ONES = [mean_of_squares, squares_of_unit, mean_of_layer_norm, root_of_size, ratio_of_sizes, sum_of_shares]


def less_one(b, ones, of):
    return b.sub(ones(b, of), b.number("one", 1))


def patched_branch_vanishes(ones, off=0.0):
    """The only patchable branch is times a 1 − 1; or not, where `off` is added."""
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    z = less_one(b, ones, b.x)
    if off:
        z = b.add(z, b.number("off", off))
    return b.text(b.add(v, b.mul(b.matrix("down", WIDTH, v), z)))


def context_vanishes(ones, off=0.0):
    """What the context changes is times 1 − 1, so that a bounded branch suffices; or not."""
    b = Block(WIDTH)
    z = less_one(b, ones, b.x)
    if off:
        z = b.add(z, b.number("off", off))
    v = b.add(b.x, b.mul(b.context(), z))
    return b.text(b.add(v, b.softcap(b.matrix("down", WIDTH, v), 3)))


def context_vanishes_beside_a_bounded_one(ones):
    """Another change of the context stays within reach of the bounded branch."""
    b = Block(WIDTH)
    gone = b.mul(b.context(), less_one(b, ones, b.x))
    small = b.times(b.activation("tanh", b.context(name="other")), 0.01)
    v = b.add(b.add(b.x, gone), small)
    return b.text(b.add(v, b.softcap(b.matrix("down", WIDTH, v), 3)))


def cases():
    for ones in ONES:
        name = ones.__name__.replace("_", " ")
        yield f"{name}, patched", patched_branch_vanishes(ones), [NONE]
        yield f"{name}, patched, off", patched_branch_vanishes(ones, off=0.25), [MAYBE]
        yield f"{name}, context", context_vanishes(ones), [MAYBE]
        yield f"{name}, context, off", context_vanishes(ones, off=0.25), [NONE]
        yield f"{name}, beside", context_vanishes_beside_a_bounded_one(ones), [MAYBE]
    yield "in two steps, patched", patched_branch_vanishes(in_two_steps), [NONE]
    yield "in two steps, context", context_vanishes(in_two_steps), [MAYBE]
