"""Which heads of a live module carry what a context changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import torch
from transformers.pytorch_utils import Conv1D

from ctxc._errors import BadInput
from ctxc._growing import GrowingPatch, grow
from ctxc._live_weights import inner_of

if TYPE_CHECKING:
    from ctxc.hf import ModuleModel


@contextlib.contextmanager
def _read(linears: dict[str, torch.nn.Module], into: dict[str, torch.Tensor]) -> Iterator[None]:
    """What each linear module reads for the last token, inside the `with` block."""
    def hook(name: str) -> Any:
        def keep(_: torch.nn.Module, args: tuple[Any, ...]) -> None:
            into[name] = args[0].reshape(-1, args[0].shape[-1])[-1].double()
        return keep
    handles = [linear.register_forward_pre_hook(hook(name)) for name, linear in linears.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def heads(model: ModuleModel, module: torch.nn.Module, tokenizer: Any, ids: Sequence[int], kept: list[int]) -> dict[str, np.ndarray]:
    settings: Any = inner_of(module).config
    count: Optional[int] = getattr(settings.get_text_config(), "num_attention_heads", None)
    patch: GrowingPatch
    (_, patch), = grow(model, module, tokenizer, list(ids), kept, 1)
    linears = {name: each.linear for name, each in patch._beside.items()}
    full: dict[str, torch.Tensor] = {}
    alone: dict[str, torch.Tensor] = {}
    device = next(module.parameters()).device
    with _read(linears, full):
        module(torch.tensor([list(ids)], device=device))
    with patch, _read(linears, alone):
        module(torch.tensor([patch.prefix + patch.text], device=device))
    shares = {}
    for name, linear in linears.items():
        weight: Any = linear.weight
        by_input = (weight if isinstance(linear, Conv1D) else weight.T).double()  # (inputs, outputs)
        change = full[name] - alone[name]
        if not count or len(change) % count:
            raise BadInput(f"{name} reads {len(change)} numbers, which are not those of {count} heads of equal width")
        each = torch.einsum("hi,hio->ho", change.reshape(count, -1), by_input.reshape(count, -1, by_input.shape[1]))
        whole = each.sum(0)
        square = float(whole @ whole)
        shares[name] = (each @ whole / square if square else torch.zeros(count)).cpu().numpy()
    return shares
