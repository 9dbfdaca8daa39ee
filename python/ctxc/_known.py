"""Follows the values of a model that are known while it is exported: numbers that are computed from sizes and from
positions, which count up by one. torch.export knows only sizes, so that it cannot follow code that asks a mask which tokens
a token sees."""
from __future__ import annotations

from typing import Any, Callable, Iterator

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

MOST = 1 << 16  # entries of a value that is followed
# Parts of the names of functions whose results differ from call to call, or are no numbers yet.
BY_CHANCE = ("rand", "bernoulli", "multinomial", "normal", "poisson", "dropout", "empty", "exponential", "uniform", "cauchy",
             "geometric")


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, slice):
        yield from tensors_in((value.start, value.stop, value.step))


class KnownValues(TorchFunctionMode):
    """Follows values that are computed from `positions`, which are 0, 1, …, and gives the indices that a known mask selects."""

    def __init__(self, positions: torch.Tensor | None = None):
        super().__init__()
        self.known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # the values themselves are kept, for their ids
        if positions is not None:
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                numbers = torch.arange(positions.shape[1]).unsqueeze(0)
            self.learn(positions, numbers)

    def learn(self, value: torch.Tensor, numbers: torch.Tensor) -> None:
        self.known[id(value)] = (value, numbers)

    def numbers_of(self, value: Any) -> Any:
        """`value` with known numbers in place of tensors. Raises KeyError if one is not known."""
        if isinstance(value, torch.Tensor):
            return self.known[id(value)][1]
        if isinstance(value, dict):
            return {key: self.numbers_of(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.numbers_of(each) for each in value)
        if isinstance(value, slice):
            return slice(*map(self.numbers_of, (value.start, value.stop, value.step)))
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise KeyError(value)
        return value

    def forget(self, written: Any) -> None:
        """Forgets all values that share the storage of `written`."""
        if id(written) not in self.known:
            return
        place = self.known[id(written)][1].untyped_storage()._cdata
        self.known = {key: (value, numbers) for key, (value, numbers) in self.known.items()
                      if numbers.untyped_storage()._cdata != place}

    def __torch_function__(self, function: Callable[..., Any], kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name == "nonzero" and args and id(args[0]) in self.known and not kwargs.get("as_tuple"):
            return self.selected(self.known[id(args[0])][1], args[0].device)
        # Also __iadd__ and its like.
        writes = name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
        followed = name.startswith(("arange", "ones", "zeros", "full")) or any(True for _ in tensors_in((args, kwargs)))
        numbers: Any = None
        if followed:
            try:
                if any(part in name for part in BY_CHANCE):
                    raise KeyError(name)
                given, named = self.numbers_of(tuple(args)), self.numbers_of(kwargs)
                with torch._C.DisableTorchFunction(), _disable_current_modes():
                    numbers = function(*given, **named)
            except Exception:  # what cannot be computed is not known
                if writes and args:
                    self.forget(args[0])
                self.forget(kwargs.get("out"))
        result = function(*args, **kwargs)
        if isinstance(result, torch.Tensor) and isinstance(numbers, torch.Tensor) and numbers.numel() <= MOST and \
                tuple(numbers.shape) == tuple(result.shape):
            self.learn(result, numbers)
        return result

    def selected(self, mask: torch.Tensor, device: torch.device) -> torch.Tensor:
        """The indices of the entries of `mask` that are not 0. Indices that count up by one become an arange and not stored
        numbers, whose length could not be recognised as the number of tokens."""
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            indices = torch.nonzero(mask)
            counts = mask.dim() == 1 and torch.equal(indices[:, 0], torch.arange(len(indices)))
            entries = indices.tolist()
        result = torch.arange(len(entries), device=device).unsqueeze(-1) if counts else \
            torch.tensor(entries, device=device).reshape(len(entries), mask.dim())
        self.learn(result, indices)
        return result
