"""special_tokens_map.json, against AutoTokenizer."""
import tokenizer_files
from key_values import ABSENT, USUAL
from tokenizer_config import TOKEN
from tokenizer_files import ctxc, differ, judge, start, written  # noqa: F401

NAME = "special_tokens_map.json"
ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]


def known():
    return ["*_token", "additional_special_tokens"]


def values(key):
    return USUAL + ["<s>", "<tool>", TOKEN, ["<tool>", "<mask>"]]


def cases(key, value):
    yield "bytes", written(tokenizer_files.bases["bytes"], {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"},
        "special_tokens_map.json": {} if value is ABSENT else {key: value}})


def is_no_matter(key, value, reason):
    """An object is a list by name elsewhere."""
    return value == {}


def generated(choose):
    tokens = {role: choose.choice(["<s>", "</s>", "<tool>", "<mask>"]) for role in choose.sample(ROLES, 3)}
    if choose.random() < 0.5:
        tokens["additional_special_tokens"] = choose.sample(["<tool>", "<mask>", "<|im_end|>"], 2)
    return str(tokens), written(tokenizer_files.bases["bytes"], {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}, "special_tokens_map.json": tokens}), None
