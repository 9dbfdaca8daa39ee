"""Compares the numbers of two safetensors files."""
import array
import json
import math

import mpi


def tensors(path):
    """The float32 tensors of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            found[name] = array.array("f", data[begin:end])
    return found


def check_close(what, one, several, of_norm):
    """Every tensor within 1e-4: of its norm, or of each entry. The change of a scale or a bias is a quotient or a
    difference of values, which rounding changes more."""
    expected, found = tensors(one), tensors(several)
    if not expected or expected.keys() != found.keys():
        mpi.fail(f"{what}: has {sorted(found)}, expected {sorted(expected)}")
    for name, numbers in expected.items():
        apart = [a - b for a, b in zip(numbers, found[name], strict=True)]
        error = math.hypot(*apart) if of_norm else max(map(abs, apart))
        allowed = 1e-4
        if of_norm:
            is_factor = name.endswith((".u", ".v"))
            allowed = math.hypot(*numbers) * (1e-4 if is_factor else 3e-4) + (0 if is_factor else 1e-5)
        if not error <= allowed:
            mpi.fail(f"{what}: {name} is {error} apart")
