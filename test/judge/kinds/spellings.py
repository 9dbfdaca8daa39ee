"""The same block in other words: it has the same verdict, and the same numbers."""
import torch
from common import WIDTH, Block, Model
from torch import nn


class Spelled(Block):
    """`how(x, y, block)` is x and half of what the MLP adds; `inside(h)` changes what is in the MLP, and `first` adds what
    attention gives."""

    def __init__(self, how, inside=None, first=None):
        super().__init__()
        self.first = first or (lambda x, y, block: x + y)
        self.how, self.inside, self.factor = how, inside, nn.Parameter(torch.full((WIDTH,), 0.5))

    def forward(self, x):
        x = self.first(x, self.attention(x), self)
        h = self.mlp.up(x).relu()
        return self.how(x, self.mlp.down(h if self.inside is None else self.inside(h)), self)


def assigned(h):
    h = h.clone()
    h[..., :3] = 0
    return h


def assigned_number(h):
    h = h.clone()
    h[..., 2:5] = 0.25
    return h


def filled(h):
    h = h.clone()
    h[..., -2:].fill_(1.5)
    return h


SUMS = {
    "times": lambda x, y, b: x + 0.5 * y,
    "alpha": lambda x, y, b: torch.add(x, y, alpha=0.5),
    "alpha in place": lambda x, y, b: x.clone().add_(y, alpha=0.5),
    "negative alpha": lambda x, y, b: torch.sub(x, y, alpha=-0.5),
    "rsub": lambda x, y, b: torch.rsub(-0.5 * y, x),
    "rsub with alpha": lambda x, y, b: torch.rsub(y, x, alpha=-0.5),
    "lerp": lambda x, y, b: torch.lerp(x, x + y, 0.5),
    "lerp in place": lambda x, y, b: x.clone().lerp_(x + y, 0.5),
    "lerp by a tensor": lambda x, y, b: torch.lerp(x, x + y, torch.tensor(0.5)),
    "addcmul": lambda x, y, b: torch.addcmul(x, y, torch.tensor(0.5)),
    "addcmul with a value": lambda x, y, b: torch.addcmul(x, y, torch.ones(WIDTH), value=0.5),
    "addcmul by a parameter": lambda x, y, b: torch.addcmul(x, y, b.factor),
    "addcdiv": lambda x, y, b: torch.addcdiv(x, y, torch.tensor(2.0)),
    "a quotient": lambda x, y, b: x + y / 2,
    "a number with alpha": lambda x, y, b: torch.add(torch.add(x, 0.5 * y), 2.0, alpha=0.25) - 0.5,
    "a sum of terms": lambda x, y, b: sum([x, 0.5 * y]),
    "in place": lambda x, y, b: x.clone().add_(0.5 * y),
    "mul in place": lambda x, y, b: y.clone().mul_(0.5) + x,
    "times a share": lambda x, y, b: x + b.factor.softmax(0)[2] * y,
}
INSIDES = {
    "zeros by assignment": assigned,
    "a number by assignment": assigned_number,
    "filled": filled,
    "zeros by cat": lambda h: torch.cat([torch.zeros_like(h[..., :3]), h[..., 3:]], -1),
    "masked": lambda h: h.masked_fill(torch.arange(2 * WIDTH) < 3, 0.0),
    "times ones": lambda h: h * torch.ones(2 * WIDTH),
}
BRANCHES = r"'higher_order\.cond'.* runs other programs by what it reads"


class Branching(Block):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "cond":
            x = torch.cond(x.sum() > 0, lambda z: z * 2, lambda z: z * 3, (x,))
        return super().forward(x)


def by_mean(x, y, block):
    return x + block.attention.qkv.weight.abs().mean() * y


class Rounded(nn.Linear):
    """Of a matrix only signs and one number are left, as BitNet has it."""

    def forward(self, x):
        weight = (self.weight - self.weight.mean()).sign() * self.weight.abs().mean()
        largest = x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        return nn.functional.linear((x * 127 / largest).round() * largest / 127, self.weight + (weight - self.weight).detach(), self.bias)


class OfSigns(Block):
    def __init__(self, bias):
        super().__init__()
        self.mlp.up, self.mlp.down = Rounded(WIDTH, 2 * WIDTH), Rounded(2 * WIDTH, WIDTH, bias=bias)


CASES = {name: ((lambda how: lambda: Model(lambda: Spelled(how), 2))(how), None) for name, how in SUMS.items()}
for _name, _inside in INSIDES.items():
    CASES[_name] = (lambda inside: lambda: Model(lambda: Spelled(SUMS["times"], inside), 2))(_inside), None
CASES["times a matrix's mean"] = lambda: Model(lambda: Spelled(SUMS["times"], None, by_mean), 2), None
CASES["a matrix of signs"] = lambda: Model(lambda: OfSigns(False), 2), r"makes of '(\w+\.)*mlp\.down\.weight', and nothing says which numbers"
CASES["a matrix of signs and a bias"] = lambda: Model(lambda: OfSigns(True), 2), None
CASES["torch.cond"] = lambda: Model(lambda: Branching("cond"), 2), BRANCHES


def scaled(choose):
    """A spelling of x + c y with another c."""
    c = choose([0.25, -1.5, 3.0])
    return choose([(f"add {c}", lambda x, y, b: torch.add(x, y, alpha=c)), (f"sub {c}", lambda x, y, b: torch.sub(x, y, alpha=-c)),
                   (f"lerp {c}", lambda x, y, b: torch.lerp(x, y + x, c)),
                   (f"addcmul {c}", lambda x, y, b: torch.addcmul(x, torch.full((WIDTH,), c / 2), y, value=2.0)),
                   (f"addcdiv {c}", lambda x, y, b: torch.addcdiv(x, y, torch.tensor(-1 / c), value=-1.0)),
                   (f"rsub {c}", lambda x, y, b: torch.rsub(y, x, alpha=-c))])


def generated(choose):
    """Another module of the kind."""
    (first, a), (second, b), inside = scaled(choose), scaled(choose), choose([None, *INSIDES])
    return f"{first}, {second}, {inside}", Model(lambda: Spelled(b, INSIDES.get(inside), a), 2), None
