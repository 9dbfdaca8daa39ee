"""Recurrences of transformers as one op, linear_attention or decaying_mean. Transformers goes through the tokens in a loop, or through
chunks of them, which an exported program then spells out for so many tokens."""
from __future__ import annotations

import contextlib
import sys
import types
from typing import Any, Callable, Iterator, Optional

import torch
import torch.nn.functional as F


@torch.library.custom_op("ctxc::linear_attention", mutates_args=())
def linear_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: torch.Tensor,
                     rates: Optional[torch.Tensor] = None, delta: Optional[torch.Tensor] = None) -> torch.Tensor:
    """xf.linear_attention: query and key are (batch, tokens, groups, K), value (batch, tokens, heads, V), decay (batch,
    tokens, heads) or (batch, tokens, heads, K), delta (batch, tokens, heads), all in float. A head's state is multiplied
    by exp(decay), or exp(decay · rates) with rates (heads) or (heads, K)."""
    heads = value.shape[2]
    query, key = (x.repeat_interleave(heads // x.shape[2], 2) for x in (query, key))
    if rates is not None:
        of_rows = max(rates.dim(), decay.dim() - 2) == 2
        decay = (decay.unsqueeze(-1) if of_rows and decay.dim() == 3 else decay) * \
            (rates.unsqueeze(-1) if of_rows and rates.dim() == 1 else rates)
    kept = decay.exp()
    kept = (kept.unsqueeze(-1) if kept.dim() == 3 else kept).unsqueeze(-1)
    state = value.new_zeros(value.shape[0], heads, key.shape[3], value.shape[3])
    results = []
    for t in range(value.shape[1]):
        state = state * kept[:, t]
        added = value[:, t]
        if delta is not None:
            added = delta[:, t, :, None] * (added - (key[:, t, :, None, :] @ state).squeeze(2))
        state = state + key[:, t, :, :, None] * added[:, :, None, :]
        results.append((query[:, t, :, None, :] @ state).squeeze(2))
    return torch.stack(results, 1)


@linear_attention.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: torch.Tensor,
      rates: Optional[torch.Tensor] = None, delta: Optional[torch.Tensor] = None) -> torch.Tensor:
    return torch.empty_like(value, memory_format=torch.contiguous_format)


@torch.library.custom_op("ctxc::decaying_mean", mutates_args=())
def decaying_mean(key: torch.Tensor, value: torch.Tensor, decay: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """xf.decaying_mean: key and value are (batch, tokens, channels), and the same decay and `own` (channels) hold for every
    token, all in float."""
    sums = weights = torch.zeros_like(value[:, 0])
    greatest = torch.full_like(sums, -1e30)
    results = []
    for t in range(value.shape[1]):
        k, v = key[:, t], value[:, t]
        top = torch.maximum(greatest, k + own)
        before, here = (greatest - top).exp(), (k + own - top).exp()
        results.append((before * sums + here * v) / (before * weights + here))
        top = torch.maximum(greatest + decay, k)
        before, here = (greatest + decay - top).exp(), (k - top).exp()
        sums, weights, greatest = before * sums + here * v, before * weights + here, top
    return torch.stack(results, 1)


@decaying_mean.register_fake
def _(key: torch.Tensor, value: torch.Tensor, decay: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(value, memory_format=torch.contiguous_format)


def with_softplus(step: torch.Tensor, bias: torch.Tensor | None, does: bool) -> torch.Tensor:
    step = step if bias is None else step + bias
    return F.softplus(step) if does else step


def selective_scan(hidden_states: torch.Tensor, dt: torch.Tensor, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor,
                   D: torch.Tensor | None = None, z: torch.Tensor | None = None,
                   delta_bias: torch.Tensor | None = None, delta_softplus: bool = False,
                   return_last_state: bool = False, **_: Any) -> Any:
    """Mamba's: each channel is a head of one number, and all share one query, C, and one key, B."""
    x, step = hidden_states.transpose(1, 2), with_softplus(dt.transpose(1, 2), delta_bias, delta_softplus)
    query, key = (each.transpose(1, 2).unsqueeze(2) for each in (C, B))
    y = linear_attention(query, key, (step * x).unsqueeze(-1), step, A).squeeze(-1)
    y = y if D is None else y + x * D
    y = y if z is None else y * F.silu(z.transpose(1, 2))
    y = y.transpose(1, 2)
    return (y, None) if return_last_state else y


def chunk_scan(hidden_states: torch.Tensor, dt: torch.Tensor, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor,
               chunk_size: int, D: torch.Tensor | None = None, dt_bias: torch.Tensor | None = None,
               dt_softplus: bool = False, dt_limit: tuple[float, float] = (0.0, float("inf")),
               return_final_states: bool = False, **_: Any) -> Any:
    """Mamba 2's."""
    step = with_softplus(dt, dt_bias, dt_softplus)
    if not dt_softplus or tuple(dt_limit) != (0.0, float("inf")):
        step = step.clamp(dt_limit[0], dt_limit[1])
    columns = hidden_states.transpose(2, 3)
    y = linear_attention(C, B, (columns * step.unsqueeze(2)).transpose(2, 3), step, A)
    y = y if D is None else y + (columns * D).transpose(2, 3)
    return (y, None) if return_final_states else y


def gated_delta_rule(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, g: torch.Tensor, beta: torch.Tensor,
                     use_qk_l2norm_in_kernel: bool = False, **_: Any) -> tuple[torch.Tensor, None]:
    """The delta rule of Qwen3-Next and others."""
    if use_qk_l2norm_in_kernel:
        query, key = (x * torch.rsqrt((x * x).sum(dim=-1, keepdim=True) + 1e-6) for x in (query, key))
    return linear_attention(query * query.shape[-1] ** -0.5, key, value, g, None, beta), None


def weighted_key_values(time_decay: torch.Tensor, time_first: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                        state: Any = None, return_state: bool = False) -> tuple[torch.Tensor, Any]:
    """RWKV's, from its first token on."""
    return decaying_mean(key.float(), value.float(), -time_decay.exp(), time_first).to(value.dtype), state


def lightning_attention(self: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, None]:
    """MiniMax's, whose decays are the same for every token."""
    batch, tokens = hidden_states.shape[:2]
    heads = self.num_attention_heads
    made = self.act_fn(self.qkv_proj(hidden_states)).reshape(batch, tokens, heads, -1)
    query, key, value = made.split(self.head_dim, dim=3)
    decay = -self.slope_rate.view(-1).expand(batch, tokens, heads)
    y = self.norm(linear_attention(query, key, value, decay).reshape(batch, tokens, -1))
    return self.out_proj(F.sigmoid(self.output_gate(hidden_states)) * y), None


def real_gated_unit(self: Any, activations: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
    """Griffin's RG-LRU: each channel decays by itself. The first token's input is not scaled; before it there is no state to decay."""
    batch, tokens, width = activations.shape
    parts = activations.reshape(batch, tokens, self.num_attention_heads, 1, self.block_width)

    def gate(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(torch.matmul(parts, weight).squeeze(3) + bias).reshape(batch, tokens, width)
    decay = -8.0 * gate(self.recurrent_gate_weight, self.recurrent_gate_bias) * F.softplus(self.recurrent_param)
    follows = position_ids.to(decay.dtype).clamp(max=1).unsqueeze(-1)
    scale = (1 - (2 * decay).exp() * follows).clamp(min=0).sqrt()
    value = activations * gate(self.input_gate_weight, self.input_gate_bias) * scale
    one = torch.ones(batch, tokens, 1, 1, dtype=torch.float32)
    y: torch.Tensor = linear_attention(one, one, value.float().unsqueeze(-1), decay.float())
    return y.squeeze(-1).to(activations.dtype)


def heads_of_mamba(self: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Zamba's: each head is Mamba's with matrices of its own."""
    batch, tokens = hidden_states.shape[:2]
    x, gate = self.in_proj(hidden_states).view(batch, tokens, -1, 2).unbind(-1)
    x = self.act(self.conv1d(x.transpose(1, 2))[..., :tokens]).transpose(1, 2)
    x, gate = (each.view(batch, tokens, self.n_mamba_heads, self.mamba_head_dim) for each in (x, gate))
    results = []
    for head in range(self.n_mamba_heads):
        own = x[:, :, head]
        made: Any = F.linear(own, self.x_proj_weight[head])
        step, key, query = made.split([self.time_step_rank, self.ssm_state_size, self.ssm_state_size], dim=-1)
        step = F.softplus(F.linear(step, self.dt_proj_weight[head], self.dt_proj_bias[head]))
        y = linear_attention(query.unsqueeze(2), key.unsqueeze(2), (step * own).unsqueeze(-1), step,
                             -torch.exp(self.A_log[head].float())).squeeze(-1)
        results.append((y + own * self.D[head]) * F.silu(gate[:, :, head]))
    result: torch.Tensor = self.out_proj(torch.cat(results, -1))
    return result


# By the names of functions, and of classes of modules.
FORMS: dict[str, Callable[..., Any]] = {
    "mamba_selective_scan": selective_scan, "mamba2_chunk_scan": chunk_scan,
    "torch_chunk_gated_delta_rule": gated_delta_rule, "chunk_kimi_delta_attention": gated_delta_rule,
    "rwkv_linear_attention": weighted_key_values}
FORWARDS: dict[str, Callable[..., Any]] = {"MiniMaxLightningAttention": lightning_attention, "RecurrentGemmaRglru": real_gated_unit,
                                           "ZambaMambaMixer": heads_of_mamba}


@contextlib.contextmanager
def in_one_op(model: torch.nn.Module) -> Iterator[None]:
    """Meanwhile the recurrences of a model of transformers are computed by linear_attention or decaying_mean."""
    spaces = {type(module).__module__ for module in model.modules()}
    found = [(vars(sys.modules[space]), name) for space in sorted(spaces) for name in FORMS
             if name in vars(sys.modules[space])]
    own = [space[name] for space, name in found]
    for space, name in found:
        space[name] = FORMS[name]
    modules = [module for module in model.modules() if type(module).__name__ in FORWARDS]
    for module in modules:
        module.forward = types.MethodType(FORWARDS[type(module).__name__], module)
    try:
        yield
    finally:
        for module in modules:
            del module.forward
        for (space, name), function in zip(found, own):
            space[name] = function
