"""Models whose layers stand in no list: one block as an attribute or several, attention in a block's own forward or in a part,
and layers whose attention and MLP the model itself adds to the stream."""
import torch
from common import WIDTH, WORDS, Attention, Mlp
from torch import nn
from torch.nn import functional as F


def scored(q, k, v):
    """Attention in so many words."""
    seen = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).tril()
    return (q @ k.transpose(1, 2) / WIDTH**0.5).masked_fill(~seen, float("-inf")).softmax(-1) @ v


def fused(q, k, v):
    return F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]


def before(norm, x, branch):
    return x + branch(norm(x))


def behind(norm, x, branch):
    return norm(x + branch(x))


def around(norm, x, branch):
    return x + norm(branch(x))


def without(norm, x, branch):
    return x + branch(x)


class Inline(nn.Module):
    """Attention in its own forward; `sum` adds a branch to the stream, and a `parallel` MLP reads what attention reads."""

    def __init__(self, attend=scored, sum=before, parallel=False):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.n1, self.n2, self.up, self.down = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)
        self.attend, self.sum, self.parallel = attend, sum, parallel

    def attention(self, x):
        return self.o(self.attend(self.q(x), self.k(x), self.v(x)))

    def mlp(self, x):
        return self.down(F.silu(self.up(x)))

    def forward(self, x):
        if self.parallel:
            return self.sum(self.n1, x, lambda y: self.attention(y) + self.mlp(y))
        return self.sum(self.n2, self.sum(self.n1, x, self.attention), self.mlp)


class Parted(nn.Module):
    """The same with a module for each part."""

    def __init__(self, _=None, sum=before, parallel=False):
        super().__init__()
        self.attention, self.mlp, self.n1, self.n2 = Attention(), Mlp(), nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.sum, self.parallel = sum, parallel

    forward = Inline.forward


class Half(nn.Module):
    """One branch with its sum: a layer is two of these."""

    def __init__(self, branch, sum):
        super().__init__()
        self.branch, self.norm, self.sum = branch, nn.RMSNorm(WIDTH), sum

    def forward(self, x):
        return self.sum(self.norm, x, self.branch)


class Own(Attention):
    """Attention by itself, with a part that it computes in its own forward."""

    def forward(self, x):
        return scored(*self.qkv(x).chunk(3, -1))


class Inner(nn.Module):
    """Attention by itself, whose scores a part of it computes."""

    def __init__(self):
        super().__init__()
        self.qkv, self.core = nn.Linear(WIDTH, 3 * WIDTH), Core()

    def forward(self, x):
        return self.core(*self.qkv(x).chunk(3, -1))


class Core(nn.Module):
    def forward(self, q, k, v):
        return fused(q, k, v)


class Body(nn.Module):
    """Blocks as attributes of these names, run in turn and `runs` times."""

    def __init__(self, blocks, runs=1):
        super().__init__()
        for name, block in blocks.items():
            setattr(self, name, block)
        self.names, self.runs = list(blocks), runs

    def forward(self, x):
        for _ in range(self.runs):
            for name in self.names:
                x = getattr(self, name)(x)
        return x


class Added(Body):
    """The model adds what attention and the MLP give."""

    def __init__(self, blocks, sum, parallel):
        super().__init__(blocks)
        self.sum, self.parallel = sum, parallel
        for name in self.names:
            setattr(self, f"{name}_norm", nn.RMSNorm(WIDTH))

    def forward(self, x):
        for a, m in zip(self.names[::2], self.names[1::2]):
            first, second = getattr(self, f"{a}_norm"), getattr(self, f"{m}_norm")
            if self.parallel:
                x = self.sum(first, x, lambda y: getattr(self, a)(y) + getattr(self, m)(y))
            else:
                x = self.sum(second, self.sum(first, x, getattr(self, a)), getattr(self, m))
        return x


def language_model(base, **more):
    """`base` is a class of what runs between the embedding and the head; the model itself is such."""

    class Model(base):
        def __init__(self, *given):
            super().__init__(*given)
            self.embed, self.head, self.last = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), more.get("last", nn.Identity)()

        def forward(self, input_ids):
            return self.head(self.last(super().forward(self.embed(input_ids))))
    return Model


NAMES = ("block", "coda", "x2")


def blocks(count, make):
    return {NAMES[i]: make() for i in range(count)}


def halves(count, attention, sum):
    return {f"{'am'[part]}{i}": Half((attention, Mlp)[part](), sum) for i in range(count) for part in range(2)}


def branches(count, attention):
    return {f"{('attn', 'mlp')[part]}{'_' * i}": (attention, Mlp)[part]() for i in range(count) for part in range(2)}


Top, Summed, Itself = language_model(Body), language_model(Added), language_model(Inline)
Normed = language_model(Body, last=lambda: nn.RMSNorm(WIDTH))


class Wrapped(nn.Module):
    """The embedding and the head around a module that has the blocks."""

    def __init__(self, body):
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(WORDS, WIDTH), body, nn.Linear(WIDTH, WORDS)

    def forward(self, input_ids):
        return self.head(self.body(self.embed(input_ids)))


# A layer whose output is a norm's has no patch where the norm has no parameter behind it.
CASES = {
    "a block, attention inline": (lambda: Top(blocks(1, Inline)), None),
    "three blocks, attention inline": (lambda: Top(blocks(3, Inline)), None),
    "in parallel": (lambda: Top(blocks(2, lambda: Inline(fused, before, True))), None),
    "a norm behind": (lambda: Normed(blocks(2, lambda: Inline(scored, behind))), None),
    "a norm before the head": (lambda: Normed(blocks(1, Inline)), None),
    "the model is the block": (lambda: Itself(), None),
    "attention and MLP with their sums": (lambda: Top(halves(2, Own, before)), None),
    "attention and MLP that the model adds": (lambda: Summed(branches(2, Own), before, False), None),
    "attention of parts that the model adds": (lambda: Summed(branches(1, Inner), before, False), None),
    "both that the model adds in parallel": (lambda: Summed(branches(2, Own), before, True), None),
    "a wrapped block": (lambda: Wrapped(Inline()), None),
    "wrapped blocks": (lambda: Wrapped(Body(blocks(2, Inline))), None),
    "a block in a loop": (lambda: Top(blocks(1, Inline), 3), r"run several times with the same parameters"),
}


def generated(choose):
    """Another module of the kind."""
    attend, sum, parallel, count = choose([scored, fused]), choose([before, behind, around, without]), choose([True, False]), choose([1, 2, 3])
    last, form = choose([Top, Normed]), choose(["blocks", "parted", "halves", "added", "itself", "wrapped"])
    name = f"{form}, {count} of {attend.__name__}, {sum.__name__}, {'parallel, ' * parallel}{last is Normed}"
    attention = choose([Own, Inner])
    if form == "halves":
        return f"{name}, {attention.__name__}", last(halves(count, attention, sum)), None
    if form == "added":
        return f"{name}, {attention.__name__}", Summed(branches(count, attention), sum, parallel), None
    if form == "itself":
        return name, Itself(attend, sum, parallel), None
    if form == "wrapped":
        return name, Wrapped(Body(blocks(count, lambda: Inline(attend, sum, parallel)))), None
    return name, last(blocks(count, lambda: (Inline if form == "blocks" else Parted)(attend, sum, parallel))), None
