"""Buffers and tensors of the program: their numbers count in verdicts, and weights do not change them."""
import torch
from common import WIDTH, Block, Model
from torch import nn
from torch.nn import functional as F

NONE = r"cannot take the context|is undecided"


class Changed(Block):
    """A block whose MLP's result goes through `how`, which has the block's buffers."""

    def __init__(self, how, buffers=None, inside=False):
        super().__init__()
        self.how, self.inside = how, inside
        for name, value in (buffers or {}).items():
            self.register_buffer(name, value)

    def forward(self, x):
        x = x + self.attention(x)
        return x + (self.mlp(self.how(self, x)) if self.inside else self.how(self, self.mlp(x)))


def of(how, inside=False, **buffers):
    return lambda: Model(lambda: Changed(how, {name: value.clone() for name, value in buffers.items()}, inside))


SIGNS = torch.tensor([1.0, -1.0, 2.0, -0.5, 1.0, 1.0, -1.0, 0.25])
HOLES = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
ORTHOGONAL = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(3)))[0]
RANK2 = torch.randn(WIDTH, 2, generator=torch.Generator().manual_seed(4)) @ torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(5))


CASES = {
    "a mask of signs": (of(lambda b, y: y * b.mask, mask=SIGNS), None),
    "a mask with zeros": (of(lambda b, y: y * b.mask, mask=HOLES), NONE),
    "a mask of zeros": (of(lambda b, y: y * b.mask, mask=torch.zeros(WIDTH)), NONE),
    "alpha is 0": (of(lambda b, y: y * b.alpha, alpha=torch.zeros(1)), NONE),
    "alpha is 0, without an axis": (of(lambda b, y: y * b.alpha, alpha=torch.tensor(0.0)), NONE),
    "alpha is 0.5": (of(lambda b, y: y * b.alpha, alpha=torch.tensor([0.5])), None),
    "a shift": (of(lambda b, y: y + b.shift, shift=SIGNS), None),
    "a shift of zeros": (of(lambda b, y: y + b.shift, shift=torch.zeros(WIDTH)), None),
    "a gain behind a norm": (of(lambda b, y: F.rms_norm(y, (WIDTH,)) * b.gain, gain=SIGNS), NONE),
    "an orthogonal matrix behind": (of(lambda b, y: y @ b.matrix, matrix=ORTHOGONAL), None),
    "a linear with an orthogonal matrix": (of(lambda b, y: F.linear(y, b.matrix), matrix=ORTHOGONAL), None),
    "a matrix of rank 2 behind": (of(lambda b, y: y @ b.matrix, matrix=RANK2), NONE),
    "a matrix of rank 2 inside": (of(lambda b, y: y @ b.matrix, inside=True, matrix=RANK2), None),
    "a matrix of zeros inside": (of(lambda b, y: y @ b.matrix, inside=True, matrix=torch.zeros(WIDTH, WIDTH)), None),
    "a tensor of the program": (of(lambda b, y: y * torch.tensor([1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0])), None),
    "a tensor of the program with zeros": (of(lambda b, y: y * torch.tensor([1.0, 0.0] * 4)), NONE),
    "a buffer in bfloat16": (of(lambda b, y: y * b.mask, mask=SIGNS.bfloat16()), None),
    "permuted": (of(lambda b, y: y[..., [3, 1, 0, 2, 7, 6, 5, 4]]), None),
    "flipped": (of(lambda b, y: y.flip(-1)), None),
    "rolled": (of(lambda b, y: y.roll(3, -1)), None),
    "summed up": (of(lambda b, y: y.cumsum(-1)), None),
    "leaky": (of(lambda b, y: F.leaky_relu(y, 0.1)), None),
    "a cube": (of(lambda b, y: y**3), None),
    "x |x|": (of(lambda b, y: y * y.abs()), None),
    "an odd silu": (of(lambda b, y: F.silu(y) - F.silu(-y)), None),
    "PReLU inside": (lambda: Model(lambda: Sloped()), None),
    "elu inside": (of(lambda b, y: F.elu(y), inside=True), None),
    "hardswish inside": (of(lambda b, y: F.hardswish(y), inside=True), None),
    "hardsigmoid inside": (of(lambda b, y: F.hardsigmoid(y), inside=True), None),
    "hardtanh": (of(lambda b, y: F.hardtanh(y)), NONE),
    "elu": (of(lambda b, y: F.elu(y)), NONE),
    "hardswish": (of(lambda b, y: F.hardswish(y)), NONE),
    "softsign": (of(lambda b, y: F.softsign(y)), NONE),
    "relu6": (of(lambda b, y: F.relu6(y)), NONE),
    "x + x²": (of(lambda b, y: y + y * y), NONE),
    "x - silu x": (of(lambda b, y: y - F.silu(y)), NONE),
}


class Sloped(Block):
    def __init__(self):
        super().__init__()
        self.slope = nn.PReLU(WIDTH)

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(self.slope(x.transpose(1, 2)).transpose(1, 2))


def generated(choose):
    """A buffer somewhere; one that may be zero is refused by a verdict, or is not in the way."""
    where = choose(["mask", "shift", "matrix"])
    value = torch.randn(WIDTH, WIDTH) if where == "matrix" else torch.tensor([choose([1.0, -1.0, 0.5]) for _ in range(WIDTH)])
    how = {"mask": lambda b, y: y * b.given, "shift": lambda b, y: y + b.given, "matrix": lambda b, y: y @ b.given}[where]
    inside = where == "matrix" or choose([True, False])
    return f"a {where} {'inside' if inside else 'behind'}", of(how, inside, given=value), None
