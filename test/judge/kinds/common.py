"""Parts that the modules here are made of: small, and of one width."""
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, WORDS, ROWS = 8, 23, 32


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Block(nn.Module):
    """`change(block, y)` gives another y, of what attention adds to x."""

    def __init__(self, change=None):
        super().__init__()
        self.attention, self.mlp, self.change = Attention(), Mlp(), change

    def forward(self, x):
        y = self.attention(x)
        x = x + (y if self.change is None else self.change(self, y))
        return x + self.mlp(x)


class Model(nn.Module):
    """`first(model, x, ids)` changes the embeddings; blocks are `count` of what `make` gives."""

    def __init__(self, make=Block, count=1, first=None):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(make() for _ in range(count))
        self.head, self.first = nn.Linear(WIDTH, WORDS), first

    def forward(self, input_ids):
        x = self.embed(input_ids)
        if self.first is not None:
            x = self.first(self, x, input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
