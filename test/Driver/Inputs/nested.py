"""Writes files that are nested deeply into a folder: nested.py FOLDER"""
import json
import shutil
import struct
import sys
from pathlib import Path

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
DEPTH = 20000
out = Path(sys.argv[1])
deep = "[" * DEPTH + "]" * DEPTH


def aliases(first, following, count):
    return f"#a0 = {first}\n" + "".join(
        f"#a{i} = {following.replace('@', f'#a{i - 1}')}\n" for i in range(1, count))


def block(attributes=""):
    return f"""xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %W * %a {attributes} : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %x, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}}
"""


def expression(text):
    return f"module attributes {{test.a = affine_map<(d0) -> ({text})>}} {{}}\n"


(out / "aliases.mlir").write_text(aliases("[1]", "[@]", DEPTH) + block(f"{{a = #a{DEPTH - 1}}}"))
(out / "laughs.mlir").write_text(aliases("[1]", "[@, @]", 64) + block("{a = #a63}"))
(out / "minus.mlir").write_text(expression("-" * DEPTH + "d0"))
(out / "sum.mlir").write_text(expression("d0 * 3 + " * DEPTH + "d0"))
(out / "deepest.mlir").write_text(block("{a = " + "[" * 250 + "]" * 250 + "}"))
(out / "nested.json").write_text(deep)
for name in ("config", "tokenizer", "header", "index"):
    shutil.copytree(GOLDENS / "llama", out / name, dirs_exist_ok=True)
config = json.loads((GOLDENS / "llama" / "config.json").read_text())
(out / "config/config.json").write_text(json.dumps({**config, "x": 0})[:-2] + deep + "}")
(out / "tokenizer/tokenizer.json").write_text('{"a":' + deep + "}")
(out / "header/model.safetensors").write_bytes(
    struct.pack("<Q", len(deep) + 6) + b'{"a":' + deep.encode() + b"}")
(out / "index/model.safetensors").unlink()
(out / "index/model.safetensors.index.json").write_text('{"weight_map":' + deep + "}")
