"""Writes a model and its weights into a folder: a matrix reads numbers of 1e-20, so that its patch is 1e20 times as large
as it is."""
import json
import os
import struct
import sys

TEXT = """
xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %up = xf.param "up" : tensor<2x4xf32>
  %u = xf.linear %up * %v : tensor<2x4xf32>, tensor<4xf32>
  %down = xf.param "down" : tensor<4x2xf32>
  %d = xf.linear %down * %u : tensor<4x2xf32>, tensor<2xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
xf.model @m {
  %E = xf.param "embed" : tensor<4x4xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<4x4xf32>, tensor<i32>
  %y = xf.layer @b(%x) at "" : (tensor<4xf32>) -> tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
"""
SHAPES = {"embed": (4, 4), "conv": (4, 3), "up": (2, 4), "down": (4, 2)}

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
header, data = {}, b""
for name, shape in SHAPES.items():
    size = 1e-20 if name == "up" else 1
    numbers = [size * ((7 * i * i + 3 * i) % 11 - 5) / 5 for i in range(shape[0] * shape[1])]
    raw = struct.pack(f"<{len(numbers)}f", *numbers)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
head = json.dumps(header).encode()
with open(os.path.join(folder, "model.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(head)) + head + data)
for name, text in {"model.mlir": TEXT, "config.json": "{}"}.items():
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
