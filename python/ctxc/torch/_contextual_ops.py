"""The meaning of xf's ops that read the tokens before (docs/language.md) in PyTorch."""

from __future__ import annotations

import torch

from ctxc.torch._evaluation import Evaluation, Tensor, meaning
from ctxc.torch._graph import Op


@meaning("xf.attention")
def _attention(op: Op, run: Evaluation) -> None:
    sizes = iter(op.attributes["operandSegmentSizes"])
    operands = iter(op.operands)
    query, key, value, window, slopes, sinks = ([next(operands) for _ in range(size)] for size in sizes)
    state = run.state(op)
    state.append(run.positions, run.rows(key[0]), run.rows(value[0]))
    keys, values = state.tensors
    assert state.positions is not None
    q = run.rows(query[0])
    count, heads, width = q.shape
    groups = keys.shape[1]
    scores = torch.einsum("tgrd,jgd->tgrj", q.reshape(count, groups, heads // groups, width), keys)
    scores = scores.reshape(count, heads, -1)
    if slopes:
        scores = scores + _slope(run.rows(slopes[0]), state.positions, "rounded" in op.attributes)
    scores = op.attributes["scale"] * scores
    if "softcap" in op.attributes:
        scores = op.attributes["softcap"] * torch.tanh(scores / op.attributes["softcap"])
    if "bidirectional" not in op.attributes:
        distance = run.positions[:, None] - state.positions[None, :]
        visible = distance >= 0
        if window:
            size = run.exact(window[0]).reshape(-1, 1)
            visible &= (size == 0) | (distance < size)
        scores = scores.masked_fill(~visible[:, None, :], -torch.inf)
    if sinks:
        sink = run.wide(sinks[0]).expand(count, heads)[..., None]
        weights = torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]
    else:
        weights = torch.softmax(scores, -1)
    weights = weights.reshape(count, groups, heads // groups, -1)
    run.set(op.results[0], torch.einsum("tgrj,jge->tgre", weights, values).reshape(count, heads, -1))


def _slope(slopes: Tensor, positions: Tensor, rounded: bool) -> Tensor:
    """m_h j for each token, head and position, (t, heads, positions)."""
    places = positions.to(slopes.dtype)
    if not rounded:
        return slopes[:, :, None] * places

    def narrow(x: Tensor) -> Tensor:
        return x.to(torch.bfloat16).to(slopes.dtype)

    return narrow(narrow(slopes)[:, :, None] * narrow(places))


@meaning("xf.conv")
def _conv(op: Op, run: Evaluation) -> None:
    data, weight = run.rows(op.operands[1]), run.wide(op.operands[0])
    state, width = run.state(op), weight.shape[-1]
    before = state.append(run.positions, data)
    padded = torch.cat([data.new_zeros(width - 1, data.shape[1]), state.tensors[0]])
    windows = padded.unfold(0, width, 1)[before:]  # (t, channels, width), the token itself last
    run.set(op.results[0], (windows * weight).sum(-1))


@meaning("xf.scan")
def _scan(op: Op, run: Evaluation) -> None:
    gate, data = (run.rows(number) for number in op.operands)
    state = run.state(op)
    last = state.tensors[0][-1] if state.tensors and len(state.tensors[0]) else torch.zeros_like(data[0])
    made = []
    for a, b in zip(gate, data):
        last = a * last + b
        made.append(last)
    result = torch.stack(made)
    state.append(run.positions, result)
    run.set(op.results[0], result)


@meaning("xf.linear_attention")
def _linear_attention(op: Op, run: Evaluation) -> None:
    operands = iter(op.operands)
    query, key, value, decay, rates, delta = (
        [next(operands) for _ in range(size)] for size in op.attributes["operandSegmentSizes"])
    v = run.rows(value[0])
    count, heads, width = v.shape
    q, k = (run.rows(each[0]).repeat_interleave(heads // run.rows(each[0]).shape[1], 1) for each in (query, key))
    steps = run.rows(decay[0]).reshape(count, heads, -1)
    exponents = steps if not rates else -run.wide(rates[0]).exp().reshape(heads, -1) * steps
    kept = exponents.exp()[..., None]
    b = run.rows(delta[0])[..., None] if delta else None
    state = run.state(op)
    has_before = state.tensors and len(state.tensors[0])
    last = state.tensors[0][-1] if has_before else v.new_zeros(heads, k.shape[-1], width)
    states, results = [], []
    for t in range(count):
        last = kept[t] * last
        added = v[t] if b is None else b[t] * (v[t] - torch.einsum("hk,hkv->hv", k[t], last))
        last = last + k[t][:, :, None] * added[:, None, :]
        states.append(last)
        results.append(torch.einsum("hk,hkv->hv", q[t], last))
    state.append(run.positions, torch.stack(states))
    run.set(op.results[0], torch.stack(results))
