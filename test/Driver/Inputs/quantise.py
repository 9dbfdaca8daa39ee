"""Stores the matrices of a checkpoint's layers in fp8, as DeepSeek-V3 does: quantise.py FROM TO."""
import array
import bisect
import json
import math
import pathlib
import struct
import sys

BLOCK = 24, 16  # rows and columns; neither divides the sizes of the goldens
# The numbers that the bytes 0 to 126 stand for.
NUMBERS = [i / 512 if i < 8 else (8 + i % 8) * 2.0 ** (i // 8 - 10) for i in range(127)]


def element(x):
    """The byte that stands for the number nearest to x."""
    at = bisect.bisect_left(NUMBERS, abs(x))
    if at == len(NUMBERS) or (at > 0 and abs(x) - NUMBERS[at - 1] < NUMBERS[at] - abs(x)):
        at -= 1
    return at | (0x80 if x < 0 else 0)


def quantise(numbers, rows, columns):
    """The elements, and a scale for each block."""
    elements, scales = bytearray(rows * columns), []
    for top in range(0, rows, BLOCK[0]):
        for left in range(0, columns, BLOCK[1]):
            block = [row * columns + column for row in range(top, min(top + BLOCK[0], rows))
                     for column in range(left, min(left + BLOCK[1], columns))]
            scale = max(abs(numbers[i]) for i in block) / 448
            scales.append(scale)
            for i in block:
                elements[i] = element(numbers[i] / scale)
    return bytes(elements), struct.pack(f"<{len(scales)}f", *scales)


def main(source, target):
    file = (source / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", file[:8])[0]
    header, data = {}, b""

    def add(name, dtype, shape, content):
        nonlocal data
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content

    for name, tensor in json.loads(file[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in tensor["data_offsets"])
        content, shape = file[begin:end], tensor["shape"]
        if name.endswith("_proj.weight") and len(shape) == 2:
            elements, scales = quantise(array.array("f", content), *shape)
            add(name, "F8_E4M3", shape, elements)
            add(name + "_scale_inv", "F32", [math.ceil(n / b) for n, b in zip(shape, BLOCK)], scales)
        else:
            add(name, tensor["dtype"], shape, content)
    text = json.dumps(header).encode()
    target.mkdir(parents=True)
    (target / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": BLOCK,
                                     "activation_scheme": "dynamic"}
    (target / "config.json").write_text(json.dumps(config))


main(*map(pathlib.Path, sys.argv[1:]))
