"""tokenizer.json: each key of each part changed, against AutoTokenizer."""
import copy

import tokenizer_files
from config_keys import others
from key_values import ABSENT, USUAL
from tokenizer_files import ctxc, differ, judge, written  # noqa: F401

NAME = "tokenizer.json"
BASES = {"bytes": {"tokenizer_class": "PreTrainedTokenizerFast"}, "words": {"tokenizer_class": "PreTrainedTokenizerFast"}}
PARTS = [{"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}},
         {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated", "invert": False}},
         {"pre_tokenizer": {"type": "Punctuation", "behavior": "Isolated"}},
         {"pre_tokenizer": {"type": "Digits", "individual_digits": True}},
         {"normalizer": {"type": "Replace", "pattern": {"String": "k"}, "content": "K"}},
         {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": False}},
         {"normalizer": {"type": "Prepend", "prepend": "_"}}]


def start(tokenize):
    global paths
    tokenizer_files.start(tokenize)
    paths = {}


def known():
    return ["version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"]


def values(key):
    return USUAL


def contents():
    for base in BASES:
        yield base, tokenizer_files.bases[base]
    for part in PARTS:
        yield str(part), tokenizer_files.bases["bytes"] | part


def of(content):
    return written(content, {"tokenizer_config.json": BASES["bytes"]})


def cases(key, value):
    for base in BASES:
        content = dict(tokenizer_files.bases[base])
        content.pop(key, None)
        if value is not ABSENT:
            content[key] = value
        yield base, of(content)


def names(key):
    return {"model": ["vocab", "type"], "truncation": [], "padding": []}.get(key, [])


def is_no_matter(key, value, reason):
    """Nothing reads these for a text by itself; and the package wants each key of a part to be there, also where it says what it
    says elsewhere by its absence, or by null."""
    return value is None or key in ("truncation", "padding") or any(part in reason for part in ("missing field", "untagged enum", "KeyError: 'added"))


def walk(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            if path + (key,) not in (("model", "vocab"), ("added_tokens",)):
                yield path + (key,), value
                yield from walk(value, path + (key,))


def generated(choose):
    """A key of a part has another value, is taken away, or is one that no part has."""
    name, content = choose.choice(list(contents()))
    changed = copy.deepcopy(content)
    path, value = choose.choice([each for each in walk(content) if each[0][0] not in ("truncation", "padding", "version")])
    node = changed
    for key in path[:-1]:
        node = node[key]
    what = choose.choice(["other", "other", "unknown", "absent"])
    if what == "unknown":
        node["a_key_of_the_future"] = 1
        return f"{name}: {'.'.join(path[:-1])} has another key", of(changed), "a_key_of_the_future"
    new = choose.choice(others(path[-1], value) or [ABSENT]) if what == "other" else ABSENT
    node.pop(path[-1])
    if new is not ABSENT:
        node[path[-1]] = new
    return f"{name}: {'.'.join(path)} = {new}", of(changed), list(path)
