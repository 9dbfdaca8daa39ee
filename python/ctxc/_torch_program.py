"""A program of torch.export as one of ctxc's own (_program.py)."""
from __future__ import annotations

import functools
import operator
import re
from typing import Any, Mapping, Optional, Sequence

import numpy as np
import sympy
import torch

from ctxc._axes import Part
from ctxc._program import Call, DType, Graph, Unsupported, Value

# Where and how a tensor lies in memory changes no number.
OF_MEMORY = (torch.device, torch.layout, torch.memory_format)


def size_of(size: Any) -> int | str:
    """A number, or the text of an expression: "Mul(2, s0)"."""
    return text_of(size.node.expr) if isinstance(size, torch.SymInt) else int(size)


@functools.lru_cache(maxsize=None)
def text_of(expression: Any) -> int | str:
    text = re.sub(r"Integer\((-?\d+)\)", r"\1", re.sub(r"Symbol\('(\w+)'[^)]*\)", r"\1", sympy.srepr(expression)))
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def numbers_of(tensor: torch.Tensor) -> Optional[np.ndarray]:
    """The bytes of a tensor's entries; None where it has no memory, or is of a type that files do not store."""
    if tensor.device.type == "meta" or tensor.is_complex():
        return None
    flat: np.ndarray = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return flat


class Reader:
    def __init__(self, program: torch.export.ExportedProgram, roles: Mapping[str, str], shared: Sequence[Sequence[str]],
                 parts: Mapping[str, Part], length: int):
        self.program, self.roles, self.parts = program, roles, parts
        self.one = {name: names[0] for names in shared for name in names}
        self.graph = Graph(None, length)
        self.known: dict[torch.fx.Node, Any] = {}
        self.stored: dict[str, Value] = {}

    def read(self) -> tuple[Graph, list[Value]]:
        signature = self.program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        for kept in signature.output_specs:
            if kept.kind.name != "USER_OUTPUT":
                raise Unsupported(f"the program has a result of kind {kept.kind.name.lower()}, which it keeps between calls; export the "
                                  "model without a cache")
        results: list[Value] = []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self.placeholder(node, specs[node.name])
            elif node.op == "call_function":
                self.called(node)
            elif node.op == "output":
                results = [self.known[each] for each in node.args[0] if isinstance(self.known.get(each), Value)]
        if not results:
            raise Unsupported("the program returns no tensor")
        return self.graph, results

    def placeholder(self, node: torch.fx.Node, spec: Any) -> None:
        value, kind = node.meta.get("val"), spec.kind.name
        if not isinstance(value, torch.Tensor):
            return
        if kind == "USER_INPUT":
            role = self.roles.get(node.name) or list(self.roles.values())[len(self.graph.inputs)]
            self.known[node] = Value(tuple(value.shape), name_of(value.dtype), data=True, name=node.name, kind=role)
            self.graph.inputs.append(self.known[node])
            return
        name, is_buffer = str(spec.target), kind == "BUFFER"
        kind = "parameter" if kind == "PARAMETER" else "buffer" if is_buffer and spec.persistent else "constant"
        one = self.one.get(name, name)
        made = Value(tuple(value.shape), name_of(value.dtype), name=one, kind=kind, part=self.parts.get(name))
        known = self.stored.setdefault(one, made)
        if known is not made:
            if (known.dims, known.dtype, known.kind == "parameter") != (made.dims, made.dtype, kind == "parameter"):
                raise Unsupported(f"{name} and {one} share memory, and are not one tensor; expected the same shape and kind")
        else:
            held = self.program.state_dict if name in self.program.state_dict else self.program.constants
            made.array = numbers_of(held[name]) if isinstance(held.get(name), torch.Tensor) else None
            self.graph.stored.append(made)
        self.known[node] = known

    def argument(self, argument: Any) -> Any:
        """As _program_file.py writes it."""
        if isinstance(argument, torch.fx.Node):
            return self.known.get(argument, argument.meta.get("val"))
        if isinstance(argument, (list, tuple)):
            return [self.argument(each) for each in argument]
        if isinstance(argument, torch.dtype):
            return DType(name_of(argument))
        return None if isinstance(argument, OF_MEMORY) else argument

    def called(self, node: torch.fx.Node) -> None:
        given: Any = node.target
        if given is operator.getitem and node.args[0] in self.known:
            self.known[node] = self.known[node.args[0]][node.args[1]]  # type: ignore[index]
            return
        value: Any = node.meta.get("val")
        several = isinstance(value, (list, tuple))
        values = list(value) if several else [value]
        if not any(isinstance(each, torch.Tensor) for each in values):
            return  # a size, which is in the types, or a check
        if not isinstance(given, torch._ops.OpOverload):
            self.expect_ops(node)
        schema = given._schema.arguments
        arguments = {each.name: self.argument(argument) for each, argument in zip(schema, node.args)}
        arguments |= {name: self.argument(argument) for name, argument in node.kwargs.items()}
        arguments = {name: argument for name, argument in arguments.items() if argument is not None}
        self.expect_known(node, arguments)
        call = Call(str(given), arguments, [], self.graph.place, lines=node.meta.get("stack_trace") or "")
        if modules := list((node.meta.get("nn_module_stack") or {}).values()):
            path = str(modules[-1][0])
            call.layer = "" if path.startswith("_empty_nn_module_stack") else path
        names: dict[Any, str] = {user.args[1]: user.name for user in node.users if user.target is operator.getitem}
        made = [Value(tuple(each.shape), name_of(each.dtype), True, call, names.get(i, f"{node.name}_{i}") if several else node.name)
                if isinstance(each, torch.Tensor) else None for i, each in enumerate(values)]
        call.results = [each for each in made if each is not None]
        self.known[node] = made if several else made[0]
        self.graph.calls.append(call)

    def expect_ops(self, node: torch.fx.Node) -> None:
        name = str(node.target) if not isinstance(node.target, torch._ops.HigherOrderOperator) else f"higher_order.{node.target}"
        line = next((line for line in reversed((node.meta.get("stack_trace") or "").splitlines()) if line.lstrip().startswith("File ")), "")
        found = re.match(r'\s*File "([^<"][^"]*)", line (\d+)', line)
        raise Unsupported(f"'{name}'{f' ({found[1]}:{found[2]})' if found else ''} runs other programs by what it reads, as branches and loops "
                          "do; expected calls of ops alone: write it without that, or export what it runs")

    @staticmethod
    def expect_known(node: torch.fx.Node, arguments: Mapping[str, Any]) -> None:
        def is_known(argument: Any) -> bool:
            if isinstance(argument, list):
                return all(map(is_known, argument))
            return argument is None or isinstance(argument, (Value, str, bool, int, float, torch.SymInt))
        for name, argument in arguments.items():
            if not is_known(argument):
                raise Unsupported(f"{node.target}: found a {type(argument).__name__} for argument {name!r}, expected tensors, numbers, flags, "
                                  "texts and lists of them")


def program_of(program: torch.export.ExportedProgram, roles: Mapping[str, str], shared: Sequence[Sequence[str]], parts: Mapping[str, Part],
               length: int) -> tuple[Graph, list[Value]]:
    """The calls of `program`, and its results. `shared` are names that are one tensor, `parts` where its parameters are in the module's
    own, and `length` the number of tokens that it was traced with. Raises Unsupported for what ctxc's own files cannot say."""
    return Reader(program, roles, shared, parts, length).read()
