"""Mixtures of experts as people write them: over all experts with a gate that is 0 for most of them, or with the matrices of the
chosen ones. All of these are mixtures to ctxc, with a patch of the experts that the reduced run chooses."""
import torch
from common import WIDTH, Attention, Model
from torch import nn
from torch.nn import functional as F

EXPERTS, CHOSEN, INNER = 4, 2, 12


class Plain(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, INNER, bias=bias), nn.Linear(INNER, WIDTH, bias=bias)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3, self.w2 = (nn.Linear(*sizes, bias=False) for sizes in ((WIDTH, INNER), (WIDTH, INNER), (INNER, WIDTH)))

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.scale = nn.Linear(WIDTH, 2 * INNER), nn.Linear(INNER, WIDTH), nn.Parameter(torch.rand(INNER) + 0.5)

    def forward(self, x):
        gate, up = self.inner(x).chunk(2, -1)
        return self.outer(F.silu(gate) * up * self.scale)


def sequence():
    return nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH), nn.Dropout(0.1))


MADE = {"plain": Plain, "without biases": lambda: Plain(False), "gated": Gated, "fused": Fused, "a sequence": sequence}


# What stands at the chosen experts, given the scores: numbers for all experts, 0 but for the chosen ones.
def scattered(scores, k):
    weights, chosen = scores.softmax(-1).topk(k, -1)
    return torch.zeros_like(scores).scatter(-1, chosen, weights)


def scattered_in_place(scores, k):
    weights, chosen = torch.topk(F.softmax(scores, dim=-1), k)
    gates = torch.zeros_like(scores)
    gates.scatter_(-1, chosen, weights / weights.sum(-1, keepdim=True))
    return gates


def divided(scores, k):
    gates = scattered(scores, k)
    return gates / gates.sum(-1, keepdim=True)


def behind_infinity(scores, k):
    weights, chosen = scores.topk(k, dim=-1)
    return torch.full_like(scores, float("-inf")).scatter(-1, chosen, weights).softmax(-1)


def hidden(scores, k):
    chosen = scores.topk(k, dim=-1).indices
    mask = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, chosen, True)
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


def one_hot(scores, k):
    weights, chosen = scores.softmax(-1).topk(k, -1)
    return (F.one_hot(chosen, scores.shape[-1]).to(scores.dtype) * weights.unsqueeze(-1)).sum(-2)


def masked(scores, k):
    probabilities = scores.softmax(-1)
    gates = probabilities * F.one_hot(probabilities.topk(k, -1).indices, scores.shape[-1]).sum(-2)
    return gates / (gates.sum(-1, keepdim=True) + 1e-9)


def by_numbers(scores, k):
    weights, chosen = scores.sigmoid().topk(k, -1)
    return ((chosen.unsqueeze(-1) == torch.arange(scores.shape[-1])) * weights.unsqueeze(-1)).sum(-2)


def doubled(scores, k):
    return 2.5 * scattered(scores, k)


GATES = {"scattered": scattered, "scattered in place": scattered_in_place, "divided": divided, "behind infinity": behind_infinity,
         "hidden": hidden, "one-hot": one_hot, "masked": masked, "by numbers": by_numbers, "doubled": doubled}
SOFT = {"all of them": lambda scores, k: scores.softmax(-1)}


# Σ g_e f_e.
def in_turn(gates, experts, x):
    y = torch.zeros_like(x)
    for e, expert in enumerate(experts):
        y = y + gates[..., e].unsqueeze(-1) * expert(x)
    return y


def in_place(gates, experts, x):
    y = torch.zeros_like(x)
    for e, expert in enumerate(experts):
        y += gates[:, :, e:e + 1] * expert(x)
    return y


def by_sum(gates, experts, x):
    return sum(expert(x) * gates[..., e, None] for e, expert in enumerate(experts))


def stacked(gates, experts, x):
    return (torch.stack([expert(x) for expert in experts], dim=2) * gates.unsqueeze(-1)).sum(2)


def einsum(gates, experts, x):
    return torch.einsum("bte,bted->btd", gates, torch.stack([expert(x) for expert in experts], dim=-2))


def matrix(gates, experts, x):
    return (torch.stack([expert(x) for expert in experts], dim=-1) @ gates.unsqueeze(-1)).squeeze(-1)


def one_by_one(gates, experts, x):
    return sum(g * expert(x) for g, expert in zip(gates.unsqueeze(-2).unbind(-1), experts))


SUMS = {"in turn": in_turn, "in place": in_place, "by sum": by_sum, "stacked": stacked, "einsum": einsum, "matrix": matrix,
        "one by one": one_by_one}


class Mixture(nn.Module):
    def __init__(self, gate, sum_up, make=Plain, experts=EXPERTS, chosen=CHOSEN):
        super().__init__()
        self.router, self.experts = nn.Linear(WIDTH, experts, bias=False), nn.ModuleList(make() for _ in range(experts))
        self.gate, self.sum_up, self.chosen = gate, sum_up, chosen

    def forward(self, x):
        return self.sum_up(self.gate(self.router(x), self.chosen), self.experts, x)


class Whole(nn.Module):
    """`how(module, x)` computes the mixture, where `make` is no list but `how` needs the router."""

    def __init__(self, how, make=Gated):
        super().__init__()
        self.router, self.experts, self.how = nn.Linear(WIDTH, EXPERTS, bias=False), nn.ModuleList(make() for _ in range(EXPERTS)), how

    def forward(self, x):
        return self.how(self, x)


def compared(m, x):
    weights, chosen = m.router(x).softmax(-1).topk(CHOSEN, -1)
    return sum((weights * (chosen == e)).sum(-1, keepdim=True) * expert(x) for e, expert in enumerate(m.experts))


def where(m, x):
    weights, chosen = m.router(x).softmax(-1).topk(CHOSEN, -1)
    y = torch.zeros_like(x)
    for e, expert in enumerate(m.experts):
        y += torch.where(chosen == e, weights, torch.zeros_like(weights)).sum(-1)[..., None] * expert(x)
    return y


def largest(m, x):
    weight, chosen = m.router(x).softmax(-1).max(-1)
    return sum(torch.where(chosen == e, weight, 0.0)[..., None] * expert(x) for e, expert in enumerate(m.experts))


def largest_of_all(m, x):
    probabilities = m.router(x).softmax(-1)
    gates = probabilities * F.one_hot(probabilities.argmax(-1), EXPERTS)
    return sum(gates[..., e, None] * expert(x) for e, expert in enumerate(m.experts))


def permuted(m, x):
    weights, chosen = m.router(x).softmax(-1).topk(CHOSEN, -1)
    masks = F.one_hot(chosen, EXPERTS).permute(3, 0, 1, 2)
    return sum((weights * masks[e]).sum(-1)[..., None] * expert(x) for e, expert in enumerate(m.experts))


WHOLE = {"compared": compared, "where": where, "the largest": largest, "the largest of all": largest_of_all, "permuted": permuted}


# Loops in which an expert reads the tokens that chose it: what torch.export cannot follow, where it asks whether there are any.
def weighed(m, flat, k=CHOSEN):
    weights, chosen = m.router(flat).softmax(-1).topk(k, -1)
    return weights / weights.sum(-1, keepdim=True), chosen


def by_index(m, x):
    flat = x.view(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros_like(flat)
    for e, expert in enumerate(m.experts):
        token, slot = torch.where(chosen == e)
        y[token] += weights[token, slot, None] * expert(flat[token])
    return y.view_as(x)


def by_index_add(m, x):
    flat = x.reshape(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros(flat.shape, dtype=flat.dtype)
    masks = F.one_hot(chosen, num_classes=EXPERTS).permute(2, 1, 0)
    for e in range(EXPERTS):
        slot, token = torch.where(masks[e])
        if token.shape[0] == 0:
            continue
        read = flat[None, token].reshape(-1, WIDTH)
        y.index_add_(0, token, (m.experts[e](read) * weights[token, slot, None]).to(x.dtype))
    return y.reshape(x.shape)


def of_those_hit(m, x):
    flat = x.view(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros_like(flat)
    masks = F.one_hot(chosen, num_classes=EXPERTS).permute(2, 1, 0)
    for e in torch.greater(masks.sum(dim=(-1, -2)), 0).nonzero():
        slot, token = torch.where(masks[e].squeeze(0))
        y.index_add_(0, token, m.experts[e](flat[token]) * weights[token, slot, None])
    return y.view_as(x)


def by_mask(m, x):
    scores = m.router(x)
    values, chosen = scores.topk(CHOSEN, dim=-1)
    gates = torch.full_like(scores, float("-inf")).scatter(-1, chosen, values).softmax(-1)
    y, flat, flat_gates = torch.zeros_like(x), x.view(-1, WIDTH), gates.view(-1, EXPERTS)
    for e, expert in enumerate(m.experts):
        mask = (chosen == e).any(dim=-1)
        rows = mask.view(-1)
        if rows.any():
            y[mask] += (expert(flat[rows]) * flat_gates[rows, e].unsqueeze(1)).squeeze(1)
    return y


def of_the_largest(m, x):
    flat = x.view(-1, WIDTH)
    weight, chosen = m.router(flat).softmax(-1).max(dim=-1)
    y = torch.zeros_like(flat)
    for e, expert in enumerate(m.experts):
        rows = (chosen == e).nonzero(as_tuple=True)[0]
        if rows.numel() > 0:
            y[rows] = expert(flat[rows]) * weight[rows].unsqueeze(-1)
    return y.view_as(x)


def by_nonzero(m, x):
    flat = x.view(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros_like(flat)
    for e, expert in enumerate(m.experts):
        mask = (chosen == e)
        rows = mask.any(-1).nonzero().squeeze(-1)
        y = y.index_add(0, rows, (weights * mask).sum(-1)[rows].unsqueeze(-1) * expert(flat.index_select(0, rows)))
    return y.view_as(x)


def of_those_counted(m, x):
    flat = x.view(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros_like(flat)
    counts = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
    for e in range(EXPERTS):
        if counts[e] == 0:
            continue
        token, slot = torch.where(chosen == e)
        y[token] += m.experts[e](flat[token]) * weights[token, slot, None]
    return y.view_as(x)


LOOPS = {"of those counted": of_those_counted, "by index": by_index, "by index_add": by_index_add, "of those hit": of_those_hit, "by a mask": by_mask,
         "of the largest, by rows": of_the_largest, "by nonzero": by_nonzero}


def joined(m, x):
    """Each expert subtracts the mean of the tokens that chose it: not the same of all rows."""
    flat = x.view(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros_like(flat)
    for e, expert in enumerate(m.experts):
        token, slot = torch.where(chosen == e)
        read = expert(flat[token])
        y.index_add_(0, token, (read - read.mean(0)) * weights[token, slot, None])
    return y.view_as(x)


def with_capacity(m, x):
    """Each expert reads the first nine of the tokens that chose it: which these are depends on other tokens."""
    flat = x.view(-1, WIDTH)
    weights, chosen = weighed(m, flat)
    y = torch.zeros_like(flat)
    for e, expert in enumerate(m.experts):
        token, slot = (each[:9] for each in torch.where(chosen == e))
        y.index_add_(0, token, expert(flat[token]) * weights[token, slot, None])
    return y.view_as(x)


class Bank(nn.Module):
    """Experts whose matrices are one tensor."""

    def __init__(self, how):
        super().__init__()
        self.router, self.how = nn.Linear(WIDTH, EXPERTS, bias=False), how
        self.w1, self.w2 = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER) / 3), nn.Parameter(torch.randn(EXPERTS, INNER, WIDTH) / 3)
        self.b1 = nn.Parameter(torch.randn(EXPERTS, INNER) / 3)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(CHOSEN, -1)
        return self.how(self, x, weights, chosen)


def gathered(m, x, weights, chosen):
    h = F.gelu(torch.einsum("btd,btkdf->btkf", x, m.w1[chosen]))
    return (torch.einsum("btkf,btkfd->btkd", h, m.w2[chosen]) * weights.unsqueeze(-1)).sum(2)


def gathered_flat(m, x, weights, chosen):
    flat, weights, chosen = x.view(-1, WIDTH), weights.view(-1, CHOSEN), chosen.view(-1, CHOSEN)
    h = F.gelu(torch.einsum("td,tkdf->tkf", flat, m.w1[chosen]) + m.b1[chosen])
    return torch.einsum("tkf,tkfd,tk->td", h, m.w2[chosen], weights).view_as(x)


def gathered_product(m, x, weights, chosen):
    h = F.gelu(x[:, :, None, None] @ m.w1[chosen] + m.b1[chosen].unsqueeze(-2))
    return ((h @ m.w2[chosen]).squeeze(-2) * weights[..., None]).sum(-2)


def of_all(m, x, weights, chosen):
    gates = torch.zeros(*x.shape[:-1], EXPERTS).scatter(-1, chosen, weights)
    h = F.gelu(torch.einsum("btd,edf->btef", x, m.w1) + m.b1)
    return torch.einsum("btef,efd,bte->btd", h, m.w2, gates)


def in_a_loop(m, x, weights, chosen):
    gates = torch.zeros(*x.shape[:-1], EXPERTS).scatter(-1, chosen, weights)
    return sum(gates[..., e:e + 1] * (F.gelu(x @ m.w1[e] + m.b1[e]) @ m.w2[e]) for e in range(EXPERTS))


def linear_in_a_loop(m, x, weights, chosen):
    gates = torch.zeros(*x.shape[:-1], EXPERTS).scatter(-1, chosen, weights)
    return sum(gates[..., e:e + 1] * F.linear(F.gelu(F.linear(x, m.w2[e], m.b1[e])), m.w1[e]) for e in range(EXPERTS))


def soft_of_all(m, x, weights, chosen):
    y = torch.einsum("btef,efd->bted", F.gelu(torch.einsum("btd,edf->btef", x, m.w1)), m.w2)
    return (y * m.router(x).softmax(-1).unsqueeze(-1)).sum(-2)


BANKS = {"gathered": gathered, "gathered, flat": gathered_flat, "gathered, as products": gathered_product, "of all": of_all,
         "in a loop": in_a_loop, "linear in a loop": linear_in_a_loop, "soft, of all": soft_of_all}


class Layer(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.before, self.attention, self.behind, self.mixture = nn.RMSNorm(WIDTH), Attention(), nn.RMSNorm(WIDTH), make()

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mixture(self.behind(x))


def model(make):
    return lambda: Model(lambda: Layer(make), 2)


CASES = {}
for _name, _gate in {**GATES, **SOFT}.items():
    CASES[_name] = model(lambda gate=_gate: Mixture(gate, in_turn)), None
for _name, _sum in SUMS.items():
    CASES[_name] = model(lambda sum_up=_sum: Mixture(scattered, sum_up)), None
    CASES[f"soft, {_name}"] = model(lambda sum_up=_sum: Mixture(SOFT["all of them"], sum_up)), None
for _name, _make in MADE.items():
    CASES[f"experts {_name}"] = model(lambda make=_make: Mixture(one_hot, in_turn, make)), None
for _name, _how in {**WHOLE, **LOOPS}.items():
    CASES[_name] = model(lambda how=_how: Whole(how)), None
for _name, _how in BANKS.items():
    CASES[f"a bank {_name}"] = model(lambda how=_how: Bank(how)), None
for _name, _how in {"rows that are joined": joined, "a capacity": with_capacity}.items():
    CASES[_name] = model(lambda how=_how: Whole(how)), r"is undecided"


def generated(choose):
    """Another module of the kind."""
    if choose([True, True, False]):
        gate, sum_up, make = choose([*GATES, *SOFT]), choose([*SUMS]), choose([*MADE])
        experts, chosen = choose([(3, 1), (4, 2), (5, 3), (6, 2)])
        return f"{experts} experts {make}, {chosen} chosen, {gate}, {sum_up}", model(
            lambda: Mixture({**GATES, **SOFT}[gate], SUMS[sum_up], MADE[make], experts, chosen))(), None
    if choose([True, False]):
        how, make = choose([*WHOLE, *LOOPS, *LOOPS]), choose([*MADE])
        return f"{how}, experts {make}", model(lambda: Whole({**WHOLE, **LOOPS}[how], MADE[make]))(), None
    how = choose([*BANKS])
    return f"a bank {how}", model(lambda: Bank(BANKS[how]))(), None
