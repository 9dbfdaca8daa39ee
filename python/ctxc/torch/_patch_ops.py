"""The meaning of patch's ops (docs/language.md) in PyTorch: how a dual block forms a patch, and how an applied block
takes one."""

from __future__ import annotations

import torch

from ctxc.torch._evaluation import Evaluation, Tensor, meaning
from ctxc.torch._graph import Op
from ctxc.torch._norms import invert_rms_norm, solve_scale
from ctxc.torch._ops import expert_linear, linear


@meaning("patch.linears")
def _linears(op: Op, run: Evaluation) -> None:
    for data, result in zip(op.operands[1:], op.results):
        run.set(result, linear(run, op.operands[0], data, "transposed" in op.attributes))


@meaning("patch.expert_linears")
def _expert_linears(op: Op, run: Evaluation) -> None:
    bank, runs = op.operands[0], len(op.results)
    for selected, data, result, shape in zip(op.operands[1:], op.operands[1 + runs:], op.results, op.shapes):
        run.set(result, expert_linear(run, bank, selected, data, "transposed" in op.attributes, shape))


@meaning("patch.rank1")
def _rank1(op: Op, run: Evaluation) -> None:
    target, current, data = (run.rows(number) for number in op.operands)
    squares = (data * data).sum(-1, keepdim=True)
    run.set(op.results[0], target - current)
    run.set(op.results[1], data / torch.where(squares == 0, torch.ones_like(squares), squares))


@meaning("patch.apply_rank1")
def _apply_rank1(op: Op, run: Evaluation) -> None:
    base, u, v, data = (run.rows(number) for number in op.operands)
    run.set(op.results[0], base + u * (v * data).sum(-1, keepdim=True))


@meaning("patch.apply_expert_rank1")
def _apply_expert_rank1(op: Op, run: Evaluation) -> None:
    base, u, v = (run.rows(number) for number in op.operands[:3])
    patched, data, selected = run.exact(op.operands[3]), run.rows(op.operands[4]), run.exact(op.operands[5])
    if data.dim() == 2:  # one vector for all slots
        data = data[:, None, :].expand(-1, v.shape[1], -1)
    inner = torch.einsum("tin,tjn->tij", v, data)
    same = (patched[:, :, None] == selected[:, None, :]).to(inner.dtype)
    run.set(op.results[0], base + torch.einsum("tij,tim->tjm", inner * same, u))


@meaning("patch.squared_norms")
def _squared_norms(op: Op, run: Evaluation) -> None:
    data = run.rows(op.operands[0])
    run.set(op.results[0], (data * data).sum(-1))


@meaning("patch.apply_delta")
def _apply_delta(op: Op, run: Evaluation) -> None:
    run.set(op.results[0], run.wide(op.operands[0]) + run.rows(op.operands[1]))


def _precise(tensor: Tensor) -> Tensor:
    """In float64, on the tensor's device where that has it."""
    return tensor.cpu().double() if tensor.device.type == "mps" else tensor.double()


def _vectors(tensor: Tensor) -> Tensor:
    """All vectors along the last dimension, (vectors, d)."""
    return tensor.reshape(-1, tensor.shape[-1])


@meaning("patch.invert_rms_norm")
def _invert_rms_norm(op: Op, run: Evaluation) -> None:
    target, data = run.rows(op.operands[0]), run.rows(op.operands[2])
    scale = _precise(op.attributes.get("offset", 0.0) + run.rows(op.operands[1]))
    goals, found = _precise(_vectors(target)), _precise(_vectors(data))
    each = len(goals) // run.count  # vectors of one token
    made = [invert_rms_norm(op.attributes["update"], goal, scale[i // each], row, op.attributes["eps"])
            for i, (goal, row) in enumerate(zip(goals, found))]
    run.set(op.results[0], torch.stack(made).reshape(target.shape).to(target))


@meaning("patch.solve_scale")
def _solve_scale(op: Op, run: Evaluation) -> None:
    target, data = run.rows(op.operands[0]), run.rows(op.operands[2])
    scale = op.attributes.get("offset", 0.0) + run.rows(op.operands[1])
    zero = 8 * torch.finfo(run.dtype).eps
    made = []
    for goal, own, row in zip(*(_precise(each).reshape(run.count, -1) for each in (target, scale, data))):
        delta, harmless, harmful = solve_scale(op.attributes["update"], goal, own, row, zero)
        run.harmless += harmless
        run.harmful += harmful
        made.append(delta)
    run.set(op.results[0], torch.stack(made).reshape(run.count, *op.shapes[0]).to(target))


@meaning("patch.obligation")
def _obligation(op: Op, run: Evaluation) -> None:
    data = _vectors(run.rows(op.operands[0]))
    if op.attributes["condition"] == "nonzero_elements":
        run.harmful += int((data == 0).sum())
        return
    zero = (data * data).sum(-1) == 0
    if len(op.operands) == 1:
        run.harmful += int(zero.sum())
        return
    changes = run.rows(op.operands[1]).reshape(len(data), -1)  # of each vector: all that it is to serve
    harmless = (changes == 0).all(-1)
    run.harmless += int((zero & harmless).sum())
    run.harmful += int((zero & ~harmless).sum())


@meaning("patch.same_selection")
def _same_selection(op: Op, run: Evaluation) -> None:
    full, reduced = (run.exact(number) for number in op.operands)
    run.harmful += int((full != reduced).sum())


@meaning("patch.store")
def _store(op: Op, run: Evaluation) -> None:
    run.stores.append((op.attributes["parameter"], [run.rows(part) for part in op.operands]))


@meaning("patch.load")
def _load(op: Op, run: Evaluation) -> None:
    given = run.loads.get(op.attributes["parameter"])
    for i, (number, shape) in enumerate(zip(op.results, op.shapes)):
        if given is None:
            part = torch.zeros(shape, dtype=run.dtype, device=run.tokens.device)
        else:
            part = given[i].reshape(shape).to(run.tokens.device, run.dtype)
        run.set(number, part[None].expand(run.count, *shape))
