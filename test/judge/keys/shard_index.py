"""model.safetensors.index.json, against transformers."""
import json

from key_values import ABSENT, USUAL
from weight_files import copied, ctxc, differ, judge, start  # noqa: F401

NAME = "model.safetensors.index.json"


def known():
    return ["weight_map", "metadata"]


def values(key):
    return USUAL + ([{"total_size": 7}, {"total_size": -1, "format": "x"}] if key == "metadata" else [])


def index_of(path):
    return path / NAME, json.loads((path / NAME).read_text())


def cases(key, value):
    path = copied("llama-sharded")
    file, index = index_of(path)
    index.pop(key, None)
    if value is not ABSENT:
        index[key] = value
    file.write_text(json.dumps(index))
    yield "llama-sharded", path


def names(key):
    """What the map leaves out is named by the tensors."""
    return ["weight_map", "file name"] if key == "weight_map" else []


def is_no_matter(key, value, reason):
    """transformers reads the sizes, of which nothing depends."""
    return key == "metadata"


def generated(choose):
    """Entries of the map that are taken away, are of other files, or are there twice."""
    path = copied("llama-sharded")
    file, index = index_of(path)
    tensors = sorted(index["weight_map"])
    files = sorted(set(index["weight_map"].values()))
    one = choose.choice(tensors)
    what = choose.choice(["away", "other", "missing", "outside", "none"])
    refusal = None
    if what == "away":
        index["weight_map"].pop(one)
    elif what == "other":
        index["weight_map"][one] = files[(files.index(index["weight_map"][one]) + 1) % len(files)]
        refusal = "is not in"
    elif what == "missing":
        index["weight_map"][one] = "model-00009-of-00009.safetensors"
        refusal = "it is missing"
    elif what == "outside":
        index["weight_map"][one] = "../model.safetensors"
        refusal = "points outside"
    file.write_text(json.dumps(index))
    return f"{one}: {what}", path, refusal
