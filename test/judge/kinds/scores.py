"""Attention whose scores have a number of the key added, whatever the query: an entry more of each key."""
import torch
from common import WIDTH, Block, Model
from torch import nn

HEADS = 4


def causal(t):
    return torch.full((t, t), float("-inf")).triu(1)


def repeated(x, count):
    """Of heads of keys, for the queries of each: (1, groups, t, t) as (1, heads, t, t)."""
    return x[:, :, None].expand(-1, -1, count, -1, -1).reshape(1, HEADS, *x.shape[2:])


# What is added to products of queries and keys (1, heads, t, t), of numbers (1, groups, t) of the keys.
ADDED = {
    "in front of the mask": lambda s, n, c: s + n[:, :, None] + c,
    "behind the mask": lambda s, n, c: s + c + n[:, :, None],
    "with the mask": lambda s, n, c: s + (n[:, :, None] + c),
    "where seen": lambda s, n, c: s + n[:, :, None].expand(-1, -1, s.shape[2], -1).masked_fill(c != 0, -1e38),
    "before a factor": lambda s, n, c: (s * 2 + n[:, :, None]) * 0.25 + c,
    "less": lambda s, n, c: s + -2 * n[:, :, None] + c,
}


class Scored(nn.Module):
    def __init__(self, added, groups, numbers, repeats=False):
        super().__init__()
        self.inner, self.keys, self.values = Block(), nn.Linear(WIDTH, groups * WIDTH // HEADS), nn.Linear(WIDTH, groups * WIDTH // HEADS)
        self.numbers, self.added, self.groups, self.repeats = nn.Linear(WIDTH, numbers), added, groups, repeats

    def forward(self, x):
        t, each = x.shape[1], HEADS // self.groups
        q = self.inner.attention.qkv(x)[..., :WIDTH].view(1, t, HEADS, -1).transpose(1, 2)
        k, v = (part(x).view(1, t, self.groups, -1).transpose(1, 2) for part in (self.keys, self.values))
        k, v = (part[:, :, None].expand(-1, -1, each, -1, -1).reshape(1, HEADS, t, -1) for part in (k, v))
        numbers, mask = torch.exp(self.numbers(x)).transpose(1, 2), causal(t)
        scores = q @ k.transpose(2, 3) * 0.5
        if self.repeats:
            mask = numbers[:, :, None].expand(-1, -1, t, -1).masked_fill(mask != 0, -1e38)
            scores = scores + repeated(mask, each)
        else:
            scores = self.added(scores, numbers, mask)
        x = x + (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        return x + self.inner.mlp(x)


def scored(added, groups=HEADS, numbers=None, **options):
    return lambda: Model(lambda: Scored(added, groups, groups if numbers is None else numbers, **options))


CASES = {}
for _name, _added in ADDED.items():
    CASES[_name] = scored(_added), None
    CASES[f"{_name}, one for all heads"] = scored(_added, 2, 1), None
CASES["of heads of keys"] = scored(None, 2, 2, repeats=True), None
CASES["of the query"] = scored(lambda s, n, c: s + n.transpose(1, 2)[:, None, :, :1] + c), None


def generated(choose):
    name, groups, of = choose(ADDED), choose([1, 2, 4]), choose([1, HEADS])
    return f"{name}, {groups} heads of keys, {of} numbers", scored(ADDED[name], groups, of)(), None
