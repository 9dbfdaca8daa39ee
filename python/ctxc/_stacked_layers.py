"""Layers of a model without a module for each: their parameters are rows of stacks, `up[i]` of an `up` of (layers, width, inner)."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Sequence

import torch

from ctxc._axes import Part
from ctxc._layers import Layers, joins_tokens
from ctxc._program import Call, Graph, Place, Value

ATTENTION = "scaled_dot_product_attention"


def row_of(part: Part) -> int:
    """Which entry of the leaf's first axis the part is in; −1 where it is in several."""
    sizes = part.leaf.array.shape
    if len(sizes) < 2:
        return -1
    stride = part.leaf.array.numel() // sizes[0]
    last = part.offset + sum((size - 1) * step for size, step in zip(part.dims, part.strides))
    return part.offset // stride if part.offset // stride == last // stride else -1


def of_layer(part: Part) -> Part:
    """With the name of a parameter of its layer."""
    return replace(part, element=("layers", row_of(part)), steps=part.steps[1:])


def has_modules(program: torch.export.ExportedProgram) -> bool:
    """Whether an element of a list has calls, as modules of layers have."""
    paths = [path for node in program.graph.nodes for path, _ in node.meta.get("nn_module_stack", {}).values()]
    return any(part.isdigit() for path in paths for part in path.split("."))


def values_of(program: torch.export.ExportedProgram, known: dict[torch.fx.Node, Part], roles: dict[str, str], length: int
              ) -> tuple[Graph, dict[int, torch.fx.Node]]:
    """The program's calls of ops, and the nodes that they are."""
    graph = Graph("tokens", length)
    values: dict[torch.fx.Node, list[Value]] = {}
    nodes: dict[int, torch.fx.Node] = {}
    inputs = program.graph_signature.user_inputs

    def shaped(given: Any, data: bool) -> list[Value]:
        tensors = [each for each in (given if isinstance(given, (list, tuple)) else [given]) if isinstance(each, torch.Tensor)]
        return [Value(tuple(size if isinstance(size, int) else str(size) for size in each.shape), torch.empty(0, dtype=each.dtype).numpy().dtype
                      if each.dtype != torch.bfloat16 else "bfloat16", data) for each in tensors]
    for node in program.graph.nodes:
        if node in known:
            values[node] = [Value(known[node].dims, None, name=known[node].name, part=known[node])]
        elif node.op == "placeholder":
            values[node] = shaped(node.meta.get("val"), node.name in inputs and roles.get(node.name) != "position")
            graph.inputs += values[node] if node.name in inputs else []
        elif node.op == "call_function":
            operands = [each for operand in node.all_input_nodes for each in values.get(operand, [])]
            results = shaped(node.meta.get("val"), any(each.data for each in operands))
            if results:
                name = node.target._schema.name.partition("::")[2] if isinstance(node.target, torch._ops.OpOverload) else "getitem"
                call = Call(name, {"of": operands}, results, Place())
                for each in results:
                    each.call = call
                graph.calls.append(call)
                nodes[id(call)] = node
            values[node] = results
    return graph, nodes


def take(layers: Layers, nodes: dict[int, torch.fx.Node]) -> None:
    for call in layers.calls:
        if call.layer:
            nodes[id(call)].meta["nn_module_stack"] = {call.layer: (call.layer, "torch.nn.Module")}


def stacked_layers(program: torch.export.ExportedProgram, known: dict[torch.fx.Node, Part], found: Sequence[Part], roles: dict[str, str],
                   length: int) -> set[str]:
    """The leaves that are stacks over layers. The calls of each layer get its path, if one value is all that goes from a layer to
    the next: by the names of parameters, by rows of stacks, or, where all is in one forward, by these values alone."""
    if "token" not in roles.values() or has_modules(program):
        return set()
    rows = Counter(part.leaf.array.shape[0] for part in found if row_of(part) >= 0)
    for count in [0, *[size for size, _ in rows.most_common()]]:
        stacks = {part.leaf.name for part in found if row_of(part) >= 0 and part.leaf.array.shape[0] == count}
        stacks -= {part.leaf.name for part in found if row_of(part) < 0}
        named = {node: of_layer(part) if part.leaf.name in stacks and row_of(part) >= 0 else part for node, part in known.items()}
        graph, nodes = values_of(program, named, roles, length)
        layers = Layers(graph)
        if layers.by_names(layers.stretches()):
            take(layers, nodes)
            return stacks
    graph, nodes = values_of(program, known, roles, length)
    layers = Layers(graph)
    joining = [nodes[id(call)] for call in layers.calls if joins_tokens(graph, call)]
    if not any(path for node in joining for path, _ in node.meta.get("nn_module_stack", {}).values()):
        layers.by_stretches(layers.stretches())
        take(layers, nodes)
    return set()
