"""Gives heads an axis of their own where a model merges it with the tokens', as norms of heads do: what is computed along
the last axis of (tokens · heads, width) is the same along that of (1, tokens, heads, width), and each token is then seen to
be by itself."""
from __future__ import annotations

from typing import Any

import torch

from ctxc._full_masks import recomputed

VIEWS = ("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
# Along the axes that they are given, which they keep.
ALONG = ("aten.mean.dim", "aten.sum.dim_IntList", "aten.var.correction", "aten._softmax.default", "aten.softmax.int",
         "aten.amax.default")
COPIES = ("aten._to_copy.default", "aten.clone.default", "aten.type_as.default", "aten.linear.default")


def is_merged(node: torch.fx.Node, size: str) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dim() == 2 and str(value.shape[0]) == size


def split_sizes(node: torch.fx.Node, length: Any) -> list[int] | None:
    """(1, −1, heads, width) where `node` views (1, tokens, …) as (tokens · heads, width); None where it does not."""
    if str(node.target) not in VIEWS or not isinstance(node.args[0], torch.fx.Node):
        return None
    given, made = node.args[0].meta["val"].shape, node.meta["val"].shape
    # Sizes are compared as texts, which asks nothing of a symbol.
    if len(given) < 3 or len(made) != 2 or [str(size) for size in given[:2]] != ["1", str(length)] or \
            not all(isinstance(size, int) and size > 0 for size in (*given[2:], made[1])):
        return None
    numbers = 1
    for size in given[2:]:
        numbers *= size
    heads, rest = divmod(numbers, made[1])
    return [1, -1, heads, made[1]] if heads > 1 and not rest else None


def goes_by_rows(node: torch.fx.Node) -> bool:
    """Whether `node` computes each row of (rows, width) by itself."""
    name = str(node.target)
    if name in ALONG:
        axes = node.args[1] if len(node.args) > 1 else None
        keeps = "softmax" in name or True in node.args[2:] or bool(node.kwargs.get("keepdim"))
        return keeps and (axes if isinstance(axes, int) else list(axes or [])) in (-1, 1, [-1], [1])  # type: ignore
    return name in COPIES or torch.Tag.pointwise in getattr(node.target, "tags", ())


def rows_behind(view: torch.fx.Node) -> list[torch.fx.Node]:
    """`view`, and the values of as many rows that are made of it; nothing where they are not made row by row."""
    size, rows = str(view.meta["val"].shape[0]), [view]
    for node in rows:
        for user in node.users:
            name = str(user.target)
            ends = "_assert_tensor_metadata" in name or (name in VIEWS and not is_merged(user, size))
            if ends or user in rows:
                continue
            others = [operand for operand in user.all_input_nodes if operand.op != "call_function"]
            if not is_merged(user, size) or not goes_by_rows(user) or any(is_merged(other, size) for other in others):
                return []
            rows.append(user)
    return rows


def without_merged_axes(program: torch.export.ExportedProgram, length: Any) -> torch.export.ExportedProgram:
    """Splits such axes in `program`, in place, and returns it. `length` is its number of tokens."""
    sizes = {node: split_sizes(node, length) for node in program.graph.nodes if node.op == "call_function"}
    behind = {node: rows_behind(node) for node, split in sizes.items() if split}
    behind = {view: rows for view, rows in behind.items() if rows}
    while True:
        found = {node for rows in behind.values() for node in rows}
        # A value that is split meets others that are.
        mixed = {view for view, rows in behind.items() for node in rows if node not in behind
                 if any(operand not in found and is_merged(operand, str(node.meta["val"].shape[0]))
                        for operand in node.all_input_nodes)}
        if not mixed:
            break
        behind = {view: rows for view, rows in behind.items() if view not in mixed}
    for node in program.graph.nodes:
        if node not in found:
            continue
        if node in behind:
            node.args = (node.args[0], sizes[node])
        elif str(node.target) in ALONG:
            node.args = (node.args[0], -1 if isinstance(node.args[1], int) else [-1], *node.args[2:])
        node.meta["val"] = recomputed(node)
    if found:
        program.graph_module.recompile()
    return program
