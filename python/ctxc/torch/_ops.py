"""The meaning of xf's ops (docs/language.md) in PyTorch. Shapes: t tokens, then the op's own."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from ctxc import _core
from ctxc.torch._evaluation import Evaluation, Stored, Tensor, meaning
from ctxc.torch._graph import Op

#
# Sources
#


@meaning("xf.param")
def _param(op: Op, run: Evaluation) -> None:
    stored = run.weights(run.step.names[op.attributes["name"]])
    shape = op.shapes[0]
    if isinstance(stored, list):
        run.set_parameter(op.results[0], [each.reshape(shape[1:]) for each in stored])
    else:
        run.set_parameter(op.results[0], stored.reshape(shape))


@meaning("xf.setting")
def _setting(op: Op, run: Evaluation) -> None:
    numbers = torch.tensor(run.step.settings[op.attributes["name"]], dtype=torch.float64)
    numbers = numbers.to(run.tokens.device, _widest(run))
    run.set(op.results[0], numbers.reshape(1, *op.shapes[0]).expand(run.count, *op.shapes[0]))


@meaning("xf.token")
def _token(op: Op, run: Evaluation) -> None:
    replaced = torch.tensor(op.attributes.get("replaced", []), dtype=run.tokens.dtype, device=run.tokens.device)
    ids = torch.where(torch.isin(run.tokens, replaced), op.attributes.get("by", 0), run.tokens)
    run.set(op.results[0], ids)


@meaning("xf.position")
def _position(op: Op, run: Evaluation) -> None:
    positions = (run.positions + op.attributes.get("offset", 0)) // op.attributes.get("divisor", 1)
    is_number = bool(op.shapes[0])
    run.set(op.results[0], positions.to(run.dtype)[:, None] if is_number else positions)


@meaning("xf.constant")
def _constant(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], torch.full_like(run.tokens, op.attributes["id"]))


@meaning("xf.embed")
def _embed(op: Op, run: Evaluation) -> None:
    ids = run.exact(op.operands[1])
    table = run.parameter(op.operands[0])
    if isinstance(table, Tensor):
        run.set(op.results[0], table[ids].to(run.dtype))
    else:
        tables = run.rows(op.operands[0])
        run.set(op.results[0], tables[torch.arange(run.count, device=ids.device), ids])


def _widest(run: Evaluation) -> torch.dtype:
    return torch.float32 if run.tokens.device.type == "mps" else torch.float64


#
# Ops with a parameter
#


def linear(run: Evaluation, weight: int, data: int, transposed: bool) -> Tensor:
    """W x for each vector along the last dimension; W is (out, in), or (in, out) where it is stored transposed."""
    x = run.rows(data)
    stored = run.parameter(weight)
    if isinstance(stored, Tensor):
        return _product(stored.to(run.dtype), x, transposed)
    return torch.einsum("t...i,tio->t...o" if transposed else "t...i,toi->t...o", x, run.rows(weight))


def _product(matrix: Tensor, x: Tensor, transposed: bool) -> Tensor:
    return x @ matrix if transposed else F.linear(x, matrix)


def along(parameter: Tensor, data: Tensor) -> Tensor:
    """A parameter of the data's last dimensions, (t, …), so that it is shared by the leading ones."""
    missing = data.dim() - parameter.dim()
    return parameter.reshape(len(parameter), *[1] * missing, *parameter.shape[1:])


@meaning("xf.linear")
def _linear(op: Op, run: Evaluation) -> None:
    weight, data = op.operands
    run.set(op.results[0], linear(run, weight, data, "transposed" in op.attributes))


@meaning("xf.bias")
def _bias(op: Op, run: Evaluation) -> None:
    data = run.rows(op.operands[0])
    run.set(op.results[0], data + along(run.wide(op.operands[1]), data))


@meaning("xf.scale")
def _scale(op: Op, run: Evaluation) -> None:
    data = run.rows(op.operands[0])
    run.set(op.results[0], (op.attributes.get("offset", 0.0) + along(run.wide(op.operands[1]), data)) * data)


#
# Functions of a token
#


@meaning("xf.normalize")
def _normalize(op: Op, run: Evaluation) -> None:
    x, kind, eps = run.rows(op.operands[0]), op.attributes["kind"], op.attributes["eps"]
    if kind == "sum":
        run.set(op.results[0], x / (x.sum(-1, keepdim=True) + eps))
        return
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    squares = (x * x).sum(-1, keepdim=True) if kind == "l2" else (x * x).mean(-1, keepdim=True)
    run.set(op.results[0], x / torch.sqrt(squares + eps))


# What the formulas of dialects/XF/Functions.def consist of.
_PARTS: dict[str, Callable[..., Tensor]] = {
    "abs": torch.abs, "exp": torch.exp, "sqrt": torch.sqrt, "tanh": torch.tanh, "relu": F.relu,
    "sigmoid": torch.sigmoid, "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "logarithm": lambda x: torch.log(torch.clamp(x, min=2.0**-126)), "gelu": F.gelu,
    "gated": lambda x, t: x * 0.5 * (1.0 + t),
}
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    name: eval(f"lambda x: {formula}", dict(_PARTS)) for name, formula in _core.functions()}
# PyTorch computes these at once, with fewer roundings.
_ACTIVATIONS.update(gelu_tanh=lambda x: F.gelu(x, approximate="tanh"), silu=F.silu)


@meaning("xf.activation")
def _activation(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], _ACTIVATIONS[op.attributes["kind"]](run.rows(op.operands[0])))


@meaning("xf.softmax")
def _softmax(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], torch.softmax(run.rows(op.operands[0]), -1))


@meaning("xf.softcap")
def _softcap(op: Op, run: Evaluation) -> None:
    cap = op.attributes["cap"]
    run.set(op.results[0], cap * torch.tanh(run.rows(op.operands[0]) / cap))


@meaning("xf.leaky")
def _leaky(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], F.leaky_relu(run.rows(op.operands[0]), op.attributes["slope"]))


@meaning("xf.power")
def _power(op: Op, run: Evaluation) -> None:
    x, n = run.rows(op.operands[0]), op.attributes["exponent"]
    run.set(op.results[0], x.sign() * x.abs().pow(1 / n if "root" in op.attributes else n))


@meaning("xf.round")
def _round(op: Op, run: Evaluation) -> None:
    x = run.rows(op.operands[0])
    narrow = {"bf16": torch.bfloat16, "f16": torch.float16}[op.attributes["narrow"]]
    run.set(op.results[0], x.to(narrow).to(x.dtype))


@meaning("xf.clamp")
def _clamp(op: Op, run: Evaluation) -> None:
    limit = op.attributes["limit"]
    run.set(op.results[0], run.rows(op.operands[0]).clamp(None if "above" in op.attributes else -limit, limit))


@meaning("xf.times")
def _times(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], op.attributes["factor"] * run.rows(op.operands[0]))


def _pair(op: Op, run: Evaluation) -> tuple[Tensor, Tensor]:
    """Both operands; a second one of one element acts on all of the first."""
    a, b = (run.rows(number) for number in op.operands)
    return a, b if a.shape == b.shape else b.reshape(len(b), *[1] * (a.dim() - 1))


@meaning("xf.add")
def _add(op: Op, run: Evaluation) -> None:
    a, b = _pair(op, run)
    run.set(op.results[0], a + b)


@meaning("xf.sub")
def _sub(op: Op, run: Evaluation) -> None:
    a, b = _pair(op, run)
    run.set(op.results[0], a - b)


@meaning("xf.mul")
def _mul(op: Op, run: Evaluation) -> None:
    a, b = _pair(op, run)
    run.set(op.results[0], a * b)


@meaning("xf.div")
def _div(op: Op, run: Evaluation) -> None:
    a, b = _pair(op, run)
    run.set(op.results[0], a / torch.where(b == 0, torch.ones_like(b), b))


#
# Shapes and positions
#


@meaning("xf.reshape")
def _reshape(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], run.rows(op.operands[0]).reshape(run.count, *op.shapes[0]))


@meaning("xf.transpose")
def _transpose(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], run.rows(op.operands[0]).permute(0, *(1 + axis for axis in op.attributes["order"])))


@meaning("xf.permute")
def _permute(op: Op, run: Evaluation) -> None:
    axis = 1 + op.attributes.get("along", 0)
    parts = torch.split(run.rows(op.operands[0]), op.attributes["parts"], axis)
    run.set(op.results[0], torch.cat([parts[part] for part in op.attributes["order"]], axis))


@meaning("xf.slice")
def _slice(op: Op, run: Evaluation) -> None:
    axis = op.attributes.get("along", 0)
    run.set(op.results[0], run.rows(op.operands[0]).narrow(1 + axis, op.attributes["from"], op.shapes[0][axis]))


@meaning("xf.concat")
def _concat(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], torch.cat([run.rows(part) for part in op.operands], 1 + op.attributes.get("along", 0)))


@meaning("xf.broadcast")
def _broadcast(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], run.rows(op.operands[0]).expand(run.count, *op.shapes[0]))


@meaning("xf.rotary")
def _rotary(op: Op, run: Evaluation) -> None:
    x, frequencies = run.rows(op.operands[0]), run.exact(op.operands[1])
    n, amplitude = frequencies.shape[-1], op.attributes.get("amplitude", 1.0)
    angle = (run.positions.to(frequencies.dtype)[:, None] * frequencies)[:, None, :]
    cosine = (amplitude * torch.cos(angle)).to(x.dtype)
    sine = (amplitude * torch.sin(angle)).to(x.dtype)
    half = op.attributes["style"] == "half"
    a, b = (x[..., :n], x[..., n:2 * n]) if half else (x[..., 0:2 * n:2], x[..., 1:2 * n:2])
    turned = a * cosine - b * sine, b * cosine + a * sine
    front = torch.cat(turned, -1) if half else torch.stack(turned, -1).flatten(-2)
    run.set(op.results[0], torch.cat([front, x[..., 2 * n:]], -1))


#
# Mixtures of experts
#


def _keep_groups(scores: Tensor, groups: int, keep: int) -> Tensor:
    """The scores, with −∞ outside the `keep` groups whose two largest entries have the largest sums."""
    parts = scores.reshape(len(scores), groups, -1)
    order = torch.sort(parts.topk(2).values.sum(-1), descending=True, stable=True).indices
    kept = torch.zeros(parts.shape[:2], dtype=torch.bool, device=scores.device).scatter(1, order[:, :keep], True)
    return parts.masked_fill(~kept[..., None], -torch.inf).reshape(scores.shape)


@meaning("xf.top_k")
def _top_k(op: Op, run: Evaluation) -> None:
    scores, groups = run.rows(op.operands[0]), op.attributes.get("groups", 1)
    if groups > 1:
        scores = _keep_groups(scores, groups, op.attributes.get("keep", 1))
    order = torch.sort(scores, descending=True, stable=True).indices  # of equal entries the first counts as larger
    run.set(op.results[0], order[:, :op.attributes["k"]].sort().values)


@meaning("xf.gather")
def _gather(op: Op, run: Evaluation) -> None:
    selected = run.exact(op.operands[1])
    data = run.parameter(op.operands[0])
    if isinstance(data, Tensor):
        run.set(op.results[0], data[selected].to(run.dtype))
    else:
        rows = run.rows(op.operands[0])
        run.set(op.results[0], rows[torch.arange(run.count, device=rows.device)[:, None], selected])


def _expert(bank: Stored, index: int) -> Tensor:
    return bank[index]


def expert_linear(
    run: Evaluation, bank: int, selected: int, data: int, transposed: bool, shape: tuple[int, ...]
) -> Tensor:
    """The matrix of each selected expert times its vector, as xf.expert_linear has it; `shape` is the result's."""
    chosen, x = run.exact(selected), run.rows(data)
    stored = run.parameter(bank)
    if x.dim() == 2:  # one vector for all slots
        x = x[:, None, :].expand(-1, shape[0], -1)
    if stored is None:
        matrices = run.rows(bank)[torch.arange(run.count, device=x.device)[:, None], chosen]
        return torch.einsum("tki,tkio->tko" if transposed else "tki,tkoi->tko", x, matrices)
    result = x.new_empty(run.count, *shape)
    for index in sorted(set(chosen.flatten().tolist())):
        slots = chosen == index
        result[slots] = _product(_expert(stored, index).to(run.dtype), x[slots], transposed)
    return result


@meaning("xf.expert_linear")
def _expert_linear(op: Op, run: Evaluation) -> None:
    bank, selected, data = op.operands
    run.set(op.results[0], expert_linear(run, bank, selected, data, "transposed" in op.attributes, op.shapes[0]))


@meaning("xf.combine")
def _combine(op: Op, run: Evaluation) -> None:
    weights, data = (run.rows(number) for number in op.operands)
    run.set(op.results[0], (weights.reshape(*weights.shape, *[1] * (data.dim() - 2)) * data).sum(1))


@meaning("xf.outer")
def _outer(op: Op, run: Evaluation) -> None:
    weights, data = (run.rows(number) for number in op.operands)
    run.set(op.results[0], weights[:, :, None] * data[:, None, :])
