"""Layers that PyTorch's modules make of several tensors: batch norms with the numbers that training has left, matrices
whose rows have a length of their own (weight_norm), convolutions over tokens behind the MLP."""
import warnings

import torch
from common import WIDTH, Block, Mlp, Model
from torch import nn
from torch.nn.utils import parametrizations, weight_norm


class Behind(Block):
    """What `make` gives follows the MLP; with `first`, it is in front of it."""

    def __init__(self, make, first=False):
        super().__init__()
        self.more, self.first = make(), first

    def forward(self, x):
        x = x + self.attention(x)
        return x + (self.mlp(self.more(x)) if self.first else self.more(self.mlp(x)))


class Channels(nn.Module):
    """A module of (1, channels, tokens)."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, x):
        return self.made(x.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2)


def batch_norm(**how):
    norm = nn.BatchNorm1d(WIDTH, **how)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


def conv(taps, **how):
    return nn.Conv1d(WIDTH, WIDTH, taps, padding=taps - 1, groups=WIDTH, **how)


def normed(new, bias):
    """An MLP whose second matrix is weight-normed, by either of PyTorch's ways."""

    def make():
        mlp = Mlp()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mlp.down = (parametrizations.weight_norm if new else weight_norm)(nn.Linear(2 * WIDTH, WIDTH, bias=bias))
        return mlp

    return make


class Normed(Block):
    def __init__(self, make):
        super().__init__()
        self.mlp = make()


class Over(nn.Module):
    """W x times a number of x."""

    def __init__(self, factor, bias=False):
        super().__init__()
        self.matrix, self.factor = nn.Linear(WIDTH, WIDTH, bias=bias), factor

    def forward(self, x):
        return self.matrix(x) * self.factor(x)


FACTORS = {
    "its root mean square": lambda x: torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6),
    "its length": lambda x: torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6),
    "its length and more": lambda x: 1 / (x.pow(2).mean(-1, keepdim=True).sqrt() + 0.1),
    "that of its double": lambda x: torch.rsqrt((2 * x).square().mean(-1, keepdim=True) + 1e-6),
    "its deviation": lambda x: torch.rsqrt(x.var(-1, keepdim=True, correction=0) + 1e-6),
}

CASES = {
    "a batch norm behind": (lambda: Model(lambda: Behind(lambda: Channels(batch_norm()))), None),
    "a batch norm without a scale": (lambda: Model(lambda: Behind(lambda: Channels(batch_norm(affine=False)))), None),
    "a batch norm in front": (lambda: Model(lambda: Behind(lambda: Channels(batch_norm()), first=True)), None),
    "a convolution behind": (lambda: Model(lambda: Behind(lambda: Channels(conv(3)))), None),
    "a convolution without a bias": (lambda: Model(lambda: Behind(lambda: Channels(conv(4, bias=False)))), None),
    "a convolution and a batch norm": (lambda: Model(lambda: Behind(lambda: nn.Sequential(Channels(conv(3)), Channels(batch_norm())))), None),
}
for new in (False, True):
    for bias in (False, True):
        name = f"weight_norm{' as a parametrisation' if new else ''}{' with a bias' if bias else ''}"
        CASES[name] = ((lambda make: lambda: Model(lambda: Normed(make)))(normed(new, bias)), None)
for name, factor in FACTORS.items():
    for bias in (False, True):
        CASES[f"a matrix over {name}{', with a bias' if bias else ''}"] = (
            (lambda factor, bias: lambda: Model(lambda: Behind(lambda: Over(factor, bias), first=True)))(factor, bias), None)


def generated(choose):
    """Another batch norm or convolution."""
    if choose([True, False]):
        eps, affine, first = choose([1e-5, 0.1]), choose([True, False]), choose([True, False])
        return f"a batch norm, ε {eps}", Model(lambda: Behind(lambda: Channels(batch_norm(eps=eps, affine=affine)), first)), None
    taps, bias = choose([2, 3, 4]), choose([True, False])
    return f"a convolution of {taps}", Model(lambda: Behind(lambda: Channels(conv(taps, bias=bias)))), None
