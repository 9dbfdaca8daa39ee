"""The compiler's plan, carried out in PyTorch on a live module, on any device.

The compiler analyses the model: it decides which parameters are patched, and how the full and the reduced run are
combined in each layer. PyTorch computes: every op of a block is one or a few calls on the module's own parameters, on
the module's device, so that no kernel is compiled.

>>> import ctxc.hf, ctxc.torch
>>> model = ctxc.hf.from_module(hf_model)
>>> context = ctxc.torch.Context(model, ids)
>>> patch = context.patch()
>>> bool((context.logits(patch) - context.logits()).abs().max() < 1e-4)   # without the context, and with it
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import numpy as np
import torch

from ctxc._errors import BadInput
from ctxc._model import Keep
from ctxc._patch import Patch
from ctxc._prompt import Prompt
from ctxc.hf import ModuleModel
from ctxc.torch import _contextual_ops, _ops, _patch_ops  # noqa: F401  (give the ops their meanings)
from ctxc.torch._evaluation import Evaluation, States, Stored, meaning
from ctxc.torch._graph import Block, Graph, Op, Step, graph_of

__all__ = ["Context", "Evaluation", "Op", "meaning"]


class Context:
    """The full run of some tokens in PyTorch, kept in memory, as `ctxc.Context` keeps a run of the compiled kernels.

    model: from `ctxc.hf.from_module`; its module computes, on its device. prompt: a text, or ids of tokens; keep: the
    positions that the reduced run keeps, by default those that the model needs, as for `ctxc.Context`. dtype: the activations' type, by default float32; float64 gives a reference
    for the other types.

    Raises BadInput for a prompt that the model cannot read, or an op that is not implemented in PyTorch; Refused if a
    layer has no patch.

    >>> ctxc.torch.Context(model, [5, 17, 3], keep=[0])
    ctxc.torch.Context of 3 tokens, 1 kept
    """

    def __init__(self, model: ModuleModel, prompt: Prompt, keep: Keep = None,
                 dtype: torch.dtype = torch.float32):
        self._model, self._dtype = model, dtype
        self._graph = graph_of(model)
        self._weights = model.tensors
        self._device = next(iter(self._weights.values())).device
        self._tokens = model.tokens(prompt)
        self._kept = model._kept(self._tokens, keep, self._lengths)[0]
        self._check()
        self.harmful = 0
        """The number of divisors in the last patch that were zero; unless it is 0, the patch is not exact."""
        places = range(len(self._tokens) if self._graph.bidirectional else len(self._tokens) - 1)
        self._full = self._read(places, [States() for _ in self._graph.steps])
        self._full = [states.truncated(len(self._tokens) - 1) for states in self._full]
        self._reduced = self._read(self._kept, [States() for _ in self._graph.steps])

    def _check(self) -> None:
        if len(self._tokens) < 2:
            raise BadInput(f"found {len(self._tokens)} tokens, expected at least two: a context and a token")
        if sorted(set(self._kept)) != self._kept or any(not 0 <= at < len(self._tokens) - 1 for at in self._kept):
            raise BadInput(f"keep: found {self._kept}, expected ascending positions before the last, "
                           f"{len(self._tokens) - 1}")
        if self._kept and self._graph.bidirectional:
            raise BadInput("keep: kept tokens of a bidirectional model would see the token; expected none")
        if self._graph.positions is not None and len(self._tokens) > self._graph.positions:
            raise BadInput(f"found {len(self._tokens)} tokens; the model has {self._graph.positions} positions")

    def __repr__(self) -> str:
        return f"ctxc.torch.Context of {len(self)} tokens, {len(self._kept)} kept"

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> list[int]:
        """All tokens, from position 0 on. The patch is for the last one.

        >>> context.tokens == ids
        True
        """
        return list(self._tokens)

    @property
    def kept(self) -> list[int]:
        """The positions that the reduced run keeps.

        >>> context.kept
        []
        """
        return list(self._kept)

    def extend(self, more: Union[int, Sequence[int]]) -> Context:
        """Appends one or several tokens, and returns this context. Only the new tokens are run. Raises BadInput for a
        bidirectional model.

        >>> len(context.fork().extend([1, 2]))
        14
        """
        added = [more] if isinstance(more, (int, np.integer)) else [int(token) for token in more]
        if self._graph.bidirectional:
            raise BadInput("every token of this model sees those behind it, so that a context cannot go on; expected "
                           "a new one")
        first = len(self._tokens) - 1
        self._tokens += added
        if added:
            self._full = self._read(range(first, len(self._tokens) - 1), self._full)
        return self

    def fork(self) -> Context:
        """An independent context of the same tokens; what was read is not read again.

        >>> context.fork().tokens == context.tokens
        True
        """
        other: Context = object.__new__(Context)
        other.__dict__.update(self.__dict__)
        other._tokens = list(self._tokens)
        return other

    @torch.no_grad()
    def patch(self) -> Patch:
        """The patch of the last token (Algorithm 1), with float64 arrays. The context does not change.

        >>> context.patch().origin.position
        11
        """
        place = len(self._tokens) - 1
        full: dict[int, torch.Tensor] = {}
        reduced: dict[int, torch.Tensor] = {}
        stores = []
        harmful = 0
        for number, step in enumerate(self._graph.steps):
            before = self._full[number].truncated(place), self._reduced[number].truncated(len(self._kept))
            runs = {"full": before[0], "reduced": before[1]}
            if self._graph.patches(step) and step.dual is not None:
                inputs = [full[value] for value in step.inputs] + [reduced[value] for value in step.inputs]
                run = self._evaluation(step, [place], runs)
                made = run.run(step.dual, inputs)
                half = len(made) // 2
                full.update(zip(step.outputs, made[:half]))
                reduced.update(zip(step.outputs, made[half:]))
                harmful += run.harmful
                stores += [(number, name, [_double(part) for part in parts]) for name, parts in run.stores]
            else:
                for values, states in zip((full, reduced), before):
                    run = self._evaluation(step, [place], {"": states})
                    made = run.run(step.block, [values[value] for value in step.inputs])
                    values.update(zip(step.outputs, made))
        patch = Patch._of_core(self._model._core.patch_of_parts(self._tokens, self._kept, stores))
        self.harmful = harmful
        patch.full_next = int(full[self._graph.logits][-1].argmax())
        return patch

    @torch.no_grad()
    def logits(self, patch: Optional[Patch] = None) -> torch.Tensor:
        """The logits after the last token, (vocabulary,), on the module's device: with the context; or, given a
        patch, of the patched model, which has seen only the kept tokens and the last one. Raises Mismatch for a
        patch of another model.

        >>> context.logits().shape == context.logits(patch).shape
        True
        """
        place = len(self._tokens) - 1
        if patch is None:
            states = [each.truncated(place) for each in self._full]
            return self._run([place], states)[0][-1]
        self._model._expect_own(patch)
        loads = [{name: [torch.from_numpy(np.array(part)) for part in parts] for name, parts in each.items()}
                 for each in self._model._core.parts_of_patch(patch._bound())]
        states = [each.truncated(len(self._kept)) for each in self._reduced]
        return self._run([place], states, loads)[0][-1]

    @torch.no_grad()
    def _read(self, places: Sequence[int], states: list[States]) -> list[States]:
        """Copies of the states, to which the tokens at `places` were added."""
        if len(places) == 0:
            return states
        return self._run(list(places), [each.truncated(1 << 62) for each in states], logits=False)[1]

    @torch.no_grad()
    def _lengths(self, tokens: list[int]) -> list[list[float]]:
        """The norm of each layer's output for each of some other tokens."""
        other: Context = object.__new__(Context)
        other.__dict__.update(self.__dict__, _tokens=tokens)
        found: list[list[float]] = []
        other._run(list(range(len(tokens))), [States() for _ in self._graph.steps], logits=False, lengths=found)
        return found

    def _run(self, places: list[int], states: list[States],
             loads: Optional[list[dict[str, list[torch.Tensor]]]] = None, logits: bool = True,
             lengths: Optional[list[list[float]]] = None) -> tuple[torch.Tensor, list[States]]:
        """An ordinary run of tokens, with the parts of a patch for each step; it adds to the states, and the norms of what
        layers put out to `lengths`."""
        values: dict[int, torch.Tensor] = {}
        for number, step in enumerate(self._graph.steps):
            if number == self._graph.head and not logits:
                break
            given = loads[number] if loads else {}
            block = step.applied if given and step.applied is not None else step.block
            run = self._evaluation(step, places, {"": states[number]}, given)
            values.update(zip(step.outputs, run.run(block, [values[value] for value in step.inputs])))
            if lengths is not None and step.index is not None:
                lengths.append(values[step.outputs[0]].double().flatten(1).norm(dim=1).tolist())
        return values.get(self._graph.logits, torch.empty(0)), states

    def _evaluation(self, step: Step, places: list[int], runs: dict[str, States],
                    loads: Optional[dict[str, list[torch.Tensor]]] = None) -> Evaluation:
        tokens = torch.tensor([self._tokens[at] for at in places], device=self._device)
        positions = torch.tensor(places, device=self._device)
        return Evaluation(step, tokens, positions, self._stored, self._dtype, runs, loads)

    def _stored(self, name: str) -> Stored:
        """The module's parameter of that stored name; for a name with a star, the list of them."""
        if "*" not in name:
            try:
                return self._weights[name].detach()
            except KeyError:
                raise BadInput(f"{name}: the module has no such tensor") from None
        found: list[torch.Tensor] = []
        while (each := self._weights.get(name.replace("*", str(len(found))))) is not None:
            found.append(each.detach())
        return found


def _double(part: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(part.detach().cpu().double().numpy())
