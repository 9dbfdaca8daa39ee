"""Compares the output of `ctxc compile --emit=cost --format=json` (read from the standard input) with a model's
stored tensors: the launches of a token add up to its totals; and a forward step reads all weights of the model,
except that it needs only one row of a table of tokens or positions, and only some of a mixture's experts."""

import argparse
import json
import math
import pathlib
import struct
import sys


def stored_bytes(folder, width):
    """The bytes of each tensor, and of one of its rows, with elements of `width` bytes."""
    with open(folder / "model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    shapes = {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}
    return {name: (width * math.prod(shape), width * math.prod(shape[1:]))
            for name, shape in shapes.items()}


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found}, expected {expected}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=4, help="bytes of a stored element")
    parser.add_argument("--table", action="append", default=[], help="is read by a row")
    parser.add_argument("--tied", action="append", default=[], help="is read by a row and whole")
    parser.add_argument("--experts", type=int, nargs=2, metavar=("TAKEN", "ALL"), default=(1, 1),
                        help="how many of a mixture's experts a token takes")
    arguments = parser.parse_args()
    cost = json.load(sys.stdin)

    tensors = stored_bytes(arguments.model, arguments.width)
    needed = sum(whole for whole, _ in tensors.values())
    experts = sum(whole for name, (whole, _) in tensors.items() if ".experts." in name)
    taken, of_all = arguments.experts
    needed -= experts - experts * taken // of_all
    for name in arguments.table:
        needed += tensors[name][1] - tensors[name][0]
    for name in arguments.tied:
        needed += tensors[name][1]
    expect("weights of a forward step", cost["tokens"]["forward"]["bytes_of"]["weights"], needed)

    for key, token in cost["tokens"].items():
        expect(f"{key}: launches", token["launches"], sum(token["times"].values()))
        expect(f"{key}: bytes", token["bytes"], sum(token["bytes_of"].values()))
        if key == "dual":
            continue  # what is of the reduced run alone sees fewer tokens
        for number in ("bytes", "operations"):
            total = sum(times * cost["kernels"][name][number]
                        for name, times in token["times"].items())
            expect(f"{key}: {number}", token[number], total)
    print(f"{needed} bytes of weights, as stored")


main()
