"""Every float16 is widened correctly, also for processors without an instruction for it. The test is an
embedding whose table holds all 65,536 numbers.
"""
import argparse
import array
import ctypes
import json
import math
import pathlib
import platform
import struct
import subprocess
import sys

from run import make_model


def embed(path):
    """The embeddings of tokens 0 to 255, in order."""
    library = ctypes.CDLL(str(path))
    positions = (ctypes.c_int32 * 256)(*range(256))
    table = (ctypes.c_uint16 * 65536)(*range(65536))
    out = array.array("f", bytes(4 * 65536))
    addresses = [ctypes.addressof(positions), ctypes.addressof(positions), out.buffer_info()[0],
                 ctypes.addressof(table)]
    size = library.ctxc_model_embed_workspace
    size.restype, size.argtypes = ctypes.c_int64, [ctypes.c_int64] * 3
    memory = ctypes.create_string_buffer(size(256, 0, 0) + 64)
    workspace = (ctypes.addressof(memory) + 63) // 64 * 64
    body_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
                                ctypes.c_void_p)(
        lambda _, count, body, data: body_type(body)(data, 0, count))
    call = struct.pack("<qqqQQQQ", 256, 0, 0,
                       ctypes.addressof(pointers := (ctypes.c_void_p * 4)(*addresses)), workspace,
                       ctypes.cast(parallel, ctypes.c_void_p).value, 0)
    status = library.ctxc_model_embed(call)
    assert status == 0 and len(pointers) == 4, status
    return out


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "model", "work"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    shipped = json.loads((pathlib.Path(options.model) / "config.json").read_text())
    make_model(work, shipped | {"hidden_size": 256, "vocab_size": 256})
    expected = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(65536)]
    targets = ["native"] + (["x86-64-v2"] if platform.machine() == "x86_64" else [])
    for target in targets:
        path = work / f"{target}.so"
        subprocess.run([options.ctxc, "compile", work, "--emit=shared", "--dtype", "f16",
                        "--target", target, "-o", path], check=True)
        for bits, (found, value) in enumerate(zip(embed(path), expected)):
            same = math.isnan(found) if math.isnan(value) else (
                found == value and math.copysign(1, found) == math.copysign(1, value))
            if not same:
                print(f"{target}: {bits:#06x} became {found}, expected {value}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
