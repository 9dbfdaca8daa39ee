#!/usr/bin/env python3
"""Judges ctxc's verdicts on random blocks by numpy, which computes them from a model of its own.

  numpy_verdicts.py CTXC FIRST COUNT

A block for each seed from FIRST on. Ends with counts by kind and by verdict; exit code 1 where a verdict is false."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # its threads wait for matrices of four rows longer than they compute
import numpy as np  # noqa: E402
from numpy_blocks import ACTIVATIONS, Block, dense  # noqa: E402
from numpy_judge import judge  # noqa: E402

SMOOTH = ("gelu", "gelu_tanh", "silu", "quick_gelu", "sigmoid", "tanh", "exp", "softplus")
EACH = 128  # blocks that are checked together
PIECEWISE = ("relu", "relu2", "abs", "sqrt")


def orthogonal(n, rng):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


class Maker:
    """One random block. `kinds` says what is in it."""

    def __init__(self, seed, by_layer):
        self.rng = rng = np.random.default_rng(seed)
        self.later = np.random.default_rng([seed, 1])  # of what was added later: the same seed makes the same block around it
        self.by_layer, self.kinds, self.names = by_layer, set(), 0
        self.width = 4 if by_layer else int(rng.choice([1, 2, 3, 4, 6]))
        if not by_layer and rng.random() < 0.01:
            self.width = 460  # its matrices have more numbers than blocks that are tried as they are
            self.kinds.add("sizes above the limit")
        self.block = b = Block(self.width, f"b{seed}")
        source = b.x if rng.random() < 0.7 else self.matrix(b.x, self.width, self.pick(None, "shared"))
        self.a = b.conv(source, self.fresh("conv"))
        self.v = b.add(b.x, self.a)

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def fresh(self, name):
        self.names += 1
        return f"{name}{self.names}"

    def setting(self, name, make):
        """Numbers of the block; or of each layer, which differ."""
        if self.by_layer and self.rng.random() < 0.7:
            self.kinds.add("settings of layers")
            return self.block.setting(self.fresh(name), [make() for _ in range(2)], by_layer=True)
        self.kinds.add("known constants")
        return self.block.setting(self.fresh(name), make())

    def vector(self, n):
        kind = self.pick("signs", "zeros", "some", "normal", "ones", "size")
        if kind == "size":
            self.kinds.add("numbers that fit sizes")
        rng = self.rng
        return {"signs": lambda: rng.choice([-1.0, 1.0], n), "zeros": lambda: np.zeros(n), "some": lambda: rng.choice([0.0, 1.0], n),
                "normal": lambda: rng.standard_normal(n), "ones": lambda: np.ones(n), "size": lambda: np.full(n, 1 / n)}[kind]()

    def square(self, n):
        rng = self.rng
        kind = self.pick("orthogonal", "normal", "deficient", "zeros", "identity", "sums")
        deficient = np.outer(rng.choice([-1.0, 1.0], n), rng.choice([-1.0, 1.0, 0.0], n))
        return {"orthogonal": lambda: orthogonal(n, rng), "normal": lambda: rng.standard_normal((n, n)), "deficient": lambda: deficient,
                "zeros": lambda: np.zeros((n, n)), "identity": lambda: np.eye(n), "sums": lambda: np.tril(np.ones((n, n)))}[kind]()

    def matrix(self, x, out, name=None):
        known = self.block.parameters().get(name)
        if known and known.shape != (out, x.shape[-1]):
            name = None
        return self.block.linear(self.block.param(name or self.fresh("w"), out, x.shape[-1]), x)

    def unknown(self, *shape):
        self.kinds.add("unknown constants")
        return self.block.param(self.fresh("c"), *shape, flags=" frozen constant")

    def function(self, x):
        """Something entry by entry."""
        b, rng = self.block, self.rng
        kind = self.pick("smooth", "piecewise", "cap", "clamp", "leaky", "power", "square", "odd", "rest", "ratio", "shift")
        self.is_piecewise = kind in ("piecewise", "clamp", "leaky")
        self.kinds.add("piecewise functions" if self.is_piecewise else "smooth functions")
        if kind == "smooth":
            return b.activation(self.pick(*SMOOTH), x)
        if kind == "piecewise":
            return b.activation(self.pick(*PIECEWISE), x)
        if kind == "cap":
            return b.unary("softcap @ at 3.0", x, lambda a: 3 * np.tanh(a / 3))
        if kind == "clamp":
            if rng.random() < 0.5:
                return b.unary("clamp @ to 1.0", x, lambda a: np.clip(a, -1, 1))
            return b.unary("clamp @ to 1.0 above", x, lambda a: np.minimum(a, 1))
        if kind == "leaky":
            return b.unary("leaky @ by 0.5", x, lambda a: np.where(a > 0, a, a / 2))
        if kind == "power":
            n = self.pick(2, 3)
            if rng.random() < 0.3:
                return b.unary(f"power @ to {n} root", x, lambda a: np.sign(a) * np.abs(a) ** (1 / n))
            return b.unary(f"power @ to {n}", x, lambda a: np.sign(a) * np.abs(a) ** n)
        if kind == "square":
            return self.pick(b.add, b.sub, b.mul)(x, b.mul(x, x))
        act = self.pick(*ACTIVATIONS)
        if kind == "odd":
            return self.pick(b.add, b.sub)(b.activation(act, x), b.activation(act, b.times(x, -1)))
        if kind == "rest":
            return self.pick(b.add, b.sub, b.mul)(x, b.activation(act, x))
        ones = b.setting(self.fresh("one"), np.full(x.shape, float(self.pick(1, 2, 0.5))))
        if kind == "shift":
            return b.add(b.activation(act, x), ones)
        return b.div(x, b.add(b.activation(self.pick("abs", "exp", "softplus", "sigmoid"), x), ones))

    def known(self, x):
        """With numbers that are a part of the block."""
        b, n = self.block, x.shape[0]
        kind = self.pick("mul", "add", "linear", "rotary", "permute", "unknown mul", "unknown add", "unknown linear", "times", "div")
        if kind == "linear" and n < 64:
            return b.linear(self.setting("M", lambda: self.square(n)), x)
        if kind == "rotary" and n % 2 == 0 and n < 64:
            f = self.setting("f", lambda: self.rng.choice([0.0, 1.0, 0.5], n // 2))
            return b.rotary(x, f, self.pick("half", "interleaved"), self.pick(1.0, 2.0))
        if kind == "permute" and n < 64:
            return b.permute(x, [int(i) for i in self.rng.permutation(n)])
        if kind == "unknown mul":
            return b.scale(x, self.unknown(n))
        if kind == "unknown add":
            return b.bias(x, self.unknown(n))
        if kind == "unknown linear" and n < 64:
            return b.linear(self.unknown(n, n), x)
        if kind == "times":
            self.kinds.add("numbers that fit sizes")
            return b.times(x, self.pick(1.0 / n, float(n), -1.0, 0.5, 0.0))
        if kind == "add":
            return b.add(x, self.setting("shift", lambda: self.vector(n)))
        if kind == "div":
            return b.div(x, self.setting("by", lambda: self.vector(n)))
        return b.mul(x, self.setting("mask", lambda: self.vector(n)))

    def joined(self, x):
        """With another value of the block, or of a part of itself."""
        b, rng, n = self.block, self.rng, x.shape[0]
        kind = self.pick("gate", "norm", "difference", "sum", "dot", "halves", "round", "direction", "masks")
        if kind == "norm":
            return b.normalize(self.pick("rms", "layer", "l2", "sum"), x, self.pick(0.0, 1e-5))
        if kind == "round":
            self.kinds.add("casts")
            return b.unary(f"round @ to {self.pick('bf16', 'f16')}", x, lambda a: a)
        other = self.pick(b.x, self.v, x)
        if kind == "gate":
            factor = self.function(self.matrix(other, n) if rng.random() < 0.5 else other)
            self.kinds.add("piecewise factors" if self.is_piecewise else "smooth factors")
            return b.mul(x, factor)
        if kind == "direction":
            self.kinds.add("directions")
            number = self.matrix(other, 1)
            if rng.random() < 0.7:
                number = b.activation(self.pick("exp", "exp", "softplus", "sigmoid"), number)
            return self.pick(b.mul, b.mul, b.div)(b.normalize(self.pick("rms", "l2"), x, self.pick(0.0, 1e-5)), number)
        if kind == "masks":
            self.kinds.add("masks")
            mask = rng.choice([0.0, 1.0], n)
            rest = b.setting(self.fresh("m"), (1 - mask if rng.random() < 0.7 else rng.choice([0.0, 1.0], n)) * self.pick(1, 2, -0.5))
            return self.pick(b.add, b.sub)(b.mul(x, b.setting(self.fresh("m"), mask)), b.mul(rest, self.matrix(other, n)))
        if kind == "dot":
            self.kinds.add("numbers that fit sizes")
            number = b.combine(other, b.reshape(x, n, 1))
            return b.mul(x, b.times(number, 1.0 / n))
        if kind == "halves" and n % 2 == 0:
            first, second = b.slice(x, 0, n // 2), b.slice(x, n // 2, n // 2)
            return b.concat(first, self.pick(b.add, b.mul)(second, first)) if rng.random() < 0.5 else b.concat(second, first)
        return self.pick(b.add, b.sub)(x, other)

    def changed(self, x, most):
        for _ in range(int(self.rng.integers(most + 1))):
            x = self.pick(self.function, self.known, self.joined)(x)
        return x

    def site(self, x, n):
        b, rng = self.block, self.rng
        kind = self.pick("matrix", "matrix", "matrix", "bias", "scale", "two", "transpose")
        if kind == "bias" and x.shape[0] == n:
            return b.bias(x, b.param(self.fresh("bias"), n))
        if kind == "scale" and x.shape[0] == n:
            return b.scale(x, b.param(self.fresh("scale"), n), self.pick(0.0, 1.0))
        if kind == "transpose" and x.shape[0] == n and n < 64:
            self.kinds.add("transposes")
            w = b.param(self.fresh("w"), n, n)
            if rng.random() < 0.5:
                return b.linear(w, b.linear(w, x), transposed=True)
            return self.pick(b.add, b.sub)(b.linear(w, x), b.linear(w, x, transposed=True))
        if kind == "two":
            inner = self.function(self.matrix(x, int(self.pick(1, 2, 2 * n))))
            return self.matrix(inner, n)
        return self.matrix(x, n, self.pick(None, None, None, "shared"))

    def twice(self, x):
        """The same op of two values that floating point makes one on an open set, or multiples, added."""
        b, rng, n = self.block, self.later, x.shape[0]
        self.kinds.add("the same op twice")
        kind = rng.choice(["scale", "linear", "rotary", "gate", "function"])
        if kind == "scale":
            m = b.param(self.fresh("twice"), n)
            same = lambda h: b.scale(h, m)  # noqa: E731
        elif kind == "linear":
            w = b.param(self.fresh("twice"), n, n)
            same = lambda h: b.linear(w, h)  # noqa: E731
        elif kind == "rotary" and n % 2 == 0:
            f = b.setting(self.fresh("f"), rng.choice([0.0, 1.0, 0.5], n // 2))
            same = lambda h: b.rotary(h, f, "half", 1.0)  # noqa: E731
        elif kind == "gate":
            gate = self.matrix(self.v, n)
            same = lambda h: b.mul(h, gate)  # noqa: E731
        else:
            act = str(rng.choice(list(ACTIVATIONS)))
            same = lambda h: b.activation(act, h)  # noqa: E731
        near = b.mul(x, b.activation(str(rng.choice(["tanh", "sigmoid"])), self.matrix(self.v, n)))
        return b.add(same(near), b.times(same(x), float(rng.choice([1, -1, -1, -2]))))

    def make(self):
        b, n = self.block, self.width
        inside, behind = (1, 1) if n > 64 else (2, 2)
        d = self.changed(self.site(self.changed(self.v, inside), n), behind)
        # Layers that are only a mixer, as with a matrix behind a convolution, are joined with the next.
        if not self.by_layer and self.rng.random() < 0.1:
            self.kinds.add("convolutions behind")
            d = b.conv(d, self.fresh("behind"), behind=True)
            how = self.pick("nothing", "scale", "bias", "matrix")
            if how == "matrix":
                d = self.matrix(d, n)
            elif how != "nothing":
                d = (b.scale if how == "scale" else b.bias)(d, b.param(self.fresh(how), n))
        if n < 64 and self.later.random() < 0.1:
            d = self.twice(d)
            if self.later.random() < 0.7:  # a divisor, entry by entry
                d = b.scale(d, b.param(self.fresh("scale"), n))
        y = self.pick(b.add, b.add, b.add, b.sub)(self.v, d)
        if self.rng.random() < 0.15:
            y = self.changed(y, 1)
        b.outputs = [y]
        if not self.by_layer and self.rng.random() < 0.1:
            self.kinds.add("two outputs")
            b.outputs.append(self.pick(self.a, d, self.v, b.add(b.x, d)))
        return b


def model_of(makers):
    """A model that runs each block in two layers."""
    table, of = "tensor<31x4xf32>", "tensor<4xf32>"
    lines, stream = [], "%x"
    for i, maker in enumerate(makers):
        b = maker.block
        for layer in range(2):
            given = {op.setting: op.values[layer] for op in b.ops if op.kind == "setting" and op.by_layer}
            text = ", ".join(f"{name} = {dense(v)}" for name, v in given.items())
            settings = f" settings {{{text}}}" if given else ""
            lines.append(f'  %y{i}_{layer} = xf.layer @{b.name}({stream}) at "l{2 * i + layer}."{settings} : ({of}) -> {of}')
            stream = f"%y{i}_{layer}"
    head = f'xf.model @m {{\n  %E = xf.param "embed" : {table}\n  %id = xf.token : tensor<i32>\n  %x = xf.embed %E[%id] : {table}, tensor<i32>\n'
    return head + "\n".join(lines) + f"\n  xf.yield {stream} : {of}\n}}\n"


def layers_in(text):
    for part in text.split(", "):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def checked(ctxc, folder, text):
    """The claims of a proof, each with its layers or blocks; or the blocks of which none was made."""
    path, proof = os.path.join(folder, "blocks.mlir"), os.path.join(folder, "proof.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if os.path.exists(proof):
        os.remove(proof)
    done = subprocess.run([ctxc, "check", path, "--proof", proof], capture_output=True, text=True, check=False)
    if not os.path.exists(proof):
        unproven = re.findall(r"block '(\w+)', layers [^:]*: is rejected, and no weights", done.stderr)
        if done.returncode in (1, 2) and unproven:
            return [], unproven
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}\n{text}")
    with open(proof, encoding="utf-8") as file:
        blocks = json.load(file)["blocks"]
    return [(layer, claim) for claim in blocks for layer in layers_in(claim["layers"])], []


def claims_of(ctxc, folder, makers, by_layer):
    """Each claim with its maker and its layer there. Where numbers overflow, a rejection has no proof: then the others are
    checked without it."""
    while makers:
        text = "".join(maker.block.text() for maker in makers) + (model_of(makers) if by_layer else "")
        claims, unproven = checked(ctxc, folder, text)
        if not unproven:
            each = 2 if by_layer else 1
            return [(makers[layer // each], layer % each, claim) for layer, claim in claims]
        makers = [maker for maker in makers if maker.block.name not in unproven]
    return []


def run(ctxc, first, count, folder):
    counts, false = collections.Counter(), []
    by_layer = first // EACH % 4 == 3
    makers = [Maker(seed, by_layer) for seed in range(first, first + count)]
    for maker in makers:
        maker.make()
    claims = claims_of(ctxc, folder, makers, by_layer)
    for maker, layer, claim in claims:
        assert claim["block"] == maker.block.name, (claim["block"], maker.block.name, layer)
        seed = int(maker.block.name[1:])
        wrong = judge(maker.block, claim, layer, seed)
        counts[claim["verdict"]] += 1
        for kind in maker.kinds:
            counts[f"with {kind}"] += 1
            counts[f"false with {kind}"] += bool(wrong)
        if wrong:
            false.append(seed)
            said = {key: value for key, value in claim.items() if key != "text"}
            print(f"seed {seed}, {claim['verdict']}: {wrong}\n{maker.block.text()}{json.dumps(said)}", flush=True)
    counts["without a proof"] += len(makers) - len({maker.block.name for maker, _, _ in claims})
    counts["cases"] += count
    counts["false verdicts"] += len(false)
    return counts


def main(ctxc, first, count):
    total = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(first, first + count, EACH):
            total += run(ctxc, begin, min(EACH, first + count - begin), folder)
    total["false verdicts"] += 0
    print("seeds of a run:")
    for what, number in sorted(total.items()):
        if number or not what.startswith("false with"):
            print(f"  {number} {what}")
    return total["false verdicts"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
