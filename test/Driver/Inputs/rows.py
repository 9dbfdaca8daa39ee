#!/usr/bin/env python3
"""Writes rows of a checkpoint's embedding table as a .npy file, without NumPy.

  rows.py CHECKPOINT TENSOR FACTOR TOKENS OUT.npy [--type f2|f4|f8] [--off X] [--cut BYTES]

Row i of the file is the row of TENSOR (F32 or BF16) for the i-th of TOKENS (such as 3,8,22), in float32, times
FACTOR ("sqrt": the square root of the width). X is added to every number, and the last BYTES are cut off.
"""
import argparse
import json
import math
import struct
from pathlib import Path


def rounded(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def table_of(checkpoint, name):
    data = (Path(checkpoint) / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + length])[name]
    begin = 8 + length + entry["data_offsets"][0]
    width = entry["shape"][1]

    def row(token):
        if entry["dtype"] == "F32":
            return struct.unpack_from(f"<{width}f", data, begin + 4 * width * token)
        halves = struct.unpack_from(f"<{width}H", data, begin + 2 * width * token)
        return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    return row, width


parser = argparse.ArgumentParser()
for name in ("checkpoint", "tensor", "factor", "tokens", "out"):
    parser.add_argument(name)
parser.add_argument("--type", default="f4")
parser.add_argument("--off", type=float, default=0)
parser.add_argument("--cut", type=int, default=0)
args = parser.parse_args()
row, width = table_of(args.checkpoint, args.tensor)
factor = rounded(math.sqrt(width) if args.factor == "sqrt" else float(args.factor))
tokens = [int(token) for token in args.tokens.split(",")]
numbers = [rounded(x * factor) + args.off for token in tokens for x in row(token)]
header = (f"{{'descr': '<{args.type}', 'fortran_order': False, "
          f"'shape': ({len(tokens)}, {width}), }}")
header += " " * (-(10 + len(header) + 1) % 64) + "\n"
body = struct.pack("<" + {"f2": "e", "f4": "f", "f8": "d"}[args.type] * len(numbers), *numbers)
Path(args.out).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                           + body[:len(body) - args.cut])
