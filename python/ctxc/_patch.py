"""Patches: the change of each parameter, factored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from ctxc import _core
from ctxc._errors import Mismatch


@dataclass(frozen=True, eq=False)
class ParameterPatch:
    """The change of one stored parameter, in its stored orientation: stored + change is the patched tensor.

    A matrix of shape (m, n) changes by u @ v.T, with u (m, r) and v (n, r); what the compiler makes has r = 1. A
    vector changes by delta, of its shape. Arrays of a patch that was computed or read show its own memory, in
    float64, and cannot be written.
    """

    name: str
    shape: tuple[int, ...]
    u: Optional[np.ndarray] = None
    v: Optional[np.ndarray] = None
    delta: Optional[np.ndarray] = None

    @property
    def rank(self) -> int:
        """0 for a vector."""
        return 0 if self.u is None else self.u.shape[1]

    def dense(self) -> np.ndarray:
        """The change as one array of the stored shape."""
        return self.delta if self.u is None else self.u @ self.v.T

    @property
    def norm(self) -> float:
        """‖change‖, Frobenius."""
        if self.u is None:
            return float(np.linalg.norm(self.delta))
        return float(np.sqrt(max(0.0, np.sum((self.u.T @ self.u) * (self.v.T @ self.v)))))

    def __mul__(self, factor: float) -> ParameterPatch:
        if self.u is None:
            return ParameterPatch(self.name, self.shape, delta=self.delta * factor)
        return ParameterPatch(self.name, self.shape, self.u * factor, self.v)

    def __add__(self, other: ParameterPatch) -> ParameterPatch:
        if (self.name, self.shape, self.u is None) != (other.name, other.shape, other.u is None):
            raise Mismatch(f"{self.name} of shape {self.shape} and {other.name} of shape {other.shape} "
                           "are not the same parameter")
        if self.u is None:
            return ParameterPatch(self.name, self.shape, delta=self.delta + other.delta)
        return ParameterPatch(self.name, self.shape, np.hstack([self.u, other.u]), np.hstack([self.v, other.v]))


@dataclass(frozen=True)
class Origin:
    """What a patch was made for: a token at a position, after tokens, of a model."""

    model_hash: str
    tokens: tuple[int, ...]
    position: int
    kept: tuple[int, ...]
    update: str = "least"
    dtype: str = "f32"
    embeddings_digest: str = ""


class Patch(Mapping[str, ParameterPatch]):
    """The patch of one token, by the stored names of its parameters.

    It is a mapping, and a vector: patches can be added, subtracted and scaled. What comes of that is no longer
    exact for any token; its `origin` is that of the first.
    """

    def __init__(self, parameters: Mapping[str, ParameterPatch], origin: Origin):
        self._parameters = dict(parameters)
        self.origin = origin
        self.full_next: Optional[int] = None
        """The token that the full run chose next, where the patch was just made."""
        self._known: Optional[_core.Patch] = None

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Patch:
        """Reads a patch file. Raises BadInput with all that is wrong in it."""
        return cls._of_core(_core.Patch.read(os.fspath(path)))

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

    @property
    def norm(self) -> float:
        """‖change‖ of all parameters together."""
        return float(np.sqrt(sum(each.norm ** 2 for each in self.values())))

    def __mul__(self, factor: float) -> Patch:
        return Patch({name: each * float(factor) for name, each in self.items()}, self.origin)

    __rmul__ = __mul__

    def __add__(self, other: Patch) -> Patch:
        if self.origin.model_hash != other.origin.model_hash:
            raise Mismatch("the patches are of two models")
        total = dict(self._parameters)
        for name, each in other.items():
            total[name] = total[name] + each if name in total else each
        return Patch(total, self.origin)

    def __sub__(self, other: Patch) -> Patch:
        return self + other * -1.0

    def cosine(self, other: Patch) -> float:
        """⟨a, b⟩ / ‖a‖‖b‖ over the parameters of both."""
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
        """Writes a patch file (safetensors), which `ctxc apply` and `ctxc verify --patch` read. A matrix of rank
        above 1, as a sum has, is stored as the product."""
        self._bound().write(os.fspath(path))

    def _bound(self) -> _core.Patch:
        if self._known is None:
            rows = []
            for each in self.values():
                if each.rank == 1:
                    rows.append((each.name, list(each.shape), np.ascontiguousarray(each.u, np.float64),
                                 np.ascontiguousarray(each.v, np.float64), None))
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
