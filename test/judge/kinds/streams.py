"""Hyper-connections: several residual streams, which small matrices mix before and after each branch. The matrices are parameters, or
made of the streams, and of these some have rows and columns that sum up to one. Where several streams get what one branch adds, no
change of the MLP alone brings all to their targets, so that attention's matrix is patched too."""
import torch
from common import WIDTH, WORDS, Attention, Mlp
from torch import nn

OPTIONS = ["--sites", "all"]


class Attended(Attention):
    def __init__(self):
        super().__init__()
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.o(super().forward(x))


def by_einsum(a, h):
    return torch.einsum("sa,btsd->btad" if a.dim() == 2 else "btsa,btsd->btad", a, h)


def by_product(a, h):
    return a.transpose(-1, -2) @ h


def balanced(a):
    a = a.exp()
    for _ in range(2):
        a = a / a.sum(-1, keepdim=True)
        a = a / a.sum(-2, keepdim=True)
    return a


class Connected(nn.Module):
    def __init__(self, branch, streams, mixed, dynamic, limited):
        super().__init__()
        self.branch, self.norm, self.all = branch, nn.RMSNorm(WIDTH), nn.RMSNorm(streams * WIDTH, elementwise_affine=False)
        self.read, self.write = nn.Parameter(torch.rand(streams, 1)), nn.Parameter(torch.rand(streams) + 0.5)
        self.mix = nn.Parameter(torch.eye(streams) + 0.2 * torch.rand(streams, streams))
        self.of = nn.Linear(streams * WIDTH, streams * streams) if dynamic else None
        self.mixed, self.limited = mixed, limited

    def forward(self, h):
        mix = self.mix
        if self.of is not None:
            mix = mix + 0.1 * self.of(self.all(h.flatten(2))).tanh().unflatten(-1, mix.shape)
        mix = balanced(mix) if self.limited else mix
        y = self.branch(self.norm(self.mixed(self.read, h)[:, :, 0]))
        return self.mixed(mix, h) + torch.einsum("s,btd->btsd", self.write, y)


class Streams(nn.Module):
    def __init__(self, streams=3, mixed=by_einsum, dynamic=False, limited=False, count=2):
        super().__init__()
        self.embed, self.head, self.streams = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), streams
        self.layers = nn.ModuleList(nn.Sequential(*(Connected(branch(), streams, mixed, dynamic, limited) for branch in (Attended, Mlp)))
                                    for _ in range(count))

    def forward(self, input_ids):
        h = self.embed(input_ids).unsqueeze(2).expand(-1, -1, self.streams, -1)
        for layer in self.layers:
            h = layer(h)
        return self.head(h.sum(2))


CASES = {
    "static": (lambda: Streams(), None),
    "static, by products": (lambda: Streams(mixed=by_product), None),
    "dynamic": (lambda: Streams(dynamic=True), None),
    "dynamic, balanced": (lambda: Streams(dynamic=True, limited=True), None),
}


def generated(choose):
    """Another module of the kind."""
    dynamic = choose([True, False])
    given = choose([2, 3, 4]), choose([by_einsum, by_product]), dynamic, dynamic and choose([True, False]), choose([1, 2])
    return f"{given[0]} streams {given[1].__name__}, {given[2:]}", Streams(*given), None
