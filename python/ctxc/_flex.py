"""FlexAttention calls programs of its own for each score, which a .ctxc file cannot hold: it is spelled out in ops on all scores at once."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator
from unittest import mock

import torch


def spelled_out(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, score_mod: Callable[..., Any], block_mask: tuple[Any, ...],
                scale: float, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What flex_attention makes of (batch, heads, tokens, …), with heads of keys for groups of queries' heads: its result, and in the
    place of what only training reads, the largest scores. The functions compute all entries of their indices at once."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    scores = query @ key.transpose(-2, -1) * scale
    at = [torch.arange(size, device=query.device).reshape(-1, *[1] * (3 - axis)) for axis, size in enumerate(scores.shape)]
    scores = score_mod(scores, *at)
    seen = block_mask[-1](*at)
    if seen is not True:
        scores = torch.where(seen, scores, float("-inf"))
    largest = scores.amax(-1)
    return scores.softmax(-1) @ value, largest, largest


@contextlib.contextmanager
def without_flex_attention() -> Iterator[None]:
    """Inside the `with` block, flex_attention is a matter of ops, where a module has imported it."""
    flex = sys.modules.get("torch.nn.attention.flex_attention")
    names = ("flex_attention_hop", "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG")  # another release of torch may have none of them
    if flex is None or not all(hasattr(flex, name) for name in names):
        yield
        return
    with mock.patch.object(flex, names[0], spelled_out), mock.patch.object(flex, names[1], True):
        yield
