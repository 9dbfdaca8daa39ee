"""Numbers that are rounded to a narrower type: verdicts are those of a program that does not round, and never say more."""
from blocks import Block
from truths import MAYBE, NONE

WIDTH = 4


def rounded(b, x, to="bf16"):
    return b.op(f"round {x.name} to {to}", x.shape)


def block(function):
    b = Block(WIDTH)
    v = b.add(b.x, b.context())
    return b.text(function(b, v, lambda x: b.matrix("down", WIDTH, x)))


def cases():
    yield "the branch", block(lambda b, v, w: b.add(v, rounded(b, w(v)))), [MAYBE]
    yield "the branch, to f16", block(lambda b, v, w: b.add(v, rounded(b, w(v), "f16"))), [MAYBE]
    yield "the stream", block(lambda b, v, w: rounded(b, b.add(v, w(v)))), [MAYBE]
    yield "what is read", block(lambda b, v, w: b.add(v, w(rounded(b, v)))), [MAYBE]
    yield "twice", block(lambda b, v, w: b.add(rounded(b, v), rounded(b, rounded(b, w(v), "f16")))), [MAYBE]
    yield "a gate", block(lambda b, v, w: b.add(v, b.mul(w(v), rounded(b, b.activation("sigmoid", b.matrix("g", WIDTH, b.x)))))), [MAYBE]
    # What rounding leaves of a number is noise, which a patch can multiply, and an idealised program has not.
    yield "the rest", block(lambda b, v, w: b.add(v, w(b.sub(v, rounded(b, v))))), [("undecided", "conditional")]
    yield "the rest of a row", block(lambda b, v, w: b.add(v, w(b.sub(rounded(b, v), rounded(b, v, "f16"))))), [("undecided", "conditional")]
    yield "a bound behind", block(lambda b, v, w: b.add(v, b.softcap(rounded(b, w(v)), 3))), [NONE]
    yield "a bound before", block(lambda b, v, w: b.add(v, rounded(b, b.softcap(w(v), 3)))), [NONE]
    yield "a sum as a factor", block(
        lambda b, v, w: b.add(v, b.mul(w(v), b.sub(*(rounded(b, b.matrix(n, 1, b.x)) for n in "gh"))))
    ), [("undecided", "conditional")]


if __name__ == "__main__":
    print(next(cases())[1])
