"""Small GGUF files with changed metadata: ctxc's reference beside llama.cpp's logits."""
import atexit
import shutil
import tempfile
from pathlib import Path

import gguf
import gguf_families
import llama_cpp
import torch
from config_keys import TOKENS, Reader
from key_values import ABSENT

# llama.cpp keeps keys and values in 16 bits.
TOLERANCE = 0.02
VALUES = [ABSENT, True, False, 0, 1, 3, 0.5, "", "other", [], [1], [0.0, 0.0, 0.0], ["a", "b"]]
models = {}


def start(reader, library):
    global ctxc_reader, llama, folder
    ctxc_reader, llama = Reader(reader), llama_cpp.LlamaCpp(library)
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    torch.set_num_threads(1)


def kind_of(value):
    if isinstance(value, bool):
        return gguf.GGUFValueType.BOOL
    if isinstance(value, int):
        return gguf.GGUFValueType.UINT32 if value >= 0 else gguf.GGUFValueType.INT32
    return gguf.GGUFValueType.FLOAT32 if isinstance(value, float) else gguf.GGUFValueType.STRING


def put(writer, key, value):
    writer.kv_data[0].pop(key, None)
    if value is ABSENT:
        return
    if isinstance(value, list):
        kind = kind_of(value[0]) if value else gguf.GGUFValueType.STRING
        writer.kv_data[0][key] = gguf.GGUFValue(value, gguf.GGUFValueType.ARRAY, kind)
    else:
        writer.kv_data[0][key] = gguf.GGUFValue(value, kind_of(value))


class Writer(gguf.GGUFWriter):
    """The gguf package writes no empty arrays."""

    def _pack_val(self, value, vtype, add_vtype, sub_type=None):
        if vtype == gguf.GGUFValueType.ARRAY and len(value) == 0:
            return self._pack("I", vtype) + self._pack("I", sub_type) + self._pack("Q", 0)
        return super()._pack_val(value, vtype, add_vtype, sub_type)


def written(family, changes, path=None, settings=None, **options):
    """A file of the family with these keys changed, whose tokens are ids alone."""
    architecture, model_type, own = gguf_families.FAMILIES[family]
    key = family + repr(settings)
    if key not in models:
        models[key] = gguf_families.make_model(model_type, own | (settings or {}))
    path = path or folder / "model.gguf"
    writer = Writer(path, architecture, **options)
    gguf_families.write_keys(writer, architecture, models[key].config)
    writer.add_tokenizer_model("no_vocab")
    for name, value in changes.items():
        put(writer, name.replace("ARCH", architecture), value)
    gguf_families.write_tensors(writer, models[key], architecture)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return path


def ctxc(path):
    found, message = ctxc_reader.read(path)
    return (None, message) if found is None else (found[-1] if found.dim() == 2 else found, "")


def judge(path):
    found = llama.logits(path, TOKENS)
    return (None, "llama.cpp refuses it") if found is None else (torch.tensor(found, dtype=torch.float64), "")


def differ(found, expected):
    if found.shape != expected.shape:
        return f"{tuple(found.shape)} logits for {tuple(expected.shape)}"
    error = (found - expected).abs().max().item()
    return None if error <= TOLERANCE else f"logits differ by {error:.3g} from llama.cpp's"
