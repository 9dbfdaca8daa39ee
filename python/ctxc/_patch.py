"""Patches: the change of each parameter, factored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from ctxc import _core
from ctxc._errors import BadInput, Mismatch

if TYPE_CHECKING:
    import torch
    from ctxc._model import Model

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ParameterPatch:
    """The change of one stored parameter, in its stored orientation: stored + change is the patched tensor.

    A matrix of shape (m, n) changes by u @ v.T, with u (m, r) and v (n, r); the compiler's patches have r = 1. A
    vector changes by delta, which has its shape. The arrays of a patch that was computed or read are read-only
    views of its own memory, in float64.

    >>> down = patch["model.layers.0.mlp.down_proj.weight"]
    >>> down.shape, down.u.shape, down.v.shape, down.delta
    ((128, 384), (128, 1), (384, 1), None)
    """

    name: str
    shape: tuple[int, ...]
    u: Optional[Numbers] = None
    v: Optional[Numbers] = None
    delta: Optional[Numbers] = None

    def __post_init__(self) -> None:
        if (self.u is None) != (self.v is None) or (self.u is None) == (self.delta is None):
            raise BadInput(f"{self.name}: expected u and v, or delta")

    def _factors(self) -> tuple[Numbers, Numbers]:
        assert self.u is not None and self.v is not None
        return self.u, self.v

    def _difference(self) -> Numbers:
        assert self.delta is not None
        return self.delta

    @property
    def rank(self) -> int:
        """The number of pairs of factors, r; 0 for a vector.

        >>> patch["model.layers.0.mlp.down_proj.weight"].rank
        1
        """
        return 0 if self.u is None else int(self.u.shape[1])

    def dense(self) -> Numbers:
        """The change as one array of the stored shape.

        >>> down = patch["model.layers.0.mlp.down_proj.weight"]
        >>> down.dense().shape == down.shape
        True
        """
        if self.u is None:
            return self._difference()
        u, v = self._factors()
        return u @ v.T

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The arrays as tensors of PyTorch, in float64 on the CPU, without a copy: u and v, or delta.

        >>> [each.shape for each in down.tensors()]  # doctest: +SKIP
        [torch.Size([128, 1]), torch.Size([384, 1])]
        """
        import torch

        parts = (self.delta,) if self.u is None else self._factors()
        return tuple(torch.utils.dlpack.from_dlpack(each) for each in parts)

    @property
    def norm(self) -> float:
        """‖change‖, Frobenius, in the parameter's own unit.

        >>> down = patch["model.layers.0.mlp.down_proj.weight"]
        >>> bool(abs(down.norm - np.linalg.norm(down.dense())) < 1e-9)
        True
        """
        if self.u is None:
            return float(np.linalg.norm(self._difference()))
        u, v = self._factors()
        return float(np.sqrt(max(0.0, np.sum((u.T @ u) * (v.T @ v)))))

    def __mul__(self, factor: float) -> ParameterPatch:
        if self.u is None:
            return ParameterPatch(self.name, self.shape, delta=self._difference() * factor)
        u, v = self._factors()
        return ParameterPatch(self.name, self.shape, u * factor, v)

    __rmul__ = __mul__

    def __add__(self, other: ParameterPatch) -> ParameterPatch:
        if (self.name, self.shape, self.u is None) != (other.name, other.shape, other.u is None):
            raise Mismatch(f"{self.name} of shape {self.shape} and {other.name} of shape {other.shape} "
                           "are not the same parameter")
        if self.u is None:
            return ParameterPatch(self.name, self.shape, delta=self._difference() + other._difference())
        (u, v), (u2, v2) = self._factors(), other._factors()
        return ParameterPatch(self.name, self.shape, np.hstack([u, u2]), np.hstack([v, v2]))


@dataclass(frozen=True)
class Origin:
    """What a patch was made for: a token at a position, after tokens, of a model.

    >>> patch.origin.position, len(patch.origin.tokens), patch.origin.kept
    (5, 6, ())
    """

    model_hash: str
    tokens: tuple[int, ...]
    position: int
    kept: tuple[int, ...]
    update: str = "least"
    dtype: str = "f32"
    embeddings_digest: str = ""


class Patch(Mapping[str, ParameterPatch]):
    """The patch of one token, by the stored names of its parameters.

    It is a mapping, and a vector: patches can be added, subtracted and scaled. The result is no longer exact for any
    token, and has the `origin` of the first patch. Raises Mismatch if patches of two models are added.

    >>> round((patch - patch * 0.5).norm / patch.norm, 9)
    0.5
    """

    def __init__(self, parameters: Mapping[str, ParameterPatch], origin: Origin):
        self._parameters = dict(parameters)
        self.origin = origin
        self.full_next: Optional[int] = None
        """The token that the full run chose next; None for a patch that was loaded or computed from others."""
        self._known: Optional[_core.Patch] = None
        self._made_on: Optional[Callable[[], Any]] = None  # a weak reference to the live module that it was made of
        # What roundings are predicted to take in a program whose activations have a type, as a share and as a warning.
        self._replay: Optional[Callable[[str], tuple[float, str]]] = None

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]], position: Optional[int] = None) -> Patch:
        """Reads a patch file; if it has several patches, the one of `position`. Raises BadInput, which lists all
        errors in the file.

        >>> ctxc.Patch.load("README.md")
        Traceback (most recent call last):
        ...
        ctxc._errors.BadInput: README.md: ...
        """
        return cls._of_core(_core.Patch.read(os.fspath(path), position))

    @classmethod
    def _of_core(cls, bound: _core.Patch) -> Patch:
        about = bound.metadata
        origin = Origin(**{**about, "tokens": tuple(about["tokens"]), "kept": tuple(about["kept"])})
        patch = cls({row[0]: ParameterPatch(*row) for row in bound.parameters}, origin)
        patch._known = bound
        return patch

    @classmethod
    def _of_step(cls, step: _core.PatchStep) -> Patch:
        patch = cls._of_core(step.patch)
        patch.full_next = step.full_next
        return patch

    @property
    def parameters(self) -> Mapping[str, ParameterPatch]:
        """The parameters by name: the same mapping as the patch itself.

        >>> list(patch.parameters) == list(patch)
        True
        """
        return self._parameters

    def __getitem__(self, name: str) -> ParameterPatch:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return (f"ctxc.Patch of {len(self)} parameters, norm {self.norm:.3g}, for token {self.origin.tokens[-1]} "
                f"at position {self.origin.position}")

    def replay_error(self, activations: str = "f32") -> Optional[float]:
        """The predicted error of a layer's output, as a share of it, in a program whose activations are "f32", "bf16" or "f16":
        the largest of all layers. None for a patch that was loaded or computed from others.

        >>> patch.replay_error() < 1e-4 < patch.replay_error("bf16")
        True
        """
        if activations not in ("f32", "bf16", "f16"):
            raise BadInput(f"activations: found {activations!r}, expected 'f32', 'bf16' or 'f16'")
        return None if self._replay is None else self._replay(activations)[0]

    @property
    def norm(self) -> float:
        """‖change‖ of all parameters together.

        >>> patch.norm > max(each.norm for each in patch.values())
        True
        """
        return float(np.sqrt(sum(each.norm ** 2 for each in self.values())))

    def __mul__(self, factor: float) -> Patch:
        return self._with({name: each * float(factor) for name, each in self.items()})

    __rmul__ = __mul__

    def __add__(self, other: Patch) -> Patch:
        if self.origin.model_hash != other.origin.model_hash:
            raise Mismatch("the patches are of two models")
        total = dict(self._parameters)
        for name, each in other.items():
            total[name] = total[name] + each if name in total else each
        return self._with(total)

    def _with(self, parameters: Mapping[str, ParameterPatch]) -> Patch:
        """Other changes, of what this patch was made for."""
        other = Patch(parameters, self.origin)
        other._made_on = self._made_on
        return other

    def __sub__(self, other: Patch) -> Patch:
        return self + other * -1.0

    def cosine(self, other: Patch) -> float:
        """⟨a, b⟩ / ‖a‖‖b‖ over the parameters of both; 0 if one of them changes nothing.

        >>> round(patch.cosine(patch * -2.0), 9)
        -1.0
        """
        product = sum(float(np.sum(each.dense() * other[name].dense()))
                      for name, each in self.items() if name in other)
        norms = self.norm * other.norm
        return product / norms if norms else 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        copied = {name: ParameterPatch(each.name, each.shape, *(None if part is None else np.array(part)
                                                                for part in (each.u, each.v, each.delta)))
                  for name, each in self.items()}
        return _restored, (copied, self.origin, self.full_next)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a patch file (safetensors), which `ctxc apply` and `ctxc verify --patch` read. A change of rank
        above 1, as in a sum of patches, is stored as the product u vᵀ. Raises BadInput if the file cannot be written.

        >>> patch.save(folder + "/patch.safetensors")
        >>> ctxc.Patch.load(folder + "/patch.safetensors").origin == patch.origin
        True
        """
        self._bound().write(os.fspath(path))

    def to_peft(self, path: Union[str, os.PathLike[str]], model: Optional[Model] = None) -> None:
        """Writes a new directory with a LoRA adapter of rank 1, which PEFT loads onto the model of transformers. It
        holds for the patch's token at its position (docs/adapters.md).

        model: the patch's model, which a patch that was loaded or copied needs. Raises BadInput for a patch of a
        vector or of experts and for a sum of patches, which a LoRA of rank 1 cannot hold, and for a directory that
        exists.

        >>> patch.to_peft(folder + "/adapter")
        Traceback (most recent call last):
        ...
        ctxc._errors.BadInput: ...: the patch changes a vector, and a LoRA holds matrices alone; ...
        """
        self._write_adapter(path, True, model)

    def to_gguf_lora(self, path: Union[str, os.PathLike[str]], model: Optional[Model] = None) -> None:
        """Writes the same adapter as a file for llama.cpp's --lora. Raises BadInput as `to_peft` does, and for a
        parameter that GGUF has no name for.

        >>> (patch + patch).to_gguf_lora(folder + "/adapter.gguf")
        Traceback (most recent call last):
        ...
        ctxc._errors.BadInput: ...: the change has rank 2; expected a patch of rank 1, and no sum
        """
        self._write_adapter(path, False, model)

    def _write_adapter(self, path: Union[str, os.PathLike[str]], is_peft: bool, model: Optional[Model]) -> None:
        for each in self.values():
            if each.rank > 1:
                raise BadInput(f"{each.name}: the change has rank {each.rank}; expected a patch of rank 1, and no sum")
            if not each.rank:
                raise BadInput(f"{each.name}: the patch changes a vector, and a LoRA holds matrices alone; expected a "
                               "model that was loaded with parameters=[…] of a plan of matrices, as "
                               "ctxc.check(path, plans=True) lists them")
        if model is not None:
            model._expect_own(self)
        self._bound().write_adapter(os.fspath(path), is_peft, None if model is None else model._core)

    def _bound(self) -> _core.Patch:
        if self._known is None:
            rows: list[Any] = []
            for each in self.values():
                if each.rank == 1:
                    u, v = each._factors()
                    rows.append((each.name, list(each.shape), np.ascontiguousarray(u, np.float64),
                                 np.ascontiguousarray(v, np.float64), None))
                else:
                    rows.append((each.name, list(each.shape), None, None,
                                 np.ascontiguousarray(each.dense(), np.float64)))
            about = dict(vars(self.origin))
            self._known = _core.Patch.make(rows, about | {"tokens": list(self.origin.tokens),
                                                           "kept": list(self.origin.kept)})
        return self._known


def _restored(parameters: dict[str, ParameterPatch], origin: Origin, full_next: Optional[int]) -> Patch:
    patch = Patch(parameters, origin)
    patch.full_next = full_next
    return patch
