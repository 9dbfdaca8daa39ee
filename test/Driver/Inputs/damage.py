#!/usr/bin/env python3
"""damage.py CHECKPOINT OUT HOW [ARGUMENT]: writes a copy of a checkpoint with one thing wrong.

  truncate BYTES        model.safetensors loses its last bytes
  header N              its header says that it is N bytes long
  drop TENSOR           a tensor is missing
  transpose TENSOR      a tensor has its two dimensions exchanged
  nan TENSOR            a tensor's third element is NaN
  config KEY=JSON       a key of config.json has another value
  shard NAME            the index says that every tensor is in shard NAME
  remove FILE           a file is missing
"""

import json
import shutil
import struct
import sys
from pathlib import Path


def read(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), bytearray(data[8 + length:])


def write(path, header, body):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def drop(header, body, name):
    """Removes the tensor's bytes as well; otherwise the header would be wrong in another way."""
    begin, end = header.pop(name)["data_offsets"]
    for key, entry in header.items():
        if key != "__metadata__" and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [offset - (end - begin) for offset in entry["data_offsets"]]
    del body[begin:end]


def main(source, out, how, argument):
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(source, out)
    weights, config = Path(out) / "model.safetensors", Path(out) / "config.json"
    if how == "truncate":
        weights.write_bytes(weights.read_bytes()[:-int(argument)])
    elif how == "header":
        weights.write_bytes(struct.pack("<Q", int(argument)) + weights.read_bytes()[8:])
    elif how == "config":
        key, value = argument.split("=", 1)
        config.write_text(json.dumps(json.loads(config.read_text()) | {key: json.loads(value)}))
    elif how == "shard":
        index = Path(out) / "model.safetensors.index.json"
        content = json.loads(index.read_text())
        content["weight_map"] = {name: argument for name in content["weight_map"]}
        index.write_text(json.dumps(content))
    elif how == "remove":
        (Path(out) / argument).unlink()
    else:
        header, body = read(weights)
        if how == "drop":
            drop(header, body, argument)
        elif how == "transpose":
            header[argument]["shape"].reverse()
        elif how == "nan":
            begin = header[argument]["data_offsets"][0]
            body[begin + 8:begin + 12] = struct.pack("<f", float("nan"))
        else:
            sys.exit(__doc__)
        write(weights, header, body)


main(*sys.argv[1:])
