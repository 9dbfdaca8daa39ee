"""Removes selections by constant masks that are true everywhere, such as the mask of a model's default language. They
select everything, but torch gives their result a size that is unknown before the program runs."""
from __future__ import annotations

import operator
from contextlib import nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols


def computed(node: torch.fx.Node, known: dict[str, Any]) -> Any:
    """The result of `node` on the CPU, from `known`, the values of operands by their names; None if it cannot be
    computed."""
    if any(argument.name not in known for argument in node.all_input_nodes):
        return None
    arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: known[n.name])
    if "device" in keywords:
        keywords = {**keywords, "device": torch.device("cpu")}
    try:
        return node.target(*arguments, **keywords)  # type: ignore
    except Exception:
        return None


def constants_of(program: torch.export.ExportedProgram) -> dict[str, Any]:
    """The small values of a program that depend on no input and on no parameter."""
    known: dict[str, Any] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or node.target is operator.getitem:
            continue
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) or "empty" in str(node.target):
            continue
        if not all(isinstance(size, int) for size in value.shape) or value.numel() > 64:
            continue
        result = computed(node, known)
        if result is not None:
            known[node.name] = result
    return known


def selects_all(node: torch.fx.Node, known: dict[str, Any]) -> bool:
    """Whether `node` reads or writes all entries along the first axes, by one mask that is true everywhere."""
    indices: Any = node.args[1]
    if len(indices) != 1 or not isinstance(indices[0], torch.fx.Node):
        return False
    mask, whole = known.get(indices[0].name), node.args[0].meta["val"]  # type: ignore
    return isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and bool(mask.all()) and \
        tuple(whole.shape[:mask.dim()]) == tuple(mask.shape) and mask.dim() == 1


def recomputed(node: torch.fx.Node) -> Any:
    """The result of `node` for the present sizes of its operands."""
    def value(operand: torch.fx.Node) -> Any:
        return operand.meta["val"]
    arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), value)
    mode = next((v.fake_mode for v in [*arguments, node.meta["val"]] if isinstance(v, FakeTensor)), nullcontext())
    with mode:
        return node.target(*arguments, **keywords)  # type: ignore


def without_full_masks(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Removes such selections from `program`, in place, and returns it."""
    aten = torch.ops.aten
    known = constants_of(program)
    graph = program.graph
    unknown: set[Any] = set()  # sizes
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        value = node.meta.get("val")
        if node.target == aten.index.Tensor and selects_all(node, known):
            unknown |= free_unbacked_symbols(value)
            node.replace_all_uses_with(node.args[0])
        elif node.target == aten.index_put.default and len(node.args) == 3 and selects_all(node, known) and \
                node.args[2].meta["val"].shape == value.shape:
            node.replace_all_uses_with(node.args[2])
        elif node.target == aten._assert_scalar.default:
            if isinstance(node.args[0].meta["val"], bool):  # of a size that is known by now
                graph.erase_node(node)
        elif value is not None and unknown & free_unbacked_symbols(value):
            node.meta["val"] = recomputed(node)
    for node in reversed(list(graph.nodes)):
        if unknown and node.op == "call_function" and not node.users and not node.is_impure():
            graph.erase_node(node)
    program.graph_module.recompile()
    return program
