"""How a norm and the scale behind it absorb a change (docs/updates.md): what the matrix before the norm should put
out, and the change of the scale.

Written from the equations of that page, for one vector of d entries at a time, in float64 on the vector's device.
"""

from __future__ import annotations

import math

import torch

Tensor = torch.Tensor
_MOST = 1.7e308
_TINY = 2.3e-308


def invert_rms_norm(update: str, g: Tensor, m: Tensor, data: Tensor, eps: float) -> Tensor:
    """The output to which the matrix before a norm is brought, (d,): from `data`, so that m ⊙ Norm(of it) is near g
    in the sense of the update. g, m and data are (d,), in float64."""
    largest_g, largest_m = float(g.abs().max()), float(m.abs().max())
    finite = all(math.isfinite(float(each.abs().max())) for each in (g, m, data))
    if update == "naive" or not finite or largest_g == 0:
        return data
    size = g.numel()
    norm = float(torch.linalg.vector_norm(data))
    direction = data.abs() / norm if norm > 0 else torch.full_like(data, size ** -0.5)
    norm = norm if norm > 0 else size ** 0.5  # data = 0 has no root mean square to keep: 1 is used
    rms = norm / size ** 0.5
    radius = size ** 0.5 * max(rms / math.hypot(rms, max(eps, 0.0) ** 0.5), _TINY)
    balance = max(largest_g / largest_m / radius if largest_m > 0 else 2.0, 1e-290)
    unit_g, unit_m = (1.0, 1 / balance) if balance >= 1 else (balance, 1.0)
    a = g.abs() / largest_g * unit_g
    scale = m.abs() / largest_m * unit_m if largest_m > 0 else torch.zeros_like(m)
    x = _SOLVERS[update](a, scale, direction)
    squares = float((x * x).sum())
    x = x / squares ** 0.5 if squares > 0 else direction
    negative = torch.where((g == 0) | (m == 0), data < 0, (g < 0) != (m < 0))
    magnitude = (x * norm).clamp(max=_MOST)
    return torch.where(negative, -magnitude, magnitude)


def solve_scale(update: str, g: Tensor, m: Tensor, n: Tensor, zero: float) -> tuple[Tensor, int, int]:
    """Δm with (m + Δm) ⊙ n = g, and how many divisors were zero: harmless (nothing was asked) and harmful. Entries
    of n up to `zero` times its root mean square count as zero where g is."""
    if update == "scaled":
        product = m * n
        squares = float((product * product).sum())
        factor = float((product * g).sum()) / squares if squares > 0 else 1.0
        harmful = (g != 0) & ((m == 0) | (n == 0))
        return (factor - 1) * m, int(((g == 0) & (n == 0)).sum()), int(harmful.sum())
    harmless = (g == 0) & (n.abs() <= zero * float((n * n).mean()) ** 0.5)
    remainder = g - m * n
    quotient = remainder / torch.where(n == 0, torch.ones_like(n), n)
    exact = (n != 0) & torch.isfinite(quotient)
    delta = torch.where(harmless, torch.zeros_like(n), torch.where(exact, quotient, remainder))
    return delta, int(harmless.sum()), int((~harmless & ~exact).sum())


def _shares(free: Tensor, direction: Tensor) -> Tensor:
    """How the excess is divided among the free entries: in proportion to what the data has there."""
    squares = torch.where(free, direction * direction, torch.zeros_like(direction))
    present = squares.sum()
    return squares / present if float(present) > 0 else free.to(direction.dtype) / max(int(free.sum()), 1)


# Each solver: a = |g| and M = |m| in one unit, the direction of the data; x ≥ 0 with Σ x² = 1, to be scaled once more.


def _balanced(a: Tensor, scale: Tensor, direction: Tensor) -> Tensor:
    return (a / a.sum()).sqrt()


def _scaled(a: Tensor, scale: Tensor, direction: Tensor) -> Tensor:
    ratio = a / scale
    serves = (scale > 0) & torch.isfinite(ratio)
    ratio = torch.where(serves, ratio, torch.zeros_like(ratio))
    largest = float(ratio.max())
    if not largest > 0:
        return direction
    rest = 1 - float((direction[~serves] ** 2).sum())
    squares = ((ratio / largest) ** 2).sum()
    return torch.where(serves, ratio / largest * torch.sqrt(max(rest, 0.0) / squares), direction)


def _stable(a: Tensor, scale: Tensor, direction: Tensor) -> Tensor:
    """Minimises Σ (M x − a)²: x = a M / (θ + δ), δ = M² − min M², with the θ > 0 at which Σ x² = 1. Newton's method on
    1/‖x‖ = 1 does not pass the root from the left."""
    lowest = scale.min()
    weight, delta = a * scale, (scale - lowest) * (scale + lowest)
    theta = max(float((weight - delta).max()), 0.0)
    x, norm = torch.zeros_like(a), 0.0
    for _ in range(100):
        gap = (theta + delta).clamp(min=_TINY)
        x = weight / gap
        squares, cubes = float((x * x).sum()), float((x * x / gap).sum())
        norm = squares ** 0.5
        following = theta + (norm - 1) * squares / cubes if norm > 1 and cubes > 0 else theta
        if not (theta < following < math.inf):
            break
        theta = following
    if theta > 0 or norm >= 1:
        return x
    # The hard case: a M = 0 wherever M is smallest, and there is no root. These entries take the rest, at no cost.
    least = scale == lowest
    rest = max(1 - norm * norm, 0.0)
    if float(lowest) > 0:
        share = torch.zeros_like(a)
        share[int(torch.where(least, direction, torch.full_like(direction, -1.0)).argmax())] = 1.0
    elif float(a[least].sum()) > 0:
        share = a / a[least].sum()
    else:
        share = _shares(least, direction)
    return torch.where(least, (rest * share).sqrt(), x)


def _least(a: Tensor, scale: Tensor, direction: Tensor) -> Tensor:
    """Minimises Σ (a/x − M)². With s = x², an entry costs nothing at s0 = (a/M)²."""
    free = torch.where(a > 0, (a / scale) ** 2, torch.zeros_like(a))
    total = float(free.sum())
    if total > 1 + 1e-14:
        return _shrunk(a, scale)
    if total >= 1 - 1e-14:
        return torch.where(scale > 0, a / scale, torch.zeros_like(a))
    sinks = (a == 0) & (scale == 0)
    if bool(sinks.any()):
        return torch.where(scale > 0, a / scale, ((1 - total) * _shares(sinks, direction)).sqrt())
    return _Growing(a, scale, free, 1 - total).solve().sqrt()


def _shrunk(a: Tensor, scale: Tensor) -> Tensor:
    """λ x⁴ + M a x = a² with the λ at which Σ x² = 1. With λ = w⁴ and x = √a z / w it reads z⁴ + b z = 1, b = M/(√a w).
    G(λ) = Σ x²: G⁻² is concave, so that Newton's steps on G⁻² = 1 stay left of the root."""
    root = a.sqrt()
    beta = torch.where(a > 0, scale / root, torch.zeros_like(a))
    log_w = 0.5 * math.log(float(a.sum()))  # z ≤ 1 gives G ≤ Σ a / w²
    x = torch.zeros_like(a)
    for _ in range(200):
        w = math.exp(log_w)
        b = beta / w
        z = torch.ones_like(a)
        for _ in range(12):  # convex, from the right
            z = (3 * z ** 4 + 1) / (4 * z ** 3 + b)
        x = root * z / w
        fourth = z ** 4
        total = float((x * x).sum())
        slope = float((x * x * fourth / (1 + 3 * fourth)).sum())
        if abs(total - 1) <= 1e-13 or not slope > 0:
            break
        factor = 1 + total * (total * total - 1) / (4 * slope)  # of λ
        step = 0.25 * math.log(factor) if factor > 1e-8 else -4.0
        if log_w + step == log_w:
            break
        log_w += step
    return x


class _Growing:
    """Σ s0 < 1, and no entry takes the excess for nothing. In r = √(s0/s) an entry costs M² (1 − r)², with the slope
    κ² (1 − r) r³, κ = M²/a, in s; the peak at r = ¾ divides the near branch from the far one. The cheapest of these is
    taken: all near with one slope; all of the excess at one entry; one far, the others near with the same slope."""

    PEAK = 27.0 / 256

    def __init__(self, a: Tensor, scale: Tensor, free: Tensor, excess: float):
        self.scale, self.free, self.excess = scale, free, excess
        flatness = torch.where(a > 0, scale * scale / a, torch.full_like(a, math.inf))
        smallest = float(flatness.min())
        self.capped = 0 < smallest < math.inf
        self.relative = (smallest / flatness) ** 2 if self.capped else torch.zeros_like(a)

    def cost(self, s: Tensor) -> Tensor:
        ratio = torch.where(s > 0, self.free / s.clamp(min=_TINY), torch.ones_like(s))
        return (self.scale * (1 - ratio.sqrt())) ** 2

    def near(self, t: float) -> Tensor:
        """s of each entry at the slope t κ_min² · 27/256: (1 − r) r³ = c on [¾, 1], by Newton's steps from 1, which
        do not pass the root, since the left side is concave there."""
        c = self.PEAK * (t * self.relative).clamp(max=1)
        r = 1 - c
        for _ in range(60):
            step = ((1 - r) * r ** 3 - c) / (r * r * (4 * r - 3)).clamp(min=1e-300)
            r = (r + step.clamp(max=0)).clamp(min=0.75)
        return self.free / (r * r)

    def spread(self) -> list[Tensor]:
        if float(self.near(1.0).sum()) < 1:
            return []
        low, high = 0.0, 1.0  # of √(1 − t), in which s is smooth at t = 1
        for _ in range(60):
            middle = 0.5 * (low + high)
            if float(self.near(1 - middle * middle).sum()) > 1:
                low = middle
            else:
                high = middle
        return [self.near(1 - low * low)]

    def far(self, j: int) -> list[Tensor]:
        """The slope of j falls as the others take more, so that its least agreement with theirs is a fixed point that
        is reached from below."""
        t = 0.0
        s = self.free
        for _ in range(400):
            s = self.near(t)
            rest = 1 - float(s.sum() - s[j])
            own = float(self.free[j])
            if rest <= own:
                return []
            r = (own / rest) ** 0.5
            if r > 0.75:
                return []
            following = (1 - r) * r ** 3 / (self.PEAK * float(self.relative[j]))
            if following > 1:
                return []
            if abs(following - t) <= 1e-15 * following:
                break
            t = following
        s = s.clone()
        s[j] = 1 - float(s.sum() - s[j])
        return [s]

    def solve(self) -> Tensor:
        dumped = self.cost(self.free + self.excess)
        candidates = self.spread() if self.capped else []
        cheapest = int(dumped.argmin())
        alone = self.free.clone()
        alone[cheapest] += self.excess
        candidates.append(alone)
        if self.capped:
            for j in torch.argsort(dumped)[:12].tolist():
                if float(self.free[j]) > 0:
                    candidates += self.far(j)
        return min(candidates, key=lambda s: float(self.cost(s).sum()))


_SOLVERS = {"least": _least, "balanced": _balanced, "stable": _stable, "scaled": _scaled}
