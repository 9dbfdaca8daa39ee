"""Casts to narrower types: ctxc rounds where PyTorch does."""
import torch
from common import WIDTH, Block, Model
from torch.nn import functional as F


class Cast(Block):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        return self.how(self, x + self.attention(x))


def of(how):
    return lambda: Model(lambda: Cast(how))


def rounded(x, to=torch.bfloat16):
    return x.to(to).to(torch.float32)


CASES = {
    "the branch": (of(lambda b, v: v + rounded(b.mlp(v))), None),
    "the branch, to float16": (of(lambda b, v: v + rounded(b.mlp(v), torch.float16)), None),
    "the stream": (of(lambda b, v: rounded(v + b.mlp(v))), None),
    "what is read": (of(lambda b, v: v + b.mlp(rounded(v))), None),
    "twice": (of(lambda b, v: rounded(v) + rounded(b.mlp(rounded(F.layer_norm(v, (WIDTH,)))))), None),
}


def generated(choose):
    to, where = choose([torch.bfloat16, torch.float16]), choose(["inside", "behind", "both"])

    def how(b, v):
        z = v if where == "behind" else rounded(v, to)
        d = b.mlp(z)
        return v + (d if where == "inside" else rounded(d, to))

    return f"{to} {where}", of(how), None
