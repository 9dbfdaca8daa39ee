"""The header of a safetensors file, against transformers."""
import json
import struct

from key_values import ABSENT, USUAL
from weight_files import copied, ctxc, differ, judge, start  # noqa: F401

NAME = "safetensors, the header"
TENSOR = "model.norm.weight"


def known():
    return ["__metadata__", "dtype", "shape", "data_offsets"]


def values(key):
    return USUAL + {"__metadata__": [{"format": "pt"}, {"format": "pt", "x": "y"}, {"format": "tf"}],
                    "dtype": ["F16", "I32", "F32"], "shape": [[54], [2, 27], [53]]}.get(key, [])


def changed(change):
    path = copied("llama")
    file = path / "model.safetensors"
    data = file.read_bytes()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])
    return path


def cases(key, value):
    def change(header):
        of = header if key == "__metadata__" else header[TENSOR]
        of.pop(key, None)
        if value is not ABSENT:
            of[key] = value

    yield "llama", changed(change)


def names(key):
    return ["header", "data_offsets", "norm", TENSOR]


def is_no_matter(key, value, reason):
    """Which program's numbers they are, transformers wants to know."""
    return key == "__metadata__"


def generated(choose):
    """Texts in the metadata, and further keys of a tensor."""
    kind = choose.choice(["texts", "numbers", "tensor"])

    def change(header):
        if kind == "tensor":
            header[choose.choice([name for name in header if name != "__metadata__"])]["strides"] = [1]
        else:
            header["__metadata__"] = {"format": "pt", **{f"key{i}": "x" * i if kind == "texts" else i for i in range(choose.randint(1, 9))}}

    return kind, changed(change), {"texts": None, "numbers": "not a string", "tensor": "strides"}[kind]
