"""added_tokens.json, against AutoTokenizer: each key is a token."""
import tokenizer_files
from key_values import ABSENT, USUAL
from tokenizer_files import ctxc, differ, judge, start, written  # noqa: F401

NAME = "added_tokens.json"
TOKENS = ["<tool>", "<|im_end|>", "<mask>", "kings", "東京", "<new>", " x", "</s>"]


def known():
    return []


def values(key):
    return USUAL + [700, 701, -1, 1 << 40]


def directory(tokens, special=()):
    return written(tokenizer_files.bases["bytes"], {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast",
                                  "additional_special_tokens": list(special)},
        "added_tokens.json": tokens})


def cases(key, value):
    yield "bytes", directory({} if value is ABSENT else {key: value})


def generated(choose):
    tokens = choose.sample(TOKENS, choose.randint(1, 5))
    first = choose.choice([700, 1000])
    ids = [first + i for i in range(len(tokens))]
    choose.shuffle(ids)
    listed = dict(zip(tokens, ids))
    return str(listed), directory(listed, choose.sample(tokens, choose.randint(0, len(tokens)))), None
