"""Layers whose sums stand in the parent's forward: a verdict does not depend on where a sum is written."""
import torch
from common import WIDTH, WORDS, Attention, Block, Mlp
from torch import nn


class Parent(nn.Module):
    """`parts` are lists of modules, or one of them; `forward` of `how` takes each layer's parts and the stream."""

    def __init__(self, lists, forward, count=3):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.how, self.count = forward, count
        for name, made in lists(count).items():
            setattr(self, name, made)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for i in range(self.count):
            x = self.how(self, x, i)
        return self.head(x)


def of(make):
    return lambda count: nn.ModuleList(make() for _ in range(count))


def many(**lists):
    return lambda count: {name: of(make)(count) for name, make in lists.items()}


def pair():
    return nn.ModuleList([Attention(), Mlp()])


def entry():
    return nn.ModuleDict({"attention": Attention(), "mlp": Mlp()})


def normed():
    return nn.ModuleList([nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH), Mlp()])


def norm():
    return nn.LayerNorm(WIDTH)


def both(x, a, m):
    x = a(x) + x
    return m(x) + x


def behind(x, a, m, n):
    x = x + a(x)
    return n(x + m(x))


def alternating(count):
    return {"layers": nn.ModuleList(make() for _ in range(count) for make in (Attention, Mlp))}


def prenormed(m, x, i):
    x = x + m.attentions[i](m.norms1[i](x))
    return x + m.mlps[i](m.norms2[i](x))


HOW = {
    "blocks": (many(layers=Block), lambda m, x, i: m.layers[i](x)),
    "pairs": (many(layers=pair), lambda m, x, i: both(x, *m.layers[i])),
    "entries": (many(layers=entry), lambda m, x, i: both(x, m.layers[i]["attention"], m.layers[i]["mlp"])),
    "two lists": (many(attentions=Attention, mlps=Mlp), lambda m, x, i: both(x, m.attentions[i], m.mlps[i])),
    "two lists, the MLPs first": (many(mlps=Mlp, attentions=Attention), lambda m, x, i: both(x, m.attentions[i], m.mlps[i])),
    "four lists": (many(norms1=norm, attentions=Attention, norms2=norm, mlps=Mlp), prenormed),
    "four in one": (many(layers=normed), lambda m, x, i: both(
        x, lambda y: m.layers[i][1](m.layers[i][0](y)), lambda y: m.layers[i][3](m.layers[i][2](y)))),
    "a norm behind": (many(attentions=Attention, mlps=Mlp, norms=norm),
                      lambda m, x, i: behind(x, m.attentions[i], m.mlps[i], m.norms[i])),
    "in parallel": (many(attentions=Attention, mlps=Mlp), lambda m, x, i: x + m.attentions[i](x) + m.mlps[i](x)),
    "halved": (many(layers=pair), lambda m, x, i: both(x, *m.layers[i]) * 0.5),
    "one of each": (many(attentions=Attention, mlps=Mlp), lambda m, x, i: both(x, m.attentions[i], m.mlps[i]), 1),
    "one pair": (many(layers=pair), lambda m, x, i: both(x, *m.layers[i]), 1),
}
CASES = {name: ((lambda given: lambda: Parent(*given))(given), None) for name, given in HOW.items()}
# Without a list the layers are modules that join tokens inside.
CASES["a module"] = (lambda: Parent(lambda count: {"block": Block()}, lambda m, x, i: m.block(x), 1)), None
CASES["two modules"] = (lambda: Parent(lambda count: {"first": Block(), "second": Block()}, lambda m, x, i: m.second(m.first(x)), 1)), None
CASES["attention by itself"] = (lambda: Parent(lambda count: {"attention": Attention(), "mlp": Mlp()},
                                               lambda m, x, i: both(x, m.attention, m.mlp), 1)), None
# Modules that run twice are one layer, whose parameters are read twice.
TWICE = r"run several times with the same parameters"
CASES["the same layer twice"] = (lambda: Parent(many(layers=Block), lambda m, x, i: m.layers[0](x), 2)), TWICE
CASES["the same pair twice"] = (lambda: Parent(many(layers=pair), lambda m, x, i: both(x, *m.layers[0]), 2)), TWICE
CASES["a module in a loop"] = (lambda: Parent(lambda count: {"block": Block()}, lambda m, x, i: m.block(x), 3)), TWICE
CASES["a module in a loop, with the stream again"] = (lambda: Parent(lambda count: {"block": Block()}, lambda m, x, i: m.block(x) + x, 3)), TWICE
CASES["one of two again"] = (lambda: Parent(many(layers=pair), lambda m, x, i: both(x, *m.layers[i % 2]), 3)), TWICE


class Linked(nn.Module):
    """Layer i reads the stream, scaled, and the streams `links[i]` as well, each times a trained number or vector."""

    def __init__(self, links, width=1, scaled=False):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers, self.links, self.scaled = nn.ModuleList(Block() for _ in links), links, scaled
        self.own, self.other = nn.Parameter(torch.rand(len(links), width) + 0.5), nn.Parameter(torch.rand(len(links), width) + 0.5)

    def forward(self, input_ids):
        streams = [self.embed(input_ids)]
        for i, layer in enumerate(self.layers):
            x = streams[-1] * self.own[i] if self.scaled else streams[-1]
            for j in self.links[i]:
                x = x + self.other[i] * streams[j]
            streams.append(layer(x))
        return self.head(streams[-1])


CASES["skips as in a U-Net"] = (lambda: Linked([[], [], [1], [0]])), None
CASES["the embedding again in each layer"] = (lambda: Linked([[0]] * 3, WIDTH, True)), None


def generated(choose):
    """Another module of the kind."""
    if choose([True, False, False]):
        links = [[j for j in range(i + 1) if choose([True, False])] for i in range(choose([2, 3, 4]))]
        return f"linked {links}", Linked(links, choose([1, WIDTH]), choose([True, False])), None
    name = choose([each for each in HOW if each != "blocks"])
    lists, how = HOW[name][:2]
    count, factor = choose([1, 2, 4]), choose([1.0, 1.0, 0.5])
    return f"{count} of {name}, times {factor}", Parent(
        lists, (lambda m, x, i: how(m, x, i) * factor) if factor != 1 else how, count), None
