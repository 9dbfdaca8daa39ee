"""Writes a program as the .pt2 file that ctxc reads: torch.export's graph in JSON, and stored tensors. Without torch."""

from __future__ import annotations

import hashlib
import json
import linecache
import math
import os
import re
import tempfile
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

import numpy as np

from ctxc._program import Call, DType, Graph, Indices, Size, Unsupported, Value, product
from ctxc.jax import _jax_internals as internals

DTYPES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "bool": 12, "bfloat16": 13,
          "uint32": 5, "uint16": 4}
CPU = {"type": "cpu", "index": None}
HIDDEN = -1e4  # below it an entry of an additive mask hides a token


def role_of(value: Value) -> str:
    return "position" if "position" in value.name else "token" if value.dtype.kind in "iu" else "activation"


class Writer:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.names: dict[int, str] = {}
        self.values: dict[str, Any] = {}
        self.symbols: dict[str, str] = {}

    def size(self, size: Size) -> dict[str, Any]:
        if isinstance(size, (int, np.integer)):
            return {"as_int": int(size)}
        at = [internals.at_tokens(size, n) for n in (64, 65, 66)]
        slope, offset = at[1] - at[0], at[0] - 64 * (at[1] - at[0])
        if at[2] - at[1] != slope:
            raise Unsupported(f"found the size {size}, expected one that grows with the number of tokens alone")
        text = "Symbol('t')" if slope == 1 else f"Mul(Integer({slope}), Symbol('t'))"
        text = f"Add({text}, Integer({offset}))" if offset else text
        return {"as_expr": {"expr_str": text, "hint": {"as_int": internals.at_tokens(size, self.graph.length)}}}

    def symbol(self, size: Size) -> dict[str, Any]:
        written = self.size(size)
        if "as_int" in written:
            return written
        return {"as_name": self.symbols.setdefault(json.dumps(written), f"size_{len(self.symbols)}")}

    def argument(self, argument: Any) -> dict[str, Any]:
        tensor: Callable[..., Any] = lambda value: {"name": self.names[id(value)]}
        if isinstance(argument, Value):
            return {"as_tensor": tensor(argument)}
        if isinstance(argument, DType):
            return {"as_scalar_type": DTYPES[argument]}
        if isinstance(argument, str):
            return {"as_string": argument}
        if isinstance(argument, (bool, np.bool_)):
            return {"as_bool": bool(argument)}
        if isinstance(argument, (int, np.integer)):
            return {"as_int": int(argument)}
        if isinstance(argument, float):
            named = "NaN" if math.isnan(argument) else "Infinity" if argument > 0 else "-Infinity"
            return {"as_float": argument if math.isfinite(argument) else named}
        if isinstance(argument, Indices):
            return {"as_optional_tensors": [{"as_tensor": tensor(each)} for each in argument]}
        if isinstance(argument, (list, tuple)):
            if argument and isinstance(argument[0], Value):
                return {"as_tensors": [tensor(each) for each in argument]}
            if all(isinstance(each, (int, np.integer)) for each in argument):
                return {"as_ints": [int(each) for each in argument]}
            return {"as_sym_ints": [self.symbol(each) for each in argument]}
        return {"as_sym_int": self.symbol(argument)}

    def declare(self, value: Value, name: str) -> dict[str, str]:
        self.names[id(value)] = name
        if value.dtype.name not in DTYPES:
            raise Unsupported(f"{name}: found numbers of type {value.dtype}, which ctxc does not read")
        self.values[name] = {"dtype": DTYPES[value.dtype.name], "sizes": [self.size(size) for size in value.dims], "requires_grad": False,
                             "device": CPU, "strides": [], "storage_offset": {"as_int": 0}, "layout": 7}
        return {"name": name}

    def node(self, call: Call, names: Sequence[str]) -> dict[str, Any]:
        inputs = [{"name": name, "arg": self.argument(argument), "kind": 1} for name, argument in call.arguments.items()]
        outputs = [{"as_tensor": self.declare(value, name)} for value, name in zip(call.results, names)]
        place, namespace = call.place, "ctxc" if call.base == "linear_attention" else "aten"
        text = linecache.getline(place.file, place.line).strip() if place.file else ""
        trace = f'File "{place.file}", line {place.line}, in {place.function}\n    {text}' if place.file else ""
        return {"target": f"torch.ops.{namespace}.{call.op}", "inputs": inputs, "outputs": outputs, "is_hop_single_tensor_return": None,
                "metadata": {"nn_module_stack": f"L__self__,{call.layer},jax" if call.layer else "", "stack_trace": trace}}

    def model(self, result: Value, stored: Sequence[Value]) -> dict[str, Any]:
        specs: list[Any] = []
        for i, value in enumerate(stored):
            tensor = self.declare(value, f"s{i}_" + re.sub(r"\W", "_", value.name))
            specs.append({"parameter": {"arg": tensor, "parameter_name": value.name}} if is_trained(value) else
                         {"buffer": {"arg": tensor, "buffer_name": value.name, "persistent": False}})
        specs += [{"user_input": {"arg": {"as_tensor": self.declare(value, value.name)}}} for value in self.graph.inputs]
        nodes, counts = [], Counter()  # type: tuple[list[Any], Counter[str]]
        for call in self.graph.calls:
            names = [f"{call.base}_{counts[call.base] + i}" for i in range(len(call.results))]
            counts[call.base] += len(names)
            nodes.append(self.node(call, names))
        output = {"as_tensor": {"name": self.names[id(result)]}}
        graph = {"inputs": [], "outputs": [output], "nodes": nodes, "tensor_values": self.values, "sym_bool_values": {},
                 "sym_int_values": {name: json.loads(text) for text, name in self.symbols.items()}}
        signature = {"input_specs": specs, "output_specs": [{"user_output": {"arg": output}}]}
        return {"graph_module": {"graph": graph, "signature": signature, "module_call_graph": []}, "opset_version": {"aten": 10},
                "range_constraints": {}, "schema_version": {"major": 8, "minor": 0}, "torch_version": "none"}


def is_trained(value: Value) -> bool:
    return value.part is not None and value.dtype.kind not in "iub"


def has_numbers(value: Value) -> bool:
    return value.part is None or bool(value.part.leaf.known)


def digest_of(stored: Sequence[Value]) -> str:
    """Of all stored numbers, as lib/Import computes it."""
    lines = [f"{value.name} {zlib.crc32(value.array.tobytes()):08x}\n" for value in stored if value.array is not None and has_numbers(value)]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def read_in(graph: Graph) -> list[Value]:
    used = {id(each) for call in graph.calls for each in call.operands()}
    return [value for value in graph.stored if id(value) in used]


def write(graph: Graph, result: Value, path: str | os.PathLike[str], note: dict[str, Any], numbers: dict[str, Any]) -> None:
    """Writes the file. It appears completely or not at all."""
    writer, stored = Writer(graph), read_in(graph)
    model = writer.model(result, stored)
    visible = {writer.names[id(value)]: lets for value, lets in visible_masks(graph)}
    parameters = {value.name: value.part.place for value in stored if value.part is not None}
    note = {"format": 1, "framework": "jax", "inputs": {value.name: role_of(value) for value in graph.inputs}, "tokens": graph.length,
            "shared": [], "visible": visible, "parameters": parameters, **note}
    root, path = re.sub(r"\.pt2$", "", Path(path).name), Path(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name + ".tmp-", delete=False) as file:
        try:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                entries = {}
                for i, value in enumerate(stored):
                    entries[value.name] = entry_of(value, f"weight_{i}")
                    assert value.array is not None
                    if has_numbers(value):
                        archive.writestr(f"{root}/data/weights/weight_{i}", value.array.tobytes())
                texts = {"data/weights/model_weights_config.json": {"config": entries}, "data/constants/model_constants_config.json":
                         {"config": {}}, "models/model.json": model, "extra/ctxc.json": note, "extra/ctxc.numbers.json": numbers}
                for name, content in texts.items():
                    archive.writestr(f"{root}/{name}", json.dumps(content))
                archive.writestr(f"{root}/byteorder", "little")
                archive.writestr(f"{root}/archive_format", "pt2")
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def entry_of(value: Value, name: str) -> dict[str, Any]:
    if has_numbers(value):
        value.array = np.ascontiguousarray(value.array).reshape(value.dims)
    strides = [{"as_int": int(product(value.dims[i + 1:]))} for i in range(len(value.dims))]
    meta = {"dtype": DTYPES[value.dtype.name], "sizes": [{"as_int": int(size)} for size in value.dims], "requires_grad": is_trained(value),
            "device": CPU if has_numbers(value) else {**CPU, "type": "meta"}, "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7}
    return {"path_name": name, "is_param": is_trained(value), "use_pickle": False, "tensor_meta": meta}


# What masks let a token see.

ENTRYWISE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
             "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or}


def computed(graph: Graph, value: Value, known: dict[int, Optional[np.ndarray]]) -> Optional[np.ndarray]:
    """A value of positions alone, for graph.length tokens; None where it is made of anything else."""
    if id(value) not in known:
        if value.call is None:
            known[id(value)] = np.arange(graph.length)[None] if role_of(value) == "position" and value.array is None else \
                value.array if value.part is None else None
        else:
            known[id(value)] = of_call(graph, value, value.call, known)
    return known[id(value)]


def of_call(graph: Graph, value: Value, call: Call, known: dict[int, Optional[np.ndarray]]) -> Optional[np.ndarray]:
    at: Callable[..., Any] = lambda size: internals.at_tokens(size, graph.length)
    given: dict[str, Any] = {name: computed(graph, each, known) if isinstance(each, Value) else each for name, each in call.arguments.items()}
    if any(each is None for each in given.values()):
        return None
    dims, base = tuple(map(at, value.dims)), call.base
    if base == "arange":
        return np.arange(dims[0])
    if base == "full":
        return np.full(dims, given["fill_value"])
    if base in ENTRYWISE:
        return np.asarray(ENTRYWISE[base](given["self"], given["other"]))
    if base == "view":
        return np.asarray(given["self"].reshape(dims))
    if base == "expand":
        return np.broadcast_to(given["self"], dims)
    if base == "permute":
        return np.asarray(given["self"].transpose(given["dims"]))
    if base == "where":
        return np.asarray(np.where(given["condition"], given["self"], given["other"]))
    if base == "bitwise_not":
        return np.asarray(~given["self"])
    return np.asarray(given["self"].astype(value.dtype)) if base == "_to_copy" else None


def visible_masks(graph: Graph) -> list[tuple[Value, bool]]:
    """For each value of (…, tokens, tokens) that is made of positions alone: whether it lets a token see one before it."""
    found: list[tuple[Value, bool]] = []
    known: dict[int, Optional[np.ndarray]] = {}
    for call in graph.calls:
        for value in call.results:
            if value.data or len(value.dims) < 2 or not all(graph.counts_tokens(size) for size in value.dims[-2:]):
                continue
            array = computed(graph, value, known)
            if array is not None and array.shape[-2:] == (graph.length, graph.length):
                row = array.reshape(-1, graph.length)[-1]
                hidden = row < HIDDEN if row.dtype.kind not in "iub" else row == 0
                found.append((value, bool((hidden[:-1] == hidden[-1]).any())))
    return found
