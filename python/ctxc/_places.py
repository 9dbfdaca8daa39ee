"""Patches of an exported program, put back where its parameters are in the author's own: leaves of a tree of JAX, or a module's."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Iterator, Mapping, Optional, Union

import numpy as np

from ctxc._axes import Leaf, Part
from ctxc._program_file import read_header, read_program

Program = Union[str, "os.PathLike[str]"]


def places_of(program: Program) -> tuple[str, dict[str, dict[str, Any]]]:
    """The framework that the program was written by, and of its parameters the leaf, and which entries of it."""
    said = read_program(program)
    return said["source"]["framework"], {each["name"]: each["part"] for each in said["stored"] if "part" in each}


def tensors_of(path: Program) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file of float64 and float32 ones."""
    header, begin = read_header(path)
    content = np.memmap(path, np.uint8, "r", begin) if os.path.getsize(path) > begin else np.zeros(0, np.uint8)
    types = {"F64": "<f8", "F32": "<f4"}
    unknown = [name for name, each in header.items() if name != "__metadata__" and each["dtype"] not in types]
    if unknown:
        raise ValueError(f"{os.fspath(path)}: {unknown[0]}: found type {header[unknown[0]]['dtype']}, expected those of a patch, F64 or F32")
    return {name: content[slice(*each["data_offsets"])].view(types[each["dtype"]]).reshape(each["shape"])
            for name, each in header.items() if name != "__metadata__"}


def file_of(patch: Any) -> Program:
    """The file with the changes of a patch file, of what `ctxc.distil` gives, or of a directory of `ctxc distil` or `ctxc patch --joint`."""
    path = getattr(patch, "path", patch) if not isinstance(patch, os.PathLike) else patch
    if not os.path.isdir(path):
        return path
    file = os.path.join(path, "adapter_model.safetensors")
    if (read_header(file)[0].get("__metadata__") or {}).get("format") != "ctxc-adapter":
        raise ValueError(f"{os.fspath(path)}: is an adapter for PEFT; expected one that was distilled for an exported program")
    return file


def changes_of(patch: Any) -> Iterator[tuple[str, int, np.ndarray]]:
    """The name of each parameter, the matrix of its stack (-1: all of it), and its change, of a ctxc.Patch or what file_of takes."""
    if isinstance(patch, Mapping):
        changes = {name: each.dense() for name, each in patch.items()}
    else:
        tensors = tensors_of(file_of(patch))
        changes = {name[:-len(".delta")]: each for name, each in tensors.items() if name.endswith(".delta")}
        for name in tensors:
            if name.endswith(".u"):
                u, v = (tensors[name[:-2] + end].astype(np.float64) for end in (".u", ".v"))
                changes[name[:-2]] = u.reshape(len(u), -1) @ v.reshape(len(v), -1).T
    for name, change in changes.items():
        of_stack = re.fullmatch(r"(.*)\[(\d+)\]", name)
        yield (of_stack[1], int(of_stack[2]), change) if of_stack else (name, -1, change)


def changed_leaves(patch: Any, program: Program, framework: str, leaf_at: Callable[[str], Optional[np.ndarray]]
                   ) -> dict[str, np.ndarray]:
    """The leaves that a patch changes, with their changes, in float64. `leaf_at` gives the numbers of a leaf; None where there is
    none. A parameter that the program does not name is a leaf. Raises ValueError for a patch of another program, or other leaves."""
    found, places = places_of(program)
    if found != framework:
        raise ValueError(f"{os.fspath(program)}: was not written by ctxc.{'jax.export' if framework == 'jax' else 'export'}, which says "
                         "where its parameters are")
    sums: dict[str, np.ndarray] = {}
    for name, matrix, change in changes_of(patch):
        where = places.get(name)
        path = name if where is None else where["of"]
        leaf = sums.get(path)
        leaf = leaf_at(path) if leaf is None else leaf
        if leaf is None and where is None:
            raise ValueError(f"the patch changes {name!r}, which is no parameter of {os.fspath(program)}; expected a patch of this program")
        if leaf is None:
            raise ValueError(f"{name}: what was given has no leaf {path}; expected the parameters that were exported")
        sums.setdefault(path, np.array(leaf, np.float64))
        entries = sums[path]
        if where is not None:
            part = Part(Leaf(name, path, leaf), where["offset"], tuple(where["dims"]), tuple(where["strides"]))
            reach = part.offset + sum((n - 1) * s for n, s in zip(part.dims, part.strides))
            if reach >= leaf.size:
                raise ValueError(f"{path}: found the shape {leaf.shape}, which has no entry {reach}; expected the parameters that were exported")
            entries = part.entries(sums[path].reshape(-1))
        entries = entries if matrix < 0 else entries[matrix]
        if entries.size != change.size:
            raise ValueError(f"{name}: found a change of shape {change.shape}, expected one of {entries.shape}")
        entries += change.reshape(entries.shape)
    return sums
