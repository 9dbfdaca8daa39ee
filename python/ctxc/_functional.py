"""Makes an exported program one without ops in place, as torch's run_decompositions() does, which traces all layers twice.
Here each op is traced once: calls whose operands differ in their numbers alone, as those of one layer and the next, are
decomposed alike. A program with anything else than calls of ops without effects is left to torch."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import operator
from typing import Any

import torch
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from ctxc._spelled import TABLE

METADATA = torch.ops.aten._assert_tensor_metadata.default  # which gives nothing
KEPT = ("nn_module_stack", "stack_trace", "torch_fn", "source_fn_stack")  # of what a node says about its call
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Unknown(Exception):
    """The program has what is left to torch."""


def said(value: Any, order: dict[Node, int]) -> Any:
    """All that a decomposition may depend on: of a tensor, all but its numbers. `order` gets the operands."""
    if isinstance(value, Node):
        return order.setdefault(value, len(order)), said(value.meta["val"], order)
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_conj() or value.is_neg():
            raise Unknown
        return value.dtype, value.device, said(tuple(value.shape), order), said(value.stride(), order)
    if isinstance(value, SYMBOLS):
        if free_unbacked_symbols(value):
            raise Unknown
        return value.node.expr
    if isinstance(value, (list, tuple)):
        return tuple(said(each, order) for each in value)
    if isinstance(value, dict):
        return tuple((name, said(each, order)) for name, each in value.items())
    return type(value), repr(value) if isinstance(value, float) else value  # 0.0 is equal to -0.0


def is_scalar(node: Node) -> bool:
    return isinstance(node.meta.get("val"), (int, float, *SYMBOLS))


def tensors_of(node: Node) -> list[Node]:
    return [operand for operand in node.all_input_nodes if not is_scalar(operand)]


def parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def key_of(node: Node) -> Any:
    """The same for calls that are decomposed alike; None for sizes, parts of results, inputs and outputs."""
    target, made = node.target, node.meta.get("val")
    if node.op in ("placeholder", "output") or target is operator.getitem or is_scalar(node):
        return None
    # Ops with strides of their own read what is around a tensor in its storage.
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable or "strided" in str(target) or \
            (made is None and target is not METADATA) or not all(isinstance(part, torch.Tensor) for part in parts(made)):
        raise Unknown
    order: dict[Node, int] = {}
    return target, said(node.args, order), said(dict(node.kwargs), order), said(made, order)


class Call:
    """The first call of a key in a graph of its own: what stands for its operands, its results, and the calls between them."""

    def __init__(self, node: Node, graph: Graph):
        self.node = node
        self.operands = {operand: graph.placeholder(f"{node.name}_of_{at}") for at, operand in enumerate(tensors_of(node))}
        for operand, placed in self.operands.items():
            value = operand.meta["val"]
            with value.fake_mode:
                placed.meta["val"] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        self.results: list[Node] = []
        self.made: list[Node] = []

    def copy(self, graph: Graph, sizes: dict[Node, Node]) -> None:
        """Calls the op in `graph`, with a node for each of its results."""
        value, made = self.node.meta["val"], graph.node_copy(self.node, {**sizes, **self.operands}.__getitem__)
        self.results = [made] if isinstance(value, torch.Tensor) else \
            [graph.call_function(operator.getitem, (made, at)) for at in range(len(parts(value)))]
        for node, part in zip(self.results, parts(value)):
            node.meta["val"] = part

    def decomposed(self, became: dict[Node, Node], order: dict[Node, int]) -> None:
        """Finds what the call has become, but for the calls that compute sizes."""
        self.operands = {operand: became[placed] for operand, placed in self.operands.items()}
        self.results = [became[node] for node in self.results]
        # What follows was exported with these.
        if said([node.meta["val"] for node in self.results], {}) != said(parts(self.node.meta["val"]), {}):
            raise Unknown
        left, found = self.results or [user for placed in self.operands.values() for user in placed.users], set()
        while left:
            node, *left = left
            if node.op == "call_function" and not is_scalar(node) and node not in found:
                found.add(node)
                left += node.all_input_nodes
        self.made = sorted(found, key=order.__getitem__)


def decomposed(graph: Graph, inputs: list[Node], outputs: list[Node], whole: ExportedProgram) -> dict[Node, Node]:
    """What torch makes of `inputs` and `outputs` of a graph with the sizes of `whole`."""
    graph.output(tuple(outputs))
    taken, given = ([TensorArgument(name=node.name) for node in nodes] for nodes in (inputs, outputs))
    signature = ExportGraphSignature([InputSpec(InputKind.USER_INPUT, each, None) for each in taken],
                                     [OutputSpec(OutputKind.USER_OUTPUT, each, None) for each in given])
    form, made_form = pytree.tree_structure((tuple(inputs), {})), pytree.tree_structure(tuple(outputs))
    call = ModuleCallEntry("", ModuleCallSignature(list(taken), list(given), form, made_form))
    made = ExportedProgram(torch.nn.Module(), graph, signature, {}, whole.range_constraints, [call]).run_decompositions(dict(TABLE)).graph
    return {**dict(zip(inputs, made.nodes)), **dict(zip(outputs, made.output_node().args[0]))}


def calls_of(program: ExportedProgram, keys: dict[Node, Any]) -> dict[Any, Call]:
    """The first call of each key, decomposed."""
    users, graph = set(program.graph_signature.user_inputs), Graph()
    sizes: dict[Node, Node] = {}  # and the inputs whose sizes they are, by names that are no function's of Python
    for node in keys:
        if node.name in users and isinstance(node.meta["val"], torch.Tensor):
            sizes[node] = graph.placeholder(f"given_{len(sizes)}")
            sizes[node].meta = dict(node.meta)
    first_of = {key: node for node, key in reversed(keys.items()) if key}
    calls = {key: Call(node, graph) for key, node in first_of.items()}
    inputs, first = list(graph.nodes), {call.node: call for call in calls.values()}
    for node in keys:
        if node in first:
            first[node].copy(graph, sizes)
        elif node.op == "call_function" and is_scalar(node):
            if any(operand not in sizes for operand in node.all_input_nodes):
                raise Unknown
            sizes[node] = graph.node_copy(node, sizes.__getitem__)
    became = decomposed(graph, inputs, [result for call in calls.values() for result in call.results], program)
    order = {node: at for at, node in enumerate(next(iter(became.values())).graph.nodes)}
    for call in calls.values():
        call.decomposed(became, order)
    return calls


def assembled(program: ExportedProgram) -> ExportedProgram:
    """`program` with what its calls are decomposed into."""
    signature = program.graph_signature
    if any(spec.kind != OutputKind.USER_OUTPUT for spec in signature.output_specs):
        raise Unknown
    keys = {node: key_of(node) for node in program.graph.nodes}
    calls, graph = calls_of(program, keys), Graph()
    known: dict[Node, Any] = {}
    sizes: dict[Any, Node] = {}
    for node, key in keys.items():
        if key:
            local = dict(zip(calls[key].operands.values(), (known[operand] for operand in tensors_of(node))))
            for made in calls[key].made:
                asked = {size: said(size.meta["val"], {}) for size in made.all_input_nodes if is_scalar(size)}
                if any(size not in sizes for size in asked.values()):  # one that no op of the program has
                    raise Unknown
                local.update({size: sizes[which] for size, which in asked.items()})
                local[made] = graph.node_copy(made, local.__getitem__)
                local[made].meta = {**{name: node.meta[name] for name in KEPT if name in node.meta}, "val": made.meta.get("val")}
            results = [local[result] for result in calls[key].results]
            known[node] = results[0] if isinstance(node.meta["val"], torch.Tensor) else results
        elif node.target is operator.getitem:
            known[node] = known[node.args[0]][node.args[1]]
        else:
            known[node] = graph.node_copy(node, known.__getitem__)
            if node.op == "placeholder":  # it may have the name of a function of Python, which a copy does not get
                known[node].name = node.name
            if is_scalar(node):
                sizes.setdefault(said(node.meta["val"], {}), known[node])
    graph.eliminate_dead_code()
    outputs: Any = graph.output_node().args[0]
    specs = [dataclasses.replace(spec, arg=dataclasses.replace(spec.arg, name=node.name)) if isinstance(node, Node) else spec
             for spec, node in zip(signature.output_specs, outputs)]
    found = ExportedProgram(torch.nn.Module(), graph, ExportGraphSignature(signature.input_specs, specs), program.state_dict,
                            program.range_constraints, copy.deepcopy(program.module_call_graph), program.example_inputs,
                            program.constants)
    found.graph_module.meta.update(program.graph_module.meta)
    return found


def without_ops_in_place(program: ExportedProgram) -> ExportedProgram:
    with contextlib.suppress(Exception):  # Unknown, and what another release of torch does not make so
        return assembled(program)
    found = program.run_decompositions(dict(TABLE))
    assert isinstance(found, ExportedProgram)
    return found
