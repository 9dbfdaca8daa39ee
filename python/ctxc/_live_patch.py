"""Patches in the weights of live modules, and what keeps a call from using them for what they are not exact for."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch
from transformers.pytorch_utils import Conv1D

from ctxc._errors import Mismatch
from ctxc._live_weights import Seen, inner_of, plain
from ctxc._patch import ParameterPatch, Patch

_NARROW = {torch.bfloat16: "bf16", torch.float16: "f16"}


class Patched:
    """A patch in a module's weights, from `put` to `take_back`."""

    now: list[Patched] = []
    """Those that are in a module's weights, the last one put first behind all others."""

    def __init__(self, module: torch.nn.Module, patch: Patch, anyway: bool, factored: bool):
        self.module, self.inner = module, inner_of(module)
        self.patch, self.anyway, self.factored = patch, anyway, factored
        self.parameters = {plain(name): each for name, each in self.inner.named_parameters(remove_duplicate=False)}
        self.originals: dict[str, torch.Tensor] = {}
        self.sums: dict[str, torch.Tensor] = {}
        self.handles: list[Any] = []
        if not anyway:
            self._expect_unpatched()
        self._warn_of_roundings()

    def put(self) -> None:
        if not self.anyway:
            self._expect_in_window()
        self.kept = kept_cache(self.inner, self.patch)
        changes: dict[str, torch.Tensor] = {}
        for each in self.patch.values():
            name, index = place_of(self.inner, self.parameters, each)
            if self.factored and each.rank and index is None and (linear := linear_of(self.inner, name)) is not None:
                self.handles.append(linear.register_forward_hook(beside(linear, each)))
                continue
            changed = changes.get(name)
            if changed is None:
                changed = changes[name] = self.parameters[name].detach().clone()
            add(changed if index is None else changed[index], each)
        for name, changed in changes.items():
            self.originals[name] = self.parameters[name].data
            self.parameters[name].data = changed
            self.sums[name] = _sum(changed)
        # PEFT's model calls the forward of the one in it, without its hooks.
        for called in {id(each): each for each in (self.module, self.inner)}.values():
            self.handles.append(called.register_forward_pre_hook(self._before, with_kwargs=True))
        self.seen = Seen(self.inner)
        Patched.now.append(self)

    def take_back(self) -> Optional[str]:
        """Every tensor is the original one again. What was changed meanwhile, or None."""
        changed = self._changed() if self in Patched.now else None
        for name in self.originals:
            if changed is None and not torch.equal(_sum(self.parameters[name].data), self.sums[name]):
                changed = name
        if self in Patched.now:
            Patched.now.remove(self)
            self.seen.put_back()
        for name, original in self.originals.items():
            self.parameters[name].data = original
        for handle in self.handles:
            handle.remove()
        return changed

    def _changed(self) -> Optional[str]:
        others = [each for each in Patched.now if each is not self and _overlap(each.inner, self.inner)]
        return self.seen.changed() if not others or Patched.now.index(self) > Patched.now.index(others[-1]) else None

    def _expect_unpatched(self) -> None:
        if any(_overlap(each.inner, self.inner) for each in Patched.now):
            raise Mismatch("the module is patched already, and a patch is exact for the module as it was; expected the end of "
                           "the first `with`; anyway=True adds both")

    def _expect_in_window(self) -> None:
        """A cache of kept tokens alone is shorter than the text, and transformers counts a window by the cache."""
        config: Any = self.inner.config
        origin, settings = self.patch.origin, config.get_text_config()
        window, kinds = getattr(settings, "sliding_window", None), getattr(settings, "layer_types", None)
        if origin.kept and window and (kinds is None or "sliding_attention" in kinds) and origin.position - origin.kept[0] >= window:
            raise Mismatch(f"position {origin.kept[0]}, which the patch's run keeps, is outside of the window of {window} tokens, and "
                           "transformers would see it there; expected a patch that was made with keep=(), or keeps later positions")

    def _warn_of_roundings(self) -> None:
        types = [_NARROW[each.dtype] for each in self.parameters.values() if each.dtype in _NARROW]
        if types and self.patch._replay is not None and (why := self.patch._replay(types[0])[1]):
            warnings.warn(f"{why}; a token in front that every run has (keep=[0]), or module.float(), makes them less",
                          stacklevel=5)

    def _before(self, _: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Checks a call, and gives it its token's position, and the kept tokens before it."""
        call = _Call(self.inner, args, kwargs)
        if not self.anyway:
            self._check_module()
        is_own = self._check_tokens(call)
        places, position = call.get("position_ids"), self.patch.origin.position
        if places is not None and not self.anyway and bool((places != position).any()):
            raise Mismatch(f"found positions {places.tolist()}, expected [[{position}]]: {self._exact()}")
        if is_own and places is None and call.takes("position_ids"):
            shape = (call.get("input_ids") if call.get("input_ids") is not None else call.get("inputs_embeds")[..., 0])
            call.set("position_ids", torch.full_like(shape, position, dtype=torch.long))
        if is_own:
            self._check_cache(call)
        return call.arguments()

    def _exact(self) -> str:
        return (f"the patch is exact for this token at position {self.patch.origin.position} alone; anyway=True runs others "
                "with it")

    def _check_module(self) -> None:
        if changed := self._changed():
            raise Mismatch(f"{changed} was replaced or written to while the module is patched: a patch is exact for the weights "
                           "that it was made of; expected the change before ctxc.from_module, or anyway=True")
        if dropout := _dropout(self.inner):
            raise Mismatch(f"{dropout} drops values by chance, since the module is in training mode; expected module.eval()")

    def _check_tokens(self, call: _Call) -> bool:
        """Whether the call is of the patch's token alone; others are refused."""
        token = self.patch.origin.tokens[-1]
        ids, given = call.get("input_ids"), call.get("inputs_embeds")
        if ids is not None:
            is_own = ids.shape[-1] == 1 and bool((ids == token).all())
            found = f"tokens {ids.tolist()}"
        elif given is not None:
            is_own = given.shape[-2] == 1 and (token < 0 or _is_embedding(self.inner, given, token))
            found = f"inputs_embeds of {given.shape[-2]} tokens" if given.shape[-2] != 1 else "inputs_embeds of another token"
        else:
            is_own, found = False, "neither input_ids nor inputs_embeds"
        if not is_own and not self.anyway:
            raise Mismatch(f"found {found}, expected [[{token}]]: {self._exact()}")
        return is_own

    def _check_cache(self, call: _Call) -> None:
        """The kept tokens are in the call's cache, or come into it here."""
        count, cache = len(self.patch.origin.kept), call.get("past_key_values")
        if cache is not None and hasattr(cache, "get_seq_length"):
            if (length := int(cache.get_seq_length())) != count and not self.anyway:
                raise Mismatch(f"found a cache of {length} tokens, expected one of the {count} that the patch's run keeps, or none, "
                               "so that they are run here")
        elif cache is None and self.kept is not None:
            if not call.takes("past_key_values"):
                raise Mismatch(f"the patch's run keeps {count} tokens, and the module takes no cache of them; expected a patch "
                               "that was made with keep=()")
            call.set("past_key_values", copy.deepcopy(self.kept))
            mask = call.get("attention_mask")
            if mask is not None and mask.dim() == 2 and bool(mask.all()):
                call.set("attention_mask", None)  # it has no place for the kept tokens


class _Call:
    """The arguments of a call of a module, by name."""

    def __init__(self, inner: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]):
        signature = inspect.signature(inner.forward)
        self._bound = signature.bind_partial(*args, **kwargs)
        self._names = {name for name, each in signature.parameters.items()
                       if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)}
        rest = [name for name, each in signature.parameters.items() if each.kind is each.VAR_KEYWORD]
        self._rest: Optional[dict[str, Any]] = self._bound.arguments.setdefault(rest[0], {}) if rest else None

    def takes(self, name: str) -> bool:
        return name in self._names or self._rest is not None

    def get(self, name: str) -> Any:
        return self._bound.arguments.get(name) if name in self._names else (self._rest or {}).get(name)

    def set(self, name: str, value: Any) -> None:
        if name in self._names:
            self._bound.arguments[name] = value
        elif self._rest is not None:
            self._rest[name] = value

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self._bound.args, self._bound.kwargs


def _overlap(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return any(each is b for each in a.modules()) or any(each is a for each in b.modules())


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    """A number that another content of the tensor hardly has."""
    kind = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.detach().view(kind).sum(dtype=torch.int64)


def _dropout(module: torch.nn.Module) -> Optional[str]:
    """The name of something in the module that drops values; None in evaluation."""
    for path, each in module.named_modules():
        rates = {"p": each.p} if isinstance(each, torch.nn.modules.dropout._DropoutNd) else \
            {key: value for key, value in vars(each).items() if "drop" in key}
        for key, rate in rates.items():
            if each.training and isinstance(rate, float) and rate > 0:
                return f"{path}.{key}" if path else key
    return None


@torch.no_grad()
def _is_embedding(module: Any, given: torch.Tensor, token: int) -> bool:
    own = module.get_input_embeddings()(torch.tensor([token], device=given.device)).to(given)
    return bool((given.reshape(-1, own.shape[-1]) - own).abs().max() <= 1e-3 * own.abs().max())


@torch.no_grad()
def kept_cache(module: torch.nn.Module, patch: Patch) -> Any:
    """The cache of the tokens that the patch's run keeps, by the module as it is now; None where it keeps none."""
    origin = patch.origin
    if not origin.kept:
        return None
    device = next(module.parameters()).device
    kept = torch.tensor([[origin.tokens[at] for at in origin.kept]], device=device)
    cache = module(kept, position_ids=torch.tensor([list(origin.kept)], device=device), use_cache=True).past_key_values
    if cache is None:
        raise Mismatch("the patch's run keeps tokens, and the module gives no cache of them; expected a patch that was made "
                       "with keep=()")
    return cache


def add(weight: torch.Tensor, change: ParameterPatch) -> None:
    """Adds a change to a weight in float32 or wider, and rounds to the weight's type once."""
    total = weight.to(torch.promote_types(weight.dtype, torch.float32))  # itself, where that is its type
    parts = [each.to(total) for each in change.tensors()]
    if change.rank:
        total.addmm_(parts[0], parts[1].T)
    else:
        total.add_(parts[0])
    weight.copy_(total)


def place_of(module: torch.nn.Module, parameters: dict[str, torch.nn.Parameter],
             change: ParameterPatch) -> tuple[str, Optional[int]]:
    """The module's parameter, and the slice of it, that a patch's parameter names. Stored names may lack the
    module's prefix, or have one that it lacks."""
    found = re.fullmatch(r"(.+)\[(\d+)\]", change.name)
    stored, index = (found[1], int(found[2])) if found else (change.name, None)
    prefix = getattr(module, "base_model_prefix", "")
    names = [stored, f"{prefix}.{stored}", stored.removeprefix(f"{prefix}.")]
    for name in names:
        if name in parameters:
            shape = tuple(parameters[name].shape)
            part = shape if index is None else shape[1:]
            if part != tuple(change.shape):
                raise Mismatch(f"{change.name}: the patch has shape {change.shape}, the module {part}; the patch is "
                               "of another model")
            return name, index
    raise Mismatch(f"{change.name}: the module has no such parameter; make the patch with ctxc.hf.from_module(module), "
                   "which uses the module's own names")


def linear_of(module: torch.nn.Module, name: str) -> Optional[torch.nn.Module]:
    """The linear module whose own weight is the parameter of that name."""
    owner, _, own = name.rpartition(".")
    if own != "weight":
        return None
    return next((each for path, each in module.named_modules(remove_duplicate=False)
                 if plain(path) == owner and isinstance(each, (torch.nn.Linear, Conv1D))), None)


def beside(linear: torch.nn.Module, change: ParameterPatch) -> Callable[..., torch.Tensor]:
    """Adds the product with a change of a linear module's weight to what it puts out."""
    u, v = change.tensors()
    into, out = (u, v) if isinstance(linear, Conv1D) else (v, u)
    factors: dict[tuple[torch.device, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}

    def after(_: torch.nn.Module, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
        dtype = torch.float64 if result.dtype == torch.float64 else torch.float32
        key = result.device, dtype
        if key not in factors:
            factors[key] = into.to(*key), out.to(*key)
        a, b = factors[key]
        changed: torch.Tensor = result.to(dtype) + (args[0].to(dtype) @ a) @ b.T
        return changed.to(result.dtype)

    return after
