"""Mixtures of experts of transformers, computed with two axes: the tokens, and the experts selected for each token.
transformers itself merges the two axes, or loops over the experts that any token selected, which torch.export cannot
follow."""
from __future__ import annotations

import inspect
import types
from typing import Any

import torch

BY_TOKEN = "ctxc_by_token"


def by_rows(bank: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The product of each selected matrix with its x, where x stands on the right."""
    return (bank @ x.unsqueeze(-1)).squeeze(-1)


def by_columns(bank: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (x.unsqueeze(-2) @ bank).squeeze(-2)


def experts_by_token(self: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor,
                     top_k_weights: torch.Tensor) -> torch.Tensor:
    """What transformers' @use_experts_implementation calls."""
    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        bank: torch.Tensor = getattr(self, name)[top_k_index]
        y = by_columns(bank, x) if self.is_transposed else by_rows(bank, x)
        if not self.has_bias:
            return y
        bias: torch.Tensor = getattr(self, name + "_bias")[top_k_index]
        return y + bias
    x = linear("gate_up_proj" if self.has_gate else "up_proj", hidden_states.unsqueeze(1))
    x = linear("down_proj", self._apply_gate(x) if self.has_gate else self.act_fn(x))
    if self.has_post_expert_norm:
        x = self.post_expert_norm(x)
    result: torch.Tensor = (x * top_k_weights.unsqueeze(-1)).sum(1).to(hidden_states.dtype)
    return result


def one_below_another(self: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor,
                      top_k_weights: torch.Tensor) -> torch.Tensor:
    """Experts whose matrices are stacked in one matrix, as in DBRX."""
    shape = (self.num_experts, self.ffn_hidden_size, self.hidden_size)
    gate, up, down = (getattr(self.mlp, name).view(shape)[top_k_index] for name in ("w1", "v1", "w2"))
    x = hidden_states.reshape(-1, self.hidden_size).unsqueeze(1)
    y = by_columns(down, self.mlp.activation_fn(by_rows(gate, x)) * by_rows(up, x))
    result: torch.Tensor = (y * top_k_weights.unsqueeze(-1)).sum(1).view(hidden_states.shape)
    return result


def some_without_weights(self: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor,
                         top_k_weights: torch.Tensor) -> torch.Tensor:
    """Experts of which the last ones are the identity, as in LongCat."""
    count = self.num_routed_experts
    own = top_k_index.clamp(max=count - 1)
    x = hidden_states.unsqueeze(1)
    gate, up = by_rows(self.gate_up_proj[own], x).chunk(2, dim=-1)
    y = by_rows(self.down_proj[own], self.act_fn(gate) * up)
    y = torch.where((top_k_index >= count).unsqueeze(-1), x, y)
    result: torch.Tensor = (y * top_k_weights.unsqueeze(-1)).sum(1).to(hidden_states.dtype)
    return result


def of_scaled_tokens(self: Any, hidden_states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A mixture whose weights multiply what experts read, as in Llama 4: of those that are not selected it is zero, and so is what they give."""
    x, experts = hidden_states.reshape(-1, self.hidden_dim), self.experts
    logits = torch.nn.functional.linear(x, self.router.weight, self.router.bias)
    values, selected = torch.topk(logits, self.top_k, dim=1)
    scaled = x.unsqueeze(1) * torch.sigmoid(values.float()).to(x.dtype).unsqueeze(-1)
    gate, up = by_columns(experts.gate_up_proj[selected], scaled).chunk(2, dim=-1)
    y = by_columns(experts.down_proj[selected], up * experts.act_fn(gate))
    return self.shared_expert(x) + y.sum(1), logits


def form_of(module: torch.nn.Module) -> Any:
    """The function that computes a module's experts by token, if transformers has only a loop for them; None for all other
    modules."""
    if type(module).__name__ == "Llama4TextMoe":
        return of_scaled_tokens
    if list(inspect.signature(module.forward).parameters) != ["hidden_states", "top_k_index", "top_k_weights"]:
        return None
    if all(hasattr(getattr(module, "mlp", None), name) for name in ("w1", "v1", "w2")):
        return one_below_another
    if isinstance(getattr(module, "identity_expert", None), torch.nn.Identity) and \
            getattr(module, "gate_up_proj", None) is not None:
        return some_without_weights
    return None


def compute_by_token(model: Any) -> None:
    """Makes the experts of a model of transformers compute by token."""
    for module in model.modules():
        form = form_of(module)
        if form is not None:
            module.forward = types.MethodType(form, module)
    choose = getattr(model, "set_experts_implementation", None)
    if choose is None:
        return
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    ALL_EXPERTS_FUNCTIONS.register(BY_TOKEN, experts_by_token)
    try:
        choose(BY_TOKEN)
    except ValueError:
        pass  # it has no experts
