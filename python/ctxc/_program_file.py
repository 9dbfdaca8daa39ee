"""Programs as ctxc's own files, which docs/program-file.md describes: one safetensors file with what is stored, and the program as
JSON in its metadata. Nothing here knows JAX or PyTorch."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from ctxc._program import Call, DType, Graph, Size, Unsupported, Value

FORMAT, VERSION, SUFFIX = "ctxc program", "1", ".ctxc"
TYPES = {"uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
         "bool": "BOOL", "bfloat16": "BF16", "uint32": "I64", "uint16": "I32", "complex64": "C64", "complex128": "C128"}
LARGEST_HEADER = 100_000_000  # of the safetensors format

def role_of(value: Value) -> str:
    return "position" if "position" in value.name else "token" if np.dtype(value.dtype).kind in "iu" else "activation"


def stored_type(value: Value, name: str) -> str:
    dtype = value.dtype if isinstance(value.dtype, str) else np.dtype(value.dtype).name
    if dtype not in TYPES:
        raise Unsupported(f"{name}: found numbers of type {dtype}, which ctxc does not read")
    return TYPES[dtype]


def has_numbers(value: Value) -> bool:
    return value.array is not None and (value.part is None or bool(value.part.leaf.known))


def bytes_of(value: Value) -> bytes:
    array = np.ascontiguousarray(value.array)
    return (array if array.dtype.name not in ("uint32", "uint16") else array.astype(f"int{16 * array.itemsize}")).tobytes()


def digest_of(stored: Sequence[Value]) -> str:
    """Of all stored numbers, as lib/Import computes it."""
    lines = [f"{value.name} {zlib.crc32(bytes_of(value)):08x}\n" for value in stored if has_numbers(value)]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def read_in(graph: Graph) -> list[Value]:
    used = {id(each) for call in graph.calls for each in call.operands()}
    return [value for value in graph.stored if id(value) in used]


class Writer:
    def __init__(self, size_of: Callable[[Size], int | str]):
        self.size_of = size_of
        self.names: dict[int, str] = {}
        self.traces: dict[str, int] = {}

    def type_of(self, value: Value, name: str) -> dict[str, Any]:
        return {"name": name, "type": stored_type(value, name), "sizes": [self.size_of(size) for size in value.dims]}

    def declared(self, value: Value, name: str) -> dict[str, Any]:
        self.names[id(value)] = name
        return self.type_of(value, name)

    def argument(self, argument: Any) -> dict[str, Any]:
        if isinstance(argument, Value):
            return {"tensor": self.names[id(argument)]} if id(argument) in self.names else {"stored": argument.name}
        if isinstance(argument, DType):
            return {"type": TYPES[argument]}
        if isinstance(argument, str):
            return {"text": argument}
        if isinstance(argument, (bool, np.bool_)):
            return {"flag": bool(argument)}
        if isinstance(argument, (int, np.integer)):
            return {"int": int(argument)}
        if isinstance(argument, float):
            return {"float": argument if math.isfinite(argument) else "nan" if math.isnan(argument) else "inf" if argument > 0 else "-inf"}
        if isinstance(argument, (list, tuple)):
            return {"list": [self.argument(each) for each in argument]}
        return {"none": True} if argument is None else {"size": self.size_of(argument)}

    def call(self, call: Call, names: Sequence[str], visible: Mapping[int, bool]) -> dict[str, Any]:
        made: dict[str, Any] = {"op": call.op if call.op.count(".") > 1 else f"aten.{call.op}",
                                "arguments": {name: self.argument(each) for name, each in call.arguments.items()},
                                "results": [self.declared(value, name) for value, name in zip(call.results, names)]}
        if call.layer:
            made["module"] = call.layer
        if call.trace:
            made["trace"] = self.traces.setdefault(call.trace, len(self.traces))
        if any(visible.get(id(value)) for value in call.results):
            made["visible"] = True
        return made

    def program(self, graph: Graph, results: Sequence[Value], stored: Sequence[Value], visible: Mapping[int, bool]) -> dict[str, Any]:
        read = {id(each) for call in graph.calls for each in call.operands()}
        inputs = [{**self.declared(value, value.name), "role": value.kind or role_of(value)} for value in graph.inputs]
        inputs = [each for each, value in zip(inputs, graph.inputs) if each["role"] != "position" or id(value) in read]
        calls, counts = [], Counter()  # type: tuple[list[Any], Counter[str]]
        for call in graph.calls:
            names = [value.name or f"{call.base}_{counts[call.base] + i}" for i, value in enumerate(call.results)]
            counts[call.base] += len(names)
            calls.append(self.call(call, names, visible))
        kept = []
        for value in stored:
            entry = {**self.type_of(value, value.name), "kind": value.kind or ("parameter" if is_trained(value) else "constant")}
            kept.append({**entry, "part": value.part.place} if value.part is not None else entry)
        return {"inputs": inputs, "stored": kept, "calls": calls, "results": [self.argument(value) for value in results],
                "traces": list(self.traces)}


def is_trained(value: Value) -> bool:
    return value.part is not None and np.dtype(value.dtype).kind not in "iub"


def write(graph: Graph, results: Sequence[Value], path: str | os.PathLike[str], size_of: Callable[[Size], int | str], visible: Mapping[int, bool],
          source: Mapping[str, Any], numbers: Mapping[str, Any], taken: str = "") -> None:
    """Writes the file, which appears completely or not at all. `visible` says of values, by id, whether they let a token see one before
    it; `source` is where the program comes from, which no reader needs; `taken`, which result the logits were taken from."""
    stored = read_in(graph)
    program = {**Writer(size_of).program(graph, results, stored, visible), "source": dict(source), **({"taken": taken} if taken else {})}
    metadata = {"format": FORMAT, "version": VERSION, "program": json.dumps(program), "numbers": json.dumps(numbers)}
    tensors = {value.name: (stored_type(value, value.name), value.dims, functools.partial(bytes_of, value)) for value in stored if has_numbers(value)}
    write_safetensors(tensors, path, metadata)


def write_safetensors(tensors: Mapping[str, tuple[str, Sequence[int], Callable[[], bytes]]], path: str | os.PathLike[str],
                      metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes tensors of a type, sizes and what gives their bytes."""
    widths = {"U8": 1, "I8": 1, "BOOL": 1, "I16": 2, "F16": 2, "BF16": 2, "I32": 4, "F32": 4, "I64": 8, "F64": 8}
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name, (dtype, sizes, _) in tensors.items():
        end = place + widths[dtype] * math.prod(sizes)
        header[name] = {"dtype": dtype, "shape": [int(size) for size in sizes], "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_HEADER:
        raise Unsupported(f"found a program of {len(text)} bytes, expected at most the {LARGEST_HEADER} that the format's header may have")
    path = Path(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name + ".tmp-", delete=False) as file:
        try:
            file.write(len(text).to_bytes(8, "little") + text)
            for _, _, give in tensors.values():
                file.write(give())
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def read_header(path: str | os.PathLike[str]) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and where its tensors begin. Raises ValueError for another file."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        text = file.read(size) if size <= LARGEST_HEADER else b""
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise ValueError(f"{os.fspath(path)}: is no safetensors file")
    return header, 8 + size


def read_program(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The program of a file. Raises ValueError for another file, and another version."""
    metadata = read_header(path)[0].get("__metadata__") or {}
    if metadata.get("format") != FORMAT or metadata.get("version") != VERSION:
        raise ValueError(f"{os.fspath(path)}: found a file of format {metadata.get('format')!r}, version {metadata.get('version')!r}; expected "
                         f"{FORMAT!r}, version {VERSION}, as this ctxc writes it")
    program: dict[str, Any] = json.loads(metadata["program"])
    return program
