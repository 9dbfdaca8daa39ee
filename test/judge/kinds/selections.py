"""Attention to the tokens with the largest scores of another product (DeepSeek's sparse attention): up to as many tokens as are chosen it
sees all, and kernels run it; for more it is refused."""
import torch
from common import WIDTH, Block, Model
from torch import nn

MANY, FEW = 64, 6
LIMIT = rf"the model is known for {FEW} positions, and is another beyond"


def chosen(scores, most, **options):
    return scores.topk(min(most, scores.shape[-1]), dim=-1, **options).indices


# Each gives what is added to attention's products, of scores (1, t, t) that hide later tokens, and the causal mask of 0 and −∞.
MASKS = {
    "ones": lambda s, causal, n: causal.masked_fill(torch.ones_like(s, dtype=torch.bool).scatter(-1, chosen(s, n), False), float("-inf")),
    "ones in int32": lambda s, causal, n: causal.masked_fill(
        torch.ones_like(s, dtype=torch.bool).scatter(-1, chosen(s, n).to(torch.int32).long(), False), torch.finfo(torch.float).min),
    "zeros": lambda s, causal, n: causal + torch.where(torch.zeros_like(s, dtype=torch.bool).scatter(-1, chosen(s, n), True), 0.0, -1e30),
    "minus infinity": lambda s, causal, n: causal + torch.full_like(s, -1e30).scatter(-1, chosen(s, n), 0.0),
    "the last axis": lambda s, causal, n: causal + torch.full_like(s, -1e30).scatter(2, s.topk(min(n, s.shape[2]), 2)[1], 0.0),
    "unsorted": lambda s, causal, n: causal + torch.full_like(s, -1e30).scatter(-1, chosen(s, n, sorted=False), 0.0),
    "scattered in place": lambda s, causal, n: causal + torch.full_like(s, -1e30).scatter_(-1, chosen(s, n), 0.0),
}


class Sparse(nn.Module):
    def __init__(self, mask, most, heads):
        super().__init__()
        self.inner, self.q, self.k = Block(), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mask, self.most, self.heads = mask, most, heads

    def forward(self, x):
        t = x.shape[1]
        causal = torch.full((t, t), float("-inf")).triu(1)
        scores = (self.q(x) @ self.k(x).transpose(1, 2)).relu() + torch.full((t, t), -1e30).triu(1)
        mask = self.mask(scores, causal[None], self.most)
        q, k, v = (part.view(1, t, self.heads, -1).transpose(1, 2) for part in self.inner.attention.qkv(x).chunk(3, -1))
        shares = (q @ k.transpose(2, 3) + mask[:, None]).softmax(-1)
        x = x + (shares @ v).transpose(1, 2).reshape(x.shape)
        return x + self.inner.mlp(x)


def sparse(mask, most=MANY, heads=2, layers=1):
    return lambda: Model(lambda: Sparse(mask, most, heads), layers)


CASES = {}
for _name, _mask in MASKS.items():
    CASES[_name] = sparse(_mask), None
    CASES[f"few, {_name}"] = sparse(_mask, FEW), LIMIT
# The largest of each column, and a mask of those alone that are not chosen: no choice of all tokens for each.
CASES["by columns"] = sparse(lambda s, causal, n: causal + 0 * torch.full_like(s, 1.0).scatter(-2, s.topk(min(n, s.shape[1]), 1)[1], 0.0)), None


def generated(choose):
    name, heads, layers, most = choose(MASKS), choose([1, 2, 4]), choose([1, 2]), choose([FEW, 13, 20, 512])
    return f"{name}, {most} of all, {heads} heads, {layers} layers", sparse(MASKS[name], most, heads, layers), LIMIT if most == FEW else None
