"""Weights of a JAX program as `--weights` reads them: the leaves of the author's tree, by their paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ctxc._places import Program, places_of
from ctxc._program_file import TYPES, write_safetensors
from ctxc.jax import _jax_internals as internals
from ctxc.jax._patch import path_of

# Flax and Orbax put these around parameters, or leave them out.
COLLECTIONS = ("params", "value")
FLOATS = ("F64", "F32", "F16", "BF16")


def plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in COLLECTIONS)


def save_weights(params: Any, program: Program, folder: str | os.PathLike[str]) -> None:
    """Writes the leaves of a tree of parameters that a program was exported with, for `ctxc verify PROGRAM --weights FOLDER`. Raises
    ValueError where the tree has no such leaf."""
    framework, places = places_of(program)
    if framework != "jax":
        raise ValueError(f"{os.fspath(program)}: was not written by ctxc.jax.export, which says where its parameters are")
    leaves: dict[str, Any] = {}
    for keys, leaf in internals.named_leaves(params)[0]:
        leaves.setdefault(plain(path_of(keys)), leaf)
    tensors: dict[str, Any] = {}
    for path in dict.fromkeys(each["of"] for each in places.values()):
        if plain(path) not in leaves:
            near = ", ".join(list(leaves)[:3])
            raise ValueError(f"{os.fspath(program)}: its parameter {path} is no leaf of the weights, which have {near}, …; expected those "
                             "of the same model")
        array = np.asarray(leaves[plain(path)])
        if (dtype := TYPES.get(array.dtype.name)) in FLOATS:
            tensors[path] = dtype, array.shape, array.tobytes
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_safetensors(tensors, Path(folder) / "model.safetensors")
    (Path(folder) / "config.json").write_text("{}\n")
