"""Layers of one block whose settings differ: what is true of one is not true of the other."""
from blocks import Block, model
from truths import GOOD, MAYBE, NONE


def last_pair_unturned():
    """Frequency 0 leaves a pair as it is, so that what the matrix reads is zero."""
    b = Block(4)
    v = b.add(b.x, b.context())
    turned = b.rotary(v, b.setting("f", shape=(2,)), pairs="interleaved")
    moved = b.slice(b.sub(turned, v), 0, 2)
    return b.text(b.add(v, b.matrix("down", 4, moved))), {"f": [1, 0]}, {"f": [0, 1]}


def matrix_last(width):
    """A constant matrix behind the patched one: the identity, or one whose rows are equal."""
    b = Block(width)
    v = b.add(b.x, b.context())
    d = b.matrix("w", width, v)
    text = b.text(b.add(v, b.linear(b.setting("M", shape=(width, width)), d)))
    whole = [[float(i == j) for j in range(width)] for i in range(width)]
    return text, {"M": whole}, {"M": [whole[0]] * width}


def sums_of_centred_vectors(kind):
    """Weights that add up what a layer norm has centred, in which case it is zero."""
    b = Block(6)
    v = b.add(b.x, b.context())
    u = b.matrix("up", 6, v)
    if kind == "rows":
        parts = b.reshape(b.normalize("layer", b.reshape(u, 2, 3), 1e-6), 6, 1)
    else:
        parts = b.reshape(b.normalize("layer", u, 1e-6), 6, 1)
    s = b.combine(b.setting("w", shape=(6,)), parts)
    text = b.text(b.add(v, b.matrix("down", 6, s)))
    return text, {"w": [1, 2, 3, 1, 2, 4]}, {"w": [1, 1, 1, 3, 3, 3] if kind == "rows" else [2] * 6}


def shares_that_add_up():
    """A softmax whose entries are added up is 1, and minus 1 it is 0."""
    b = Block(4)
    v = b.add(b.x, b.context())
    shares = b.softmax(b.matrix("up", 4, v))
    one = b.number("one", 1)
    s = b.sub(b.dot(b.setting("w", shape=(4,)), shares), one)
    return b.text(b.add(v, b.matrix("down", 4, s))), {"w": [1, 2, 3, 4]}, {"w": [1, 1, 1, 1]}


def product_of_two():
    """a b − c, where b is 1/a and c is 1 in one layer alone."""
    b = Block(4)
    v = b.add(b.x, b.context())
    product = b.mul(b.setting("a", shape=(4,)), b.setting("b", shape=(4,)))
    factor = b.sub(product, b.setting("c", shape=(4,)))
    text = b.text(b.add(v, b.mul(b.matrix("down", 4, v), factor)))
    a, ones = [2, 4, 8, 16], [1, 1, 1, 1]
    return text, {"a": a, "b": ones, "c": ones}, {"a": a, "b": [1 / x for x in a], "c": ones}


def difference_of_copies():
    """M (u, u), where M adds the copies up or takes their difference."""
    b = Block(3)
    v = b.add(b.x, b.context())
    u = b.matrix("up", 3, v)
    s = b.linear(b.setting("M", shape=(3, 6)), b.concat(u, u))
    text = b.text(b.add(v, b.matrix("down", 3, s)))
    sums = [[float(j % 3 == i) for j in range(6)] for i in range(3)]
    differences = [[(1 if j < 3 else -1) * x for j, x in enumerate(row)] for row in sums]
    return text, {"M": sums}, {"M": differences}


def length_of_a_unit():
    """The weighted squares of a norm of length 1."""
    b = Block(4)
    v = b.add(b.x, b.context())
    n = b.normalize("l2", b.matrix("up", 4, v), 0)
    one = b.number("one", 1)
    squares = b.mul(n, n)
    s = b.sub(b.dot(b.setting("w", shape=(4,)), squares), one)
    return b.text(b.add(v, b.matrix("down", 4, s))), {"w": [1, 2, 3, 4]}, {"w": [1, 1, 1, 1]}


def rotated_and_back():
    """Turned by f and then by g: back where it was, if g is −f."""
    b = Block(4)
    v = b.add(b.x, b.context())
    once = b.rotary(v, b.setting("f", shape=(2,)))
    twice = b.rotary(once, b.setting("g", shape=(2,)))
    text = b.text(b.add(v, b.matrix("down", 4, b.sub(twice, v))))
    return text, {"f": [1, 0.5], "g": [1, 0.5]}, {"f": [1, 0.5], "g": [-1, -0.5]}


def cases():
    made = {
        "frequency 0": last_pair_unturned(),
        "matrix of 2": matrix_last(2),
        "matrix of 3": matrix_last(3),
        "sums of rows": sums_of_centred_vectors("rows"),
        "sum of all": sums_of_centred_vectors("all"),
        "shares": shares_that_add_up(),
        "product of two": product_of_two(),
        "copies": difference_of_copies(),
        "unit": length_of_a_unit(),
        "turned back": rotated_and_back(),
    }
    sure = {"frequency 0", "sums of rows", "sum of all", "product of two"}
    for name, (text, good, none) in made.items():
        width = int(text.split("tensor<")[1].split("x")[0])
        may = GOOD if name in sure else MAYBE
        yield f"{name}, good first", model(text, width, [good, none, good]), [may, NONE, may]
        yield f"{name}, good last", model(text, width, [none, good]), [NONE, may]
