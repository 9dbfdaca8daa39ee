"""Parts of a parameter as parameters of their own: `w[0]` of a stack, `qkv.chunk(3)`, a kernel of (width, heads, head) as the matrix
that it acts as. Each is a place in the module's own parameter, where a patch of it goes back to."""
from __future__ import annotations

import operator
from typing import Any, Callable, Optional

import numpy as np
import torch
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from ctxc._axes import Leaf, Part, Tensor, whole
from ctxc._places import Program, changed_leaves
from ctxc._stacked_layers import of_layer, stacked_layers

SAME = ("clone", "alias", "detach", "contiguous")
RESHAPED = ("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "flatten", "unflatten")
TURNED = ("permute", "transpose", "t", "numpy_T", "mT")
# Those that give several results, which operator.getitem tells apart.
DIVIDED = ("split", "split_with_sizes", "chunk", "tensor_split", "unbind")


def base_name(node: torch.fx.Node) -> str:
    target = node.target
    return target._schema.name.partition("::")[2] if isinstance(target, torch._ops.OpOverload) else ""


def argument(node: torch.fx.Node, name: str, default: Any = None) -> Any:
    names = [each.name for each in node.target._schema.arguments]  # type: ignore
    at = names.index(name)
    return node.args[at] if at < len(node.args) else node.kwargs.get(name, default)


def order_of(node: torch.fx.Node, rank: int) -> list[int]:
    order = list(range(rank))
    if base_name(node) == "permute":
        return [axis % rank for axis in argument(node, "dims")]
    if base_name(node) == "transpose":
        a, b = (argument(node, name) % rank for name in ("dim0", "dim1"))
        order[a], order[b] = b, a
        return order
    return order[:-2] + order[:-3:-1] if base_name(node) == "mT" else order[::-1]


def cut(tensor: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Optional[Tensor]:
    size = tensor.shape[axis]
    start, stop, step = slice(start, stop, step).indices(size)
    return tensor.cut(axis, start, stop, step) if step > 0 and start < stop else None


def without(tensor: Optional[Tensor], axis: int) -> Optional[Tensor]:
    return None if tensor is None or tensor.axes[axis] else tensor.without_axis(axis)


def part_of(node: torch.fx.Node, known: dict[torch.fx.Node, Tensor]) -> Optional[Tensor]:
    """The part of a parameter that `node` is, by those known."""
    given: Any = node.args[0] if node.args else None
    several = given if node.target is operator.getitem else None
    if isinstance(several, torch.fx.Node):
        if base_name(several) not in DIVIDED or several.args[0] not in known:
            return None
        tensor, at = known[several.args[0]], int(node.args[1])  # type: ignore
        axis = (argument(several, "dim", 0) or 0) % len(tensor.axes)
        if base_name(several) == "unbind":
            return without(cut(tensor, axis, at, at + 1), axis)
        sizes = [value.shape[axis] for value in several.meta["val"]]
        return cut(tensor, axis, sum(sizes[:at]), sum(sizes[:at + 1]))
    value, name = node.meta.get("val"), base_name(node)
    if given not in known or not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
        return None
    tensor = known[given]
    rank = len(tensor.axes)
    if name in SAME:
        return tensor
    if name in RESHAPED:
        return tensor.grouped(list(value.shape)) if value.dtype == given.meta["val"].dtype else None
    if name in TURNED:
        return tensor.transposed(order_of(node, rank))
    if name == "select":
        axis, at = argument(node, "dim") % rank, argument(node, "index")
        at += tensor.shape[axis] if at < 0 else 0
        return without(cut(tensor, axis, at, at + 1), axis)
    if name == "slice":
        begin, end, step = argument(node, "start"), argument(node, "end"), argument(node, "step", 1)
        known_places = all(each is None or isinstance(each, int) for each in (begin, end, step))
        return cut(tensor, argument(node, "dim", 0) % rank, begin, end, step) if known_places else None
    return None


def entries(tensor: Tensor) -> Part:
    """The part in the order of the tensor's axes, without axes of one entry."""
    return tensor.base.ordered(tensor.own())  # type: ignore


def key_of(tensor: Tensor) -> Any:
    """The same for the same numbers in the same shape."""
    part = entries(tensor)
    return part.leaf.name, part.offset, tuple(part.runs()), tensor.shape


def before_turns(node: torch.fx.Node) -> torch.fx.Node:
    """The node before axes were put into another order: patterns read a matrix either way."""
    while node.op == "call_function" and base_name(node) in (*TURNED, *SAME):
        node = node.args[0]  # type: ignore
    return node


def is_whole(tensor: Tensor) -> bool:
    """Whether it is the parameter itself, or that with more axes of one entry: patterns read both."""
    own, made = tuple(tensor.base.leaf.array.shape), tensor.shape
    sizes: Callable[..., Any] = lambda shape: [size for size in shape if size != 1]
    return entries(tensor).runs() == entries(whole(tensor.base.leaf)).runs() and sizes(made) == sizes(own) and \
        (made == own or len(made) > len(own))


class Views:
    """The parts of parameters that a program reads."""

    def __init__(self, program: torch.export.ExportedProgram, shared: list[list[str]]):
        self.program = program
        self.one = {name: names[0] for names in shared for name in names}
        self.known: dict[torch.fx.Node, Tensor] = {}
        self.first: dict[Any, torch.fx.Node] = {}
        self.own: dict[torch.fx.Node, InputSpec] = {}

    def find(self) -> dict[str, list[torch.fx.Node]]:
        """Of each parameter that is read in parts alone, which are apart: the nodes of the parts."""
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs if spec.kind == InputKind.PARAMETER}
        leaves: dict[str, Leaf] = {}
        for node in self.program.graph.nodes:
            if node.op == "placeholder" and node.name in specs:
                name = str(specs[node.name].target)
                name = self.one.get(name, name)
                tensor = self.program.state_dict[str(specs[node.name].target)]
                if tensor.is_floating_point() and tensor.is_contiguous() and tensor.numel():
                    self.known[node] = whole(leaves.setdefault(name, Leaf(name, name, tensor)))
                    self.first.setdefault(key_of(self.known[node]), node)
                    self.own[node] = specs[node.name]
            elif node.op == "call_function" and (made := part_of(node, self.known)) is not None:
                self.known[node] = made
                first = self.first.setdefault(key_of(made), node)
                if first is not node:
                    node.replace_all_uses_with(first)
        parts: dict[str, dict[torch.fx.Node, None]] = {}
        for node, tensor in self.known.items():
            leads = (*self.known, *[user for user in node.users if base_name(user) in DIVIDED and all(
                each in self.known for each in user.users)])
            if any(user not in leads for user in node.users):
                parts.setdefault(tensor.base.leaf.name, {})[before_turns(node)] = None
        return {name: list(nodes) for name, nodes in parts.items() if self.are_apart(list(nodes)) and not self.count_tokens(list(nodes))}

    def count_tokens(self, nodes: list[torch.fx.Node]) -> bool:
        """Whether parts of a table may have an entry for each token, in a program for one number of tokens: that number is their axis."""
        inputs = self.program.graph_signature.user_inputs
        taken = next((node for node in self.program.graph.nodes if node.op == "placeholder" and node.name in inputs), None)
        length = str(taken.meta["val"].shape[1]) if taken is not None else ""  # one that torch has fixed may still be a symbol's
        return length.isdigit() and any(size % int(length) == 0 for node in nodes for size in self.known[node].shape)

    def are_apart(self, nodes: list[torch.fx.Node]) -> bool:
        """Whether none is the whole parameter, and no two have entries in common."""
        tensors = [self.known[node] for node in nodes]
        if any(map(is_whole, tensors)):
            return False
        taken = np.zeros(tensors[0].base.leaf.array.numel() if len(nodes) > 1 else 0, bool)
        for tensor in tensors if len(nodes) > 1 else []:
            own = entries(tensor).entries(taken)
            if own.any():
                return False
            own[...] = True
        return True

    def replace(self, found: dict[str, list[torch.fx.Node]], stacks: set[str]) -> dict[str, Part]:
        """Makes these parts stored tensors, and gives their names. `stacks` are parameters whose rows are those of layers."""
        graph, signature, state = self.program.graph, self.program.graph_signature, self.program.state_dict
        made: dict[str, Part] = {}
        parts: dict[str, torch.Tensor] = {}
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        for node in (node for nodes in found.values() for node in nodes):
            part, shape = entries(self.known[node]), self.known[node].shape
            part = of_layer(part) if part.leaf.name in stacks else part
            name = part.name
            while name in made or (name in state and name != part.leaf.name):
                name += "_"
            made[name] = part
            placed = self.placed(graph, name, shape, part)
            specs[placed.name] = InputSpec(InputKind.PARAMETER, TensorArgument(name=placed.name), name)
            node.replace_all_uses_with(placed)
            numbers = part.leaf.array.detach()
            view = numbers.as_strided(part.dims, part.strides, numbers.storage_offset() + part.offset).reshape(shape)
            parts[name] = torch.nn.Parameter(view, requires_grad=False)
        for node in reversed(graph.nodes):
            if node.users or (node not in self.known and not (base_name(node) in DIVIDED and node.args[0] in self.known)):
                continue
            if node in self.own and self.known[node].base.leaf.name not in found:
                continue
            graph.erase_node(node)
            if specs.pop(node.name, None):
                state.pop(str(self.own[node].target), None)
        state.update(parts)
        signature.input_specs[:] = [specs[node.name] for node in graph.nodes if node.op == "placeholder"]
        self.program.graph_module.recompile()
        return made

    def placed(self, graph: torch.fx.Graph, name: str, shape: Any, part: Part) -> torch.fx.Node:
        first = next(node for node in self.own if self.known[node].base.leaf.name == part.leaf.name)
        with graph.inserting_before(first):
            node = graph.placeholder("p_" + "".join(letter if letter.isalnum() else "_" for letter in name) + "_part")
        value = first.meta["val"]
        with value.fake_mode:
            node.meta["val"] = torch.empty(tuple(shape), dtype=value.dtype, device=value.device)
        return node


def with_views(program: torch.export.ExportedProgram, shared: list[list[str]], roles: dict[str, str], length: int) -> dict[str, Part]:
    """Makes what `program` reads of parameters in parts stored tensors, in place. `shared` are the names of parameters that are one,
    and `roles` those of its inputs. Returns where each of them is in a parameter of the module."""
    views = Views(program, shared)
    found = views.find()
    known = {node: entries(tensor) for node, tensor in views.known.items()}
    stacks = stacked_layers(program, known, [known[node] for nodes in found.values() for node in nodes], roles, length)
    return views.replace(found, stacks)


def apply_patch(module: torch.nn.Module, patch: Any, program: Program) -> dict[str, torch.Tensor]:
    """What a patch of the program that was exported from `module` changes, by the names of its parameters: for
    `module.load_state_dict(…, strict=False)` or `torch.func.functional_call`. `patch` is a ctxc.Patch, a file that `ctxc patch`
    wrote, or the directory of an adapter that `ctxc distil` or `ctxc patch --joint` did. Raises ValueError for a patch of another program, or another module."""
    own = dict(module.named_parameters(remove_duplicate=False))
    sums = changed_leaves(patch, program, "torch", lambda name: own[name].detach().double().cpu().numpy() if name in own else None)
    return {name: torch.from_numpy(made).to(own[name]) for name, made in sums.items()}
