"""Patches of an exported program, put back into the author's tree of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ctxc._places import Program, changed_leaves
from ctxc.jax import _jax_internals as internals


def path_of(keys: list[str]) -> str:
    return "/".join(keys)


def apply_patch(params: Any, patch: Any, program: Program) -> Any:
    """The tree `params` with a patch of the program that was exported from it: a ctxc.Patch, a file that `ctxc patch` wrote, or the
    directory of an adapter that `ctxc distil` or `ctxc patch --joint` did.
    Leaves that the patch does not change are the same arrays. Raises ValueError for a patch of another program, or another tree."""
    leaves, form = internals.named_leaves(params)
    at = {path_of(keys): leaf for keys, leaf in leaves}
    sums = changed_leaves(patch, program, "jax", lambda path: np.asarray(at[path]) if path in at else None)
    made = [sums[path].astype(np.asarray(leaf).dtype) if path in sums else leaf for path, leaf in at.items()]
    return internals.rebuilt(form, made)
