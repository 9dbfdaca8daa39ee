"""The weights of live modules, by the names that a checkpoint of them has; with adapters of PEFT as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ctxc._errors import BadInput

TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
# What others wrap modules in: TransformerLens, torch.compile, PEFT.
WRAPPERS = ("_original_component", "_orig_mod", "base_layer")


def inner_of(module: torch.nn.Module) -> torch.nn.Module:
    """The model of transformers in what torch.compile or PEFT made of it. Raises BadInput for a prompt that PEFT learned."""
    module = getattr(module, "_orig_mod", module)
    if not hasattr(module, "peft_config"):
        return module
    if getattr(getattr(module, "active_peft_config", None), "is_prompt_learning", False):
        raise BadInput(f"{type(module).__name__}: its adapter is tokens in front of every text, which are no weights; "
                       "expected a LoRA, or the model without it: module.get_base_model()")
    base: Any = getattr(module, "get_base_model", lambda: module)
    inner: torch.nn.Module = base()
    return inner


def plain(name: str) -> str:
    """The name that a parameter has without those of wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What a checkpoint of the module has: each tied tensor once, and its persistent buffers; W + BA where a LoRA is active."""
    tied = {name for name, _ in module.named_parameters(remove_duplicate=False)} - \
        {name for name, _ in module.named_parameters()}
    adapted, tuned = dict(_adapted(module)), [path for path, _ in _tuners(module)]
    own = {name: tensor for name, tensor in module.state_dict(keep_vars=True).items()
           if name not in tied and torch.is_floating_point(tensor)}
    return {plain(name): adapted.get(name, tensor) for name, tensor in own.items() if not _is_adapters(tuned, name)}


def _tuners(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """PEFT's layers around a layer."""
    for name, each in module.named_modules():
        if hasattr(each, "base_layer") and hasattr(each, "active_adapters"):
            yield name, each


def _is_adapters(tuned: list[str], name: str) -> bool:
    """Whether a tensor is an adapter's and not that of the layer that it tunes."""
    return any(name.startswith(f"{path}.") and not name.startswith(f"{path}.base_layer.") for path in tuned)


def _adapted(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Each weight that an active adapter changes, in float32 or wider."""
    for path, each in _tuners(module):
        active = [] if each.disable_adapters else [name for name in each.active_adapters if any(
            name in getattr(each, part, {}) for part in each.adapter_layer_names)]
        if not active or each.merged:
            continue
        kind = type(each).__name__
        if not hasattr(each, "get_delta_weight") or any(getattr(each, "use_dora", {}).get(name) or
                                                        getattr(each, "lora_bias", {}).get(name) for name in active):
            raise BadInput(f"{path}: the adapter of type {kind} is not W + BA; expected a plain LoRA, or "
                           "module.merge_and_unload()")
        weight = each.get_base_layer().weight.detach()
        total = weight.to(torch.promote_types(weight.dtype, torch.float32), copy=True)
        for name in active:
            total += each.get_delta_weight(name).detach().to(total)
        yield f"{path}.base_layer.weight", total


def refuse(module: Any) -> None:
    """Raises BadInput, in a line that says what to do, for what is no module whose weights can be read."""
    kind = type(module).__name__
    if not isinstance(module, torch.nn.Module):
        if isinstance(getattr(module, "model", None), torch.nn.Module):
            raise BadInput(f"{kind}: is no module; expected its own: from_module({kind.lower()}.model)")
        raise BadInput(f"{kind}: is no module; expected a model of transformers (ctxc.load reads a path)")
    for name, each in module.named_modules():
        if hasattr(each, "modules_to_save") and hasattr(each, "original_module"):
            raise BadInput(f"{name}: PEFT keeps two copies of it (modules_to_save); expected module.merge_and_unload()")
    held = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, tensor in held.items():
        if tensor.is_meta:
            raise BadInput(f"{kind}: {name} is on no device: it is not loaded, or offloaded; expected a module that is whole "
                           "in memory: from_pretrained without device_map, or ctxc.load of its directory")
        is_blocks = isinstance(tensor, torch.nn.Parameter) and not tensor.is_floating_point()
        if is_blocks or is_traceable_wrapper_subclass(tensor) or name.rpartition(".")[2] in ("qweight", "packed_weight"):
            raise BadInput(f"{kind}: {name} is quantised or spread over devices ({type(tensor).__name__}, {tensor.dtype}); "
                           "expected a module in float32, bfloat16 or float16, or ctxc.load of a GGUF file")
    for name, each in module.named_modules():
        if type(each).__module__.startswith("torch.ao.nn"):
            raise BadInput(f"{kind}: {name} is quantised ({type(each).__name__}); expected a module in float32, bfloat16 or "
                           "float16, or ctxc.load of a GGUF file")


class Seen:
    """The tensors of a module as they are now, and its adapters."""

    def __init__(self, module: torch.nn.Module):
        self._module = module
        self._tensors = [(owner, key, tensor, tensor._version, tensor.data_ptr(), f"{path}.{key}" if path else key)
                         for path, each in module.named_modules() for owner in (each._parameters, each._buffers)
                         for key, tensor in owner.items() if tensor is not None and torch.is_floating_point(tensor) and
                         key not in each._non_persistent_buffers_set]
        self._adapters = self._state()

    def _state(self) -> list[Any]:
        return [(tuple(each.active_adapters), each.disable_adapters, tuple(each.merged_adapters), dict(getattr(each, "scaling", {})))
                for _, each in _tuners(self._module)]

    def changed(self) -> Optional[str]:
        """The name of a tensor that was replaced or written to since then, or what else changed; else None."""
        for owner, key, tensor, version, address, name in self._tensors:
            if owner.get(key) is not tensor or tensor._version != version or tensor.data_ptr() != address:
                return name
        return None if self._state() == self._adapters else "its adapter"

    def put_back(self) -> None:
        """Gives each place its tensor again."""
        for owner, key, tensor, *_ in self._tensors:
            if owner.get(key) is not tensor:
                owner[key] = tensor
