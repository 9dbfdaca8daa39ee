"""What a module makes of its tokens' positions: values of constants and of stored tensors, with an entry for each token.
Read as the first token's entry, they would give other logits."""
import torch
from common import ROWS, WIDTH, Block, Model
from torch import nn
from torch.nn import functional as F


def numbers(t):
    """Positions as integers, (tokens,), by what makes them."""
    return {
        "arange": lambda m: torch.arange(t),
        "from 3": lambda m: torch.arange(3, t + 3),
        "plus 2": lambda m: torch.arange(t) + 2,
        "of a buffer": lambda m: m.ids[:t],
        "of a buffer from 3": lambda m: m.ids[3:t + 3],
        "of a permuted buffer": lambda m: m.mixed[:t],
        "sums of ones": lambda m: torch.ones(t, dtype=torch.long).cumsum(0) - 1,
        "sums of a full": lambda m: torch.full((1, t), 1).cumsum(-1)[0],
        "even": lambda m: torch.arange(0, 2 * t, 2) % ROWS,
        "twice": lambda m: torch.arange(t) * 2 % ROWS,
        "of floats": lambda m: torch.arange(0, t, dtype=torch.float).long(),
        "halves": lambda m: torch.arange(t) // 2,
        "remainders": lambda m: torch.arange(t) % 4,
        "not more than 5": lambda m: torch.arange(t).clamp(max=5),
        "rows of ones": lambda m: torch.tril(torch.ones(t, t, dtype=torch.long)).sum(1) - 1,
    }


def tables(t):
    """Rows, (tokens, WIDTH), of stored tensors."""
    return {
        "first": lambda m: m.rows[:t],
        "from 3": lambda m: m.rows[3:t + 3],
        "narrow": lambda m: m.rows.narrow(0, 0, t),
        "of one sequence": lambda m: m.rows3[:, :t][0],
        "of a buffer": lambda m: m.fixed[:t],
        "columns": lambda m: m.rows.t()[:, :t].t()[:, :WIDTH],
        "halved": lambda m: (m.rows * 0.5)[:t],
        "a sum": lambda m: m.rows[:t] + m.fixed[:t],
        "squares": lambda m: m.rows[:t].square(),
        "two tables": lambda m: torch.cat([m.rows[:4], m.fixed])[:t],
        "every other": lambda m: m.rows[::2][:t],
    }


def uses(t):
    """How a value of (tokens,) changes x of (1, tokens, WIDTH)."""
    return {
        "rows": lambda m, x, p: x + m.rows[p],
        "an embedding": lambda m, x, p: x + F.embedding(p.unsqueeze(0), m.rows),
        "a factor": lambda m, x, p: x * (1 + 0.1 * p.float())[None, :, None],
        "a divisor": lambda m, x, p: x / (p + 1).view(1, -1, 1),
        "a logarithm": lambda m, x, p: x * torch.log(p.float() + 2).unsqueeze(-1),
        "a wave": lambda m, x, p: x + torch.outer(p.float(), m.waves).sin(),
        "waves in turn": lambda m, x, p: x + torch.stack([(p[:, None] * m.waves[:4]).sin(), (p[:, None] * m.waves[:4]).cos()],
                                                         -1).flatten(1),
    }


class Positions(Model):
    """`how(module, x, tokens)` changes the embeddings, or what a block adds."""

    def __init__(self, how, inside=False):
        first = None if inside else lambda m, x, ids: how(m, x, ids.shape[1])
        super().__init__((lambda: With(how)) if inside else Block, 1, first)
        fill(self)


def fill(module):
    module.rows, module.rows3 = nn.Parameter(torch.randn(ROWS, WIDTH)), nn.Parameter(torch.randn(1, ROWS, WIDTH))
    module.register_buffer("fixed", torch.randn(ROWS, WIDTH))
    module.register_buffer("ids", torch.arange(ROWS))
    module.register_buffer("mixed", torch.randperm(ROWS))
    module.register_buffer("waves", 10.0 ** (-torch.arange(WIDTH) / WIDTH))


class With(Block):
    def __init__(self, how):
        super().__init__(lambda block, y: how(block, y, y.shape[1]))
        fill(self)


class Turned(nn.Module):
    """A block whose queries and keys are turned by tables of (tokens, WIDTH / 2)."""

    def __init__(self, how):
        super().__init__()
        self.inner, self.how = Block(), how
        angles = torch.outer(torch.arange(ROWS).float(), 100.0 ** (-torch.arange(0, WIDTH, 2).float() / WIDTH))
        self.register_buffer("c", angles.cos())
        self.register_buffer("s", angles.sin())
        self.register_buffer("z", torch.polar(torch.ones_like(angles), angles))
        self.register_buffer("other", torch.randn(ROWS, WIDTH // 2))
        self.both = nn.Parameter(torch.cat([angles.cos(), angles.sin()], -1))  # as RoFormer stores them

    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.inner.attention.qkv(x).chunk(3, -1)
        q, k = self.how(self, q, t), self.how(self, k, t)
        x = x + F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]
        return x + self.inner.mlp(x)


def halves(y, c, s):
    a, b = y.chunk(2, -1)
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def angles(t):
    return torch.outer(torch.arange(t).float(), 100.0 ** (-torch.arange(0, WIDTH, 2).float() / WIDTH))


def in_pairs(y, c, s):
    """Each number of a row for two entries side by side."""
    c, s = (torch.stack([x, x], -1).reshape(1, -1, WIDTH) for x in (c, s))
    return y * c + torch.stack([-y[..., 1::2], y[..., ::2]], -1).reshape(y.shape) * s


TURNS = {
    "parts of rows": lambda m, y, t: halves(y, *F.embedding(torch.arange(t), m.both).chunk(2, -1)),
    "parts of rows in pairs": lambda m, y, t: in_pairs(y, *F.embedding(torch.arange(t), m.both)[None].chunk(2, -1)),
    "parts of rows from 1": lambda m, y, t: in_pairs(y, *F.embedding(torch.arange(1, t + 1), m.both).chunk(2, -1)),
    "parts of rows, shifted": lambda m, y, t: in_pairs(y, *F.embedding(torch.arange(t + 1), m.both)[1:].chunk(2, -1)),
    "parts of a sum of rows": lambda m, y, t: in_pairs(
        y, *(F.embedding(torch.arange(t), m.both) + F.embedding(torch.arange(t) + 2, m.both)).split(WIDTH // 2, -1)),
    "sliced": lambda m, y, t: halves(y, m.c[:t], m.s[:t]),
    "narrowed": lambda m, y, t: halves(y, m.c.narrow(0, 0, t), m.s.narrow(0, 0, t)),
    "from 3": lambda m, y, t: halves(y, m.c[3:t + 3], m.s[3:t + 3]),
    "indexed": lambda m, y, t: halves(y, m.c[torch.arange(t)], m.s[torch.arange(t)]),
    "outer": lambda m, y, t: halves(y, angles(t).cos(), angles(t).sin()),
    "einsum": lambda m, y, t: halves(y, *(f(torch.einsum("i,j->ij", torch.arange(t).float(), m.c[1])) for f in (torch.cos, torch.sin))),
    "from 1": lambda m, y, t: halves(y, *(f(torch.arange(1, t + 1)[:, None] * m.c[1]) for f in (torch.cos, torch.sin))),
    "no rotation": lambda m, y, t: halves(y, m.other[:t], m.s[:t]),
    "a changing table": lambda m, y, t: halves(y, torch.cat([m.c[:20], m.other])[:t], torch.cat([m.s[:20], m.other])[:t]),
    "complex": lambda m, y, t: torch.view_as_real(torch.view_as_complex(y.float().reshape(1, t, -1, 2)) * m.z[:t]).flatten(2),
    "complex indexed": lambda m, y, t: torch.view_as_real(
        torch.view_as_complex(y.float().reshape(1, t, -1, 2)) * m.z[torch.arange(t)]).flatten(2),
}


def of_numbers(name, use, inside):
    return lambda: Positions(lambda m, x, t: uses(t)[use](m, x, numbers(t)[name](m)), inside)


def of_tables(name, inside):
    return lambda: Positions(lambda m, x, t: x + tables(t)[name](m), inside)


class Means(nn.Module):
    """The mean of all tokens so far in place of attention."""

    def __init__(self, divisor):
        super().__init__()
        self.value, self.mlp, self.divisor = nn.Linear(WIDTH, WIDTH), Block().mlp, divisor

    def forward(self, x):
        x = x + self.value(x).cumsum(1) / self.divisor(x.shape[1])
        return x + self.mlp(x)


DIVISORS = {
    "from 1": lambda t: torch.arange(1, t + 1)[None, :, None],
    "plus 1": lambda t: (torch.arange(t) + 1)[None, :, None],
    "sums": lambda t: torch.ones(1, t, 1).cumsum(1),
    "views": lambda t: torch.arange(1, t + 1).view(1, -1, 1).float(),
    "logarithms": lambda t: torch.log(torch.arange(1, t + 1).float() + 1)[None, :, None],
}

REVERSED = r"depends? on (how many|the number of)"

CASES = {}
for _name in numbers(1):
    CASES[f"numbers {_name}"] = of_numbers(_name, "rows", False), None
for _name in tables(1):
    CASES[f"tables {_name}"] = of_tables(_name, False), None
for _use in uses(1):
    CASES[f"uses {_use}"] = of_numbers("from 3", _use, False), None
    CASES[f"uses {_use} inside"] = of_numbers("from 3", _use, True), None
for _name, _how in TURNS.items():
    CASES[f"turns {_name}"] = (lambda how: lambda: Model(lambda: Turned(how), 2))(_how), None
for _name, _divisor in DIVISORS.items():
    CASES[f"means {_name}"] = (lambda d: lambda: Model(lambda: Means(d)))(_divisor), None
# A token's value changes when another one follows: no run that goes on can have it.
CASES["reversed"] = lambda: Positions(lambda m, x, t: x + m.rows[torch.arange(t - 1, -1, -1)]), REVERSED
CASES["reversed inside"] = lambda: Positions(lambda m, x, t: x * torch.arange(t).flip(0)[None, :, None], True), REVERSED
CASES["shares"] = lambda: Positions(lambda m, x, t: x * (torch.arange(t) / t)[None, :, None], True), REVERSED
CASES["the number"] = lambda: Positions(lambda m, x, t: x * t, True), REVERSED
CASES["the number outside"] = lambda: Positions(lambda m, x, t: x / t), REVERSED
# A length in the file that is no more than that of the example.
CASES["a whole table"] = lambda: (Positions(lambda m, x, t: x + m.rows[:13]), torch.zeros(1, 13, dtype=torch.long)), None


def generated(choose):
    """Another module of the kind."""
    name, use = choose(numbers(1)), choose(uses(1))
    inside = choose([False, True])
    if choose([False, True]):
        shift = choose([1, 2, 5])
        return f"{name} + {shift}, {use}, {inside}", (Positions(
            lambda m, x, t: uses(t)[use](m, x, (numbers(t)[name](m) + shift) % ROWS), inside)), None
    first, second = choose(tables(1)), choose(tables(1))
    factor = choose([0.5, 2.0, -1.0])
    return f"{first} + {factor} * {second}, {inside}", (Positions(
        lambda m, x, t: x + tables(t)[first](m) + factor * tables(t)[second](m), inside)), None
