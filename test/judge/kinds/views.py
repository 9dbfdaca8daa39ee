"""Decoders whose matrices are parts of a parameter: rows of a stack, slices of a fused one in any order, kernels with an axis of heads,
and stacks over layers. `made(choose)` draws one of them."""
import itertools

import torch
from common import WIDTH, WORDS
from torch import nn
from torch.nn import functional as F

HEADS, HEAD, INNER, LAYERS = 2, 4, 24, 2


def normal(*shape):
    return nn.Parameter(0.3 * torch.randn(shape))


# Each gives the shape of the parameter that `count` matrices of (into, out) are parts of, and x times the one of number i.

def stacked(count, into, out):
    return (count, into, out), lambda p, x, i: x @ p[i]


def stacked_turned(count, into, out):
    return (count, out, into), lambda p, x, i: F.linear(x, p[i])


def stacked_behind(count, into, out):
    return (into, count, out), lambda p, x, i: x @ p[:, i]


def sliced(count, into, out):
    return (count * out, into), lambda p, x, i: F.linear(x, p[i * out:(i + 1) * out])


def sliced_columns(count, into, out):
    return (into, count * out), lambda p, x, i: x @ p[:, i * out:(i + 1) * out]


def sliced_inputs(count, into, out):
    return (out, count * into), lambda p, x, i: F.linear(x, p.narrow(1, i * into, into))


def interleaved(count, into, out):
    return (count * out, into), lambda p, x, i: F.linear(x, p[i::count])


def chunks(count, into, out):
    return (count * out, into), lambda p, x, i: F.linear(x, p.chunk(count)[i])


def splits(count, into, out):
    return (into, count * out), lambda p, x, i: x @ p.split(out, dim=-1)[i]


def unbound(count, into, out):
    return (into, out, count), lambda p, x, i: x @ p.unbind(-1)[i]


def reshaped(count, into, out):
    return (into, count * out), lambda p, x, i: x @ p.reshape(into, count, out)[:, i]


def turned_and_reshaped(count, into, out):
    return (into, count, out), lambda p, x, i: F.linear(x, p.permute(1, 2, 0).reshape(count * out, into)[i * out:(i + 1) * out])


def heads_behind(count, into, out):
    return (count, into, HEADS, out // HEADS), lambda p, x, i: torch.einsum("btd,dnh->btnh", x, p[i]).flatten(2)


def heads_in_front(count, into, out):
    return (count, HEADS, into, out // HEADS), lambda p, x, i: torch.einsum("btd,ndh->btnh", x, p[i]).flatten(2)


def heads_of_fused(count, into, out):
    return (into, count, HEADS, out // HEADS), lambda p, x, i: torch.einsum("btd,dnh->btnh", x, p[:, i]).flatten(2)


def heads_into(count, into, out):
    return (HEADS, into // HEADS, count, out), lambda p, x, i: torch.einsum("btnh,nhd->btd", x.unflatten(-1, (HEADS, -1)), p[:, :, i])


def heads_into_turned(count, into, out):
    return (count, out, HEADS, into // HEADS), lambda p, x, i: torch.einsum("btnh,dnh->btd", x.unflatten(-1, (HEADS, -1)), p[i])


WAYS = [stacked, stacked_turned, stacked_behind, sliced, sliced_columns, sliced_inputs, interleaved, chunks, splits, unbound, reshaped,
        turned_and_reshaped, heads_behind, heads_in_front, heads_of_fused, heads_into, heads_into_turned]


class Matrices(nn.Module):
    """Matrices in one parameter: `order` has the place of each."""

    def __init__(self, way, order, into, out, biased=False):
        super().__init__()
        shape, self.apply_to = way(len(order), into, out)
        self.weight, self.order = normal(*shape), order
        self.biases = normal(len(order), out) if biased else None

    def forward(self, x, i):
        y = self.apply_to(self.weight, x, self.order[i])
        return y if self.biases is None else y + self.biases[self.order[i]]


class Block(nn.Module):
    def __init__(self, ways, orders, biased=False):
        super().__init__()
        qkv, out, up, down = ways
        self.qkv, self.out = Matrices(qkv, orders[0], WIDTH, WIDTH, biased), Matrices(out, [0], WIDTH, WIDTH)
        self.up, self.down = Matrices(up, orders[1], WIDTH, INNER, biased), Matrices(down, [0], INNER, WIDTH)
        self.norms = nn.Parameter(1 + 0.1 * torch.randn(2, WIDTH))

    def forward(self, x):
        y = F.rms_norm(x, (WIDTH,), self.norms[0])
        q, k, v = (self.qkv(y, i).unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for i in range(3))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), 0)
        y = F.rms_norm(x, (WIDTH,), self.norms[1])
        return x + self.down(F.silu(self.up(y, 0)) * self.up(y, 1), 0)


class Model(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.ModuleList(make() for _ in range(LAYERS))

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class StackedLayers(nn.Module):
    """All layers in one parameter of each kind, and no module for a layer or for anything else."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = normal(WORDS, WIDTH), normal(WIDTH, WORDS)
        self.qkv, self.out = normal(LAYERS, 3, WIDTH, HEADS, HEAD), normal(LAYERS, HEADS, HEAD, WIDTH)
        self.up, self.down = normal(LAYERS, WIDTH, 2 * INNER), normal(LAYERS, INNER, WIDTH)
        self.norms = nn.Parameter(1 + 0.1 * torch.randn(LAYERS, 2, WIDTH))

    def forward(self, input_ids):
        x = self.embed[input_ids]
        for qkv, out, up, down, norms in zip(self.qkv, self.out, self.up, self.down, self.norms):
            q, k, v = torch.einsum("btd,cdnh->cbnth", F.rms_norm(x, (WIDTH,), norms[0]), qkv)
            x = x + torch.einsum("bnth,nhd->btd", F.scaled_dot_product_attention(q, k, v, is_causal=True), out)
            gate, value = (F.rms_norm(x, (WIDTH,), norms[1]) @ up).chunk(2, -1)
            x = x + (F.silu(gate) * value) @ down
        return x @ self.head


def orders_of(choose):
    return choose(list(itertools.permutations(range(3)))), choose([(0, 1), (1, 0)])


def made(choose):
    """A name, and a model."""
    ways, orders, biased = [choose(WAYS) for _ in range(4)], orders_of(choose), choose([True, False])
    return ", ".join(way.__name__ for way in ways) + (" with biases" if biased else ""), lambda: Model(lambda: Block(ways, orders, biased))


def each_way(choose):
    for way in WAYS:
        yield way.__name__, lambda way=way, orders=orders_of(choose): Model(lambda: Block([way] * 4, orders))
    yield "stacked over layers", StackedLayers
