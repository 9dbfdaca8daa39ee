"""Layers that run several times with the same parameters: looped and recurrent-depth models, with a prelude, with the input
again in each run, with a number of each run's own."""
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, WORDS = 16, 23


class Attention(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn, self.n1, self.n2 = Attention(), nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Looped(nn.Module):
    """`before` layers that run once, then `count` layers that run `runs` times; `again` adds the core's input in each."""

    def __init__(self, runs=3, count=1, before=0, again=False, listed=True):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.prelude = nn.ModuleList(Block() for _ in range(before))
        self.core = nn.ModuleList(Block() for _ in range(count)) if listed else Block()
        self.runs, self.again, self.listed = runs, again, listed

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.prelude:
            x = layer(x)
        first = x
        for run in range(self.runs):
            if self.again and run:
                x = x + first
            for layer in self.core if self.listed else [self.core]:
                x = layer(x)
        return self.head(x)


CASES = {
    "one layer, three times": lambda: Looped(),
    "a module in no list": lambda: Looped(listed=False),
    "a core of two": lambda: Looped(2, 2),
    "behind a prelude": lambda: Looped(3, 1, 2),
    "the input again": lambda: Looped(3, 1, 0, True),
}


def generated(choose):
    """Another module of the kind."""
    given = choose([2, 3, 4]), choose([1, 2, 3]), choose([0, 1]), choose([True, False])
    return f"Looped{given}", lambda: Looped(*given)
