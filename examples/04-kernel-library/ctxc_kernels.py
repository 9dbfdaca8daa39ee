"""How a Python program calls a kernel library: ctypes and the manifest beside it, nothing else.

Arrays are NumPy's or PyTorch's, with rows without gaps; bfloat16 in NumPy is uint16.
"""
import ctypes
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ABI_VERSION = 2
GOOD, INEXACT, WRONG_CPU = 0, 1, -1
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64,
          "bf16": np.uint16, "f16": np.float16, "address": np.int64}

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, BODY, ctypes.c_void_p)


class Call(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int64), ("visible", ctypes.c_int64 * 2),
                ("arguments", ctypes.POINTER(ctypes.c_void_p)), ("workspace", ctypes.c_void_p),
                ("parallel_for", PARALLEL_FOR), ("parallel_context", ctypes.c_void_p)]


def address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def is_dense(array):
    return array.is_contiguous() if hasattr(array, "data_ptr") else array.flags.c_contiguous


class Kernels:
    def __init__(self, path, threads=1):
        path = Path(path).resolve()
        self.manifest = json.loads(path.with_suffix(".json").read_text())
        self.library = ctypes.CDLL(str(path))
        refusal = self.library[self.manifest["refusal"]]
        refusal.restype = ctypes.c_char_p
        if reason := refusal(ABI_VERSION):
            raise RuntimeError(f"{path}: {reason.decode()}")
        self.arguments = {k["name"]: k["arguments"] for k in self.manifest["kernels"]}
        self.threads, self.pool = threads, ThreadPoolExecutor(threads)
        self.parallel_for = PARALLEL_FOR(self.run_ranges)

    def run_ranges(self, _, count, body, data):
        """A range for each thread: ctypes gives up the interpreter's lock while a body runs."""
        cuts = [count * i // self.threads for i in range(self.threads + 1)]
        list(self.pool.map(lambda i: body(data, cuts[i], cuts[i + 1]), range(self.threads)))

    def call(self, name, rows, visible, arrays):
        """Calls a kernel with arrays by their identifiers. Makes those it writes where they are
        missing, and returns (status, all arrays)."""
        sizes = {"S": rows, "visible[0]": visible[0], "visible[1]": visible[1]}
        arrays = dict(arrays)
        for argument in self.arguments[name]:
            identifier, dtype = argument["identifier"], DTYPES[argument["type"]]
            shape = [sizes.get(size, size) for size in argument["shape"]]
            if identifier not in arrays and argument["access"] in ("write", "add"):
                arrays[identifier] = np.zeros(shape, dtype)
            array = arrays[identifier]
            if (list(array.shape) != shape or array.itemsize != np.dtype(dtype).itemsize
                    or not is_dense(array)):
                raise ValueError(f"{name}: {identifier} is {array.dtype} {list(array.shape)}, "
                                 f"expected {argument['type']} {shape}, row by row")
        pointers = (ctypes.c_void_p * len(self.arguments[name]))(
            *(address(arrays[argument["identifier"]]) for argument in self.arguments[name]))
        size = self.library[name + "_workspace"]
        size.restype, size.argtypes = ctypes.c_int64, [ctypes.c_int64] * 3
        memory = np.empty(size(rows, *visible) + 64, np.uint8)
        workspace = (memory.ctypes.data + 63) // 64 * 64
        call = Call(rows, (ctypes.c_int64 * 2)(*visible), pointers, workspace, self.parallel_for)
        status = self.library[name](ctypes.byref(call))
        if status == WRONG_CPU:
            raise RuntimeError(f"{name}: this machine lacks what the code needs")
        return status, arrays


class Step:
    """A layer of the model, or one of its ends: kernels with their parameters and settings.

    `parameters` gives an array for a stored name."""

    def __init__(self, kernels, step, parameters):
        self.kernels, self.names = kernels, step["kernels"]
        self.layer = step.get("layer")
        self.bound = {}
        for name in step["kernels"].values():
            for argument in kernels.arguments[name]:
                identifier, stored = argument["identifier"], argument.get("name")
                if argument["kind"] == "param":
                    self.bound[identifier] = parameters(step["parameters"][stored])
                elif argument["kind"] == "bank":
                    self.bound[identifier] = self.bank(
                        step["parameters"][stored], argument["shape"][0], parameters)
                elif argument["kind"] == "setting":
                    self.bound[identifier] = np.array(
                        step["settings"][stored], DTYPES[argument["type"]]
                    ).reshape(argument["shape"])

    def bank(self, stored, count, parameters):
        """The addresses of the experts' matrices: each a tensor, with its number for *, or all one."""
        slices = [parameters(stored.replace("*", str(i))) if "*" in stored
                  else parameters(stored)[i] for i in range(count)]
        return np.array([address(matrix) for matrix in slices], np.int64)

    def __call__(self, phase, positions, visible, arrays):
        """`phase` is plain, dual or applied."""
        rows = {"positions": positions, "tokens": np.zeros(len(positions), np.int32)}
        return self.kernels.call(self.names[phase], len(positions), visible,
                                 self.bound | rows | arrays)

    def states(self, phase):
        """The arguments that are states, each as (identifier, stream, shape of a token)."""
        return [(a["identifier"], a["stream"], a["shape"][1:])
                for a in self.kernels.arguments[self.names[phase]] if a["kind"] == "state"]

    def patch(self, phase):
        """The identifiers of its patch's parts, which dual writes and applied reads."""
        return [a["identifier"] for a in self.kernels.arguments[self.names[phase]] if "part" in a]
