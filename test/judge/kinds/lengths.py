"""Norms that are written out at the end of a branch: divided by a length with ε behind the root, or by the larger of the two. Such
a branch is bounded, so that no patch exists, unless a scale follows it; in front of an MLP the norm is any other."""
import torch
from common import WIDTH, Block, Model
from torch import nn
from torch.nn import functional as F

NORMS = {
    "F.normalize": lambda y: F.normalize(y, dim=-1),
    "F.normalize of an axis": lambda y: F.normalize(y, p=2, dim=2, eps=1e-3),
    "the length": lambda y: y / y.norm(dim=-1, keepdim=True),
    "the length and a number": lambda y: y / (y.norm(dim=-1, keepdim=True) + 0.05),
    "its inverse": lambda y: y * (1.0 / (torch.linalg.vector_norm(y, dim=-1, keepdim=True) + 1e-2)),
    "linalg.norm": lambda y: y / torch.linalg.norm(y, dim=-1, keepdim=True).clamp(min=0.3),
    "clamp_min": lambda y: y / y.norm(dim=-1, keepdim=True).clamp_min(0.1),
    "a root": lambda y: y / (torch.sqrt((y ** 2).sum(-1, keepdim=True)) + 1e-2),
    "the mean square": lambda y: y / (y.pow(2).mean(-1, keepdim=True).sqrt() + 0.02),
    "the deviation": lambda y: (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 0.1),
    "the biased deviation": lambda y: (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True, unbiased=False) + 1e-3),
    "the deviation alone": lambda y: (y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True),
}


class Normed(Block):
    """`place` puts the norm: behind the MLP, with a scale behind it, in front of the MLP, or around the sum."""

    def __init__(self, norm, place):
        super().__init__()
        self.norm, self.place, self.scale, self.before = norm, place, nn.Parameter(torch.rand(WIDTH) + 0.5), nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return {"behind": lambda: x + self.norm(self.mlp(x)), "scaled": lambda: x + self.scale * self.norm(self.mlp(x)),
                "in front": lambda: x + self.mlp(self.norm(x)), "around": lambda: self.norm(x + self.mlp(x))}[self.place]()


def refusal(place, centres):
    """Of a centred length it is not shown where it is zero, by which a scale behind it would be divided."""
    return "bounded-output" if place == "behind" else "is undecided" if place == "scaled" and centres else None


def case(name, place):
    centres = name in ("the deviation", "the biased deviation")
    return lambda: Model(lambda: Normed(NORMS[name], place), 2), refusal(place, centres)


CASES = {f"{name}, {place}": case(name, place) for name in NORMS for place in ("behind", "scaled")}
CASES.update({f"{name}, {place}": case(name, place) for name in ("F.normalize", "the length and a number", "the deviation")
              for place in ("in front", "around")})


def generated(choose):
    """Another module of the kind."""
    kind, eps, place = choose(["length", "mean square", "deviation"]), choose([1e-6, 1e-3, 0.4]), choose(["behind", "scaled", "in front"])
    how = choose(["added", "least"])

    def norm(y):
        centred = y - y.mean(-1, keepdim=True) if kind == "deviation" else y
        size = {"length": lambda: y.norm(dim=-1, keepdim=True), "mean square": lambda: y.square().mean(-1, keepdim=True).sqrt(),
                "deviation": lambda: y.std(-1, keepdim=True)}[kind]()
        return centred / (size + eps if how == "added" else size.clamp(min=eps))
    return f"{kind}, {eps} {how}, {place}", Model(lambda: Normed(norm, place), 2), refusal(place, kind == "deviation")
