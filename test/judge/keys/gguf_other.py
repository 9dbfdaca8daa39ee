"""A GGUF file's keys that belong to no architecture, against llama.cpp's logits; models in several files."""
import gguf
from key_values import ABSENT
from gguf_files import VALUES, ctxc, differ, judge, start, written  # noqa: F401
import gguf_files

NAME = "GGUF, other keys"
OWN = {"general.type": ["model", "adapter", "mmproj"], "general.architecture": ["gemma2", "Llama"],
       "general.alignment": [32, 8, 7], "general.name": ["Phi 3", "x"], "split.no": [1], "split.count": [2, 1],
       "split.tensors.count": [3, 32], "general.file_type": [15]}


def known():
    """Those of the gguf package."""
    return [key for key in vars(gguf.Keys.General).values()
            if isinstance(key, str) and key.startswith("general.") and "{" not in key
            and not any(part in key for part in (".source.", ".license", ".dataset", ".base_model", ".sampling."))] + \
        list(vars(gguf.Keys.Split).values())[1:4]


def values(key):
    return VALUES + OWN.get(key, [])


def cases(key, value):
    yield "llama", written("llama-linear", {key: value})


def names(key):
    return {"general.architecture": ["GGUF file of type", "llama", "key"], "general.alignment": ["alignment", "offset"]}.get(key, [])


def is_no_matter(key, value, reason):
    """llama.cpp wants certain types of keys that change nothing."""
    return isinstance(value, (bool, int, float)) or key in ("general.file_type", "general.name")


def generated(choose):
    """A model in parts, all of them there or not."""
    parts = choose.randint(2, 4)
    for file in gguf_files.folder.glob("split*"):
        file.unlink()
    written("llama-linear", {}, gguf_files.folder / "split.gguf", split_max_tensors=-(-30 // parts))
    files = sorted(gguf_files.folder.glob("split-*.gguf"))
    what = choose.choice(["all", "all", "missing", "middle", "renamed"])
    if what == "missing":
        files[choose.randrange(1, len(files))].unlink()
        return f"{len(files)} parts, one is missing", files[0], "is missing: it is part"
    if what == "middle":
        return f"{len(files)} parts, another is named", files[choose.randrange(1, len(files))], "expected the first part"
    if what == "renamed":
        renamed = gguf_files.folder / "split-first.gguf"
        files[0].rename(renamed)
        return "the first has another name", renamed, "expected a name that ends with"
    return f"{len(files)} parts", files[0], None
