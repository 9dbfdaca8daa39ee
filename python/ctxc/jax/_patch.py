"""Patches of an exported program, put back into the author's tree of parameters."""

from __future__ import annotations

import json
import os
import re
import zipfile
from typing import Any, Iterator, Mapping, Union

import numpy as np

from ctxc.jax import _jax_internals as internals
from ctxc.jax._values import Leaf, Part

Program = Union[str, "os.PathLike[str]"]


def path_of(keys: list[str]) -> str:
    return "/".join(keys)


def parts_of(program: Program) -> dict[str, dict[str, Any]]:
    """Of each parameter in the file: the leaf, and which entries of it."""
    with zipfile.ZipFile(program) as archive:
        name = next((name for name in archive.namelist() if name.endswith("extra/ctxc.json")), None)
        note = json.loads(archive.read(name)) if name else {}
    if note.get("framework") != "jax":
        raise ValueError(f"{os.fspath(program)}: was not written by ctxc.jax.export, which says where its parameters are in the tree")
    parts: dict[str, dict[str, Any]] = note["parameters"]
    return parts


def tensors_of(path: Program) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file of float64 and float32 ones."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, content = json.loads(file.read(size)), file.read()
    types = {"F64": "<f8", "F32": "<f4"}
    unknown = [name for name, each in header.items() if name != "__metadata__" and each["dtype"] not in types]
    if unknown:
        raise ValueError(f"{os.fspath(path)}: {unknown[0]}: found type {header[unknown[0]]['dtype']}, expected those of a patch, F64 or F32")
    return {name: np.frombuffer(content[slice(*each["data_offsets"])], types[each["dtype"]]).reshape(each["shape"])
            for name, each in header.items() if name != "__metadata__"}


def changes_of(patch: Any) -> Iterator[tuple[str, int, np.ndarray]]:
    """The name of each parameter, the matrix of its stack (-1: all of it), and its change, of a ctxc.Patch or a patch file."""
    if isinstance(patch, Mapping):
        changes = {name: each.dense() for name, each in patch.items()}
    else:
        tensors = tensors_of(patch)
        changes = {name[:-len(".delta")]: each for name, each in tensors.items() if name.endswith(".delta")}
        for name in tensors:
            if name.endswith(".u"):
                u, v = (tensors[name[:-2] + end].astype(np.float64) for end in (".u", ".v"))
                changes[name[:-2]] = u.reshape(len(u), -1) @ v.reshape(len(v), -1).T
    for name, change in changes.items():
        of_stack = re.fullmatch(r"(.*)\[(\d+)\]", name)
        yield (of_stack[1], int(of_stack[2]), change) if of_stack else (name, -1, change)


def apply_patch(params: Any, patch: Any, program: Program) -> Any:
    """The tree `params` with a patch of the program that was exported from it: a ctxc.Patch, or a file that `ctxc patch` wrote.
    Leaves that the patch does not change are the same arrays. Raises ValueError for a patch of another program, or another tree."""
    parts = parts_of(program)
    leaves, form = internals.named_leaves(params)
    at = {path_of(keys): i for i, (keys, _) in enumerate(leaves)}
    sums: dict[int, np.ndarray] = {}
    for name, matrix, change in changes_of(patch):
        if name not in parts:
            raise ValueError(f"the patch changes {name!r}, which is no parameter of {os.fspath(program)}; expected a patch of this program")
        where = parts[name]
        if where["of"] not in at:
            raise ValueError(f"{name}: the tree of parameters has no leaf {where['of']}; expected the one that was exported")
        i = at[where["of"]]
        array = np.asarray(leaves[i][1])
        part = Part(Leaf(name, where["of"], array), where["offset"], tuple(where["dims"]), tuple(where["strides"]))
        reach = part.offset + sum((n - 1) * s for n, s in zip(part.dims, part.strides))
        if reach >= array.size:
            raise ValueError(f"{where['of']}: found the shape {array.shape}, which has no entry {reach}; expected the tree that was exported")
        entries = part.entries(sums.setdefault(i, array.astype(np.float64).reshape(-1)))
        entries = entries if matrix < 0 else entries[matrix]
        if entries.size != change.size:
            raise ValueError(f"{name}: found a change of shape {change.shape}, expected one of {entries.shape}")
        entries += change.reshape(entries.shape)
    made = [sums[i].reshape(np.shape(leaf)).astype(np.asarray(leaf).dtype) if i in sums else leaf for i, (_, leaf) in enumerate(leaves)]
    return internals.rebuilt(form, made)
