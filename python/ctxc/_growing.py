"""One patch for a whole text, on a live module: it grows while the module writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from transformers.pytorch_utils import Conv1D

from ctxc import _core
from ctxc._errors import BadInput, Mismatch
from ctxc._live_patch import _dropout, _overlap, Patched, linear_of
from ctxc._live_text import ends_of
from ctxc._live_weights import Seen, inner_of

if TYPE_CHECKING:
    from ctxc.hf import ModuleModel


class _Beside:
    """What is added to the output of a linear module: its input times factors that grow, in float32."""

    def __init__(self, linear: torch.nn.Module, most: int):
        self.linear, self.rank = linear, 0
        weight: Any = linear.weight
        outputs, inputs = weight.shape[::-1] if isinstance(linear, Conv1D) else weight.shape
        self.into, self.out = torch.zeros(inputs, most, device=weight.device), torch.zeros(outputs, most, device=weight.device)

    def add(self, left: torch.Tensor, right: torch.Tensor) -> None:
        """left (rows, r), right (r, columns) of a change of the weight, as it is stored."""
        into, out = (left, right.T) if isinstance(self.linear, Conv1D) else (right.T, left)
        end = self.rank + left.shape[1]
        self.into[:, self.rank:end], self.out[:, self.rank:end] = into, out
        self.rank = end

    def __call__(self, _: torch.nn.Module, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
        dtype = torch.float64 if result.dtype == torch.float64 else torch.float32
        added = (args[0].to(dtype) @ self.into[:, :self.rank].to(dtype)) @ self.out[:, :self.rank].to(dtype).T
        return (result.to(dtype) + added).to(result.dtype)


class GrowingPatch:
    """One change of each layer of a live module, which is exact for every token of a text. Made by
    `ctxc.hf.generate(…, joint=True)`. In a `with` block the module has it, as factors in float32 beside its weights:

    >>> for token, patch in ctxc.hf.generate(hf_model, None, ids, tokens=4, joint=True):
    ...     pass
    >>> with patch, torch.no_grad():
    ...     again = hf_model(torch.tensor([patch.prefix + patch.text])).logits         # without the context
    >>> patch.rank, again.shape[1]
    (4, 4)
    """

    def __init__(self, module: torch.nn.Module, prefix: list[int], most: int):
        self.inner = inner_of(module)
        self.prefix = prefix
        """The tokens of the context that stay in front of the text."""
        self.text: list[int] = []
        """The tokens that the patch is exact for: the last one of the context, and those that were generated behind it."""
        self._most = most
        self._beside: dict[str, _Beside] = {}
        self._handles: list[Any] = []
        self.seen = Seen(self.inner)

    @property
    def rank(self) -> int:
        """The largest rank of a matrix's change.

        >>> patch.rank
        4
        """
        return max((each.rank for each in self._beside.values()), default=0)

    @property
    def factors(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Of each linear module the factors (inputs, rank) and (outputs, rank): its output grows by input @ first @ second.T.

        >>> sorted(patch.factors)[0], [each.shape[1] for each in next(iter(patch.factors.values()))]
        ('model.layers.0.self_attn.o_proj', [4, 4])
        """
        return {name: (each.into[:, :each.rank], each.out[:, :each.rank]) for name, each in self._beside.items()}

    def _add(self, tokens: list[int], changes: list[Any]) -> None:
        self.text += tokens
        for name, left, right in changes:
            owner = name.rpartition(".")[0]
            if owner not in self._beside:
                linear = linear_of(self.inner, name)
                if linear is None:
                    raise BadInput(f"{name}: is not the weight of a linear module, beside which the factors of a patch for several "
                                   "tokens stand; expected joint=False")
                self._beside[owner] = _Beside(linear, self._most)
            self._beside[owner].add(torch.from_numpy(left.copy()), torch.from_numpy(right.copy()))

    def __enter__(self) -> GrowingPatch:
        if any(_overlap(each.inner, self.inner) for each in Patched.now):
            raise Mismatch("the module is patched already, and a patch is exact for the module as it was; expected the end of "
                           "the first `with`")
        if dropout := _dropout(self.inner):
            raise Mismatch(f"{dropout} drops values by chance, since the module is in training mode; expected module.eval()")
        if changed := self.seen.changed():
            raise Mismatch(f"{changed} was replaced or written to since the patch was begun: it is exact for the weights that it "
                           "was made of")
        self._handles = [each.linear.register_forward_hook(each) for each in self._beside.values()]
        Patched.now.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Patched.now.remove(self)
        for handle in self._handles:
            handle.remove()

    def __repr__(self) -> str:
        return f"<ctxc.hf.GrowingPatch: exact for {len(self.text)} tokens behind {len(self.prefix)}, of rank {self.rank}>"


@torch.no_grad()
def grow(model: ModuleModel, module: torch.nn.Module, tokenizer: Any, ids: list[int], kept: list[int],
         tokens: int) -> Iterator[tuple[int, GrowingPatch]]:
    """Algorithm 1 with one patch for all tokens: the module, which never sees the context, reads each token once, after the
    patch has grown by it, and what its cache keeps of earlier tokens stays valid."""
    prefix = [ids[at] for at in kept]
    run = _core.JointRun.make(model._core, ids[:-1], prefix, ids[-1:], tokens)
    patch = GrowingPatch(module, prefix, tokens + len(prefix))
    device, ends = next(module.parameters()).device, ends_of(inner_of(module), tokenizer)
    cache: Any = None
    unread, token = list(prefix), ids[-1]
    for _ in range(tokens):
        model._check()
        patch._add([token], run.read([token])[1])
        with patch:
            output = module(torch.tensor([[*unread, token]], device=device), past_key_values=cache, use_cache=True)
        cache, unread, token = output.past_key_values, [], int(output.logits[0, -1].argmax())
        yield token, patch
        if token in ends:
            return
