"""tokenizer_config.json, against AutoTokenizer."""
import copy

import tokenizer_files
from key_values import USUAL
from tokenizer_files import ctxc, differ, judge, start, with_key, written  # noqa: F401

NAME = "tokenizer_config.json"
TOKEN = {"__type": "AddedToken", "content": "<tool>", "lstrip": True, "rstrip": False, "single_word": False, "normalized": False}
OWN = {
    "tokenizer_class": ["PreTrainedTokenizerFast", "TokenizersBackend", "BertTokenizer", "BertTokenizerFast"],
    "added_tokens_decoder": [{"700": TOKEN | {"special": True}}, {"x": TOKEN}],
    "additional_special_tokens": [["<tool>", "<mask>"], None], "extra_special_tokens": [["<tool>"], {"image_token": "<tool>"}],
    "model_specific_special_tokens": [{"image_token": "<tool>"}], "chat_template": ["{{ messages }}"],
    "model_max_length": [10, 1000000000000000019884624838656], "padding_side": ["left", "right"], "backend": ["tokenizers"],
    "truncation_side": ["left", "right"], "sp_model_kwargs": [{}, {"enable_sampling": True}],
    "model_input_names": [["input_ids", "attention_mask"]],
}
BASES = {"bytes": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"},
         "words": {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
                   "pad_token": "[PAD]", "mask_token": "[MASK]"}}
# Those that a class of its own reads.
OF_CLASSES = ["do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space", "tokenizer_class",
              "split_special_tokens", "add_bos_token", "legacy"]


def known():
    """Those of the base class, by its documentation."""
    return ["model_max_length", "padding_side", "truncation_side", "chat_template", "model_input_names",
            "clean_up_tokenization_spaces*", "split_special_tokens", "extra_special_tokens", "add_bos_token", "add_eos_token",
            "add_prefix_space", "added_tokens_decoder", "response_template", "chat_control_tokens", "backend", "errors"]


def values(key):
    return USUAL + OWN.get(key, [])


def cases(key, value):
    for base, config in BASES.items():
        if base == "bytes" or key in OF_CLASSES:
            files = {"tokenizer_config.json": with_key(config, key, value)}
            yield base, written(tokenizer_files.bases[base], files)


def is_no_matter(key, value, reason):
    """What only lengths, batches, and text from ids would be made with; and null, which is as good as no key."""
    return value is None or key in ("model_max_length", "max_len", "model_input_names", "chat_template", "chat_control_tokens", "stride",
                   "max_length", "padding", "truncation", "truncation_strategy", "pad_to_multiple_of", "pad_token_type_id",
                   "auto_map", "name_or_path", "response_template", "files_loaded", "init_inputs", "verbose", "use_fast",
                   "vocab_file", "padding_side", "truncation_side", "local_files_only", "is_local", "errors",
                   "processor_class", "tokenizer_type", "never_split")


def of_llama(choose):
    """Llama's class beside a file whose parts are not the class's."""
    content = copy.deepcopy(tokenizer_files.bases["pieces"])
    content["model"].update(byte_fallback=choose.random() < 0.7, fuse_unk=choose.random() < 0.5)
    content["pre_tokenizer"] = choose.choice([None, {
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": choose.choice(["always", "first", "never"]),
        "split": choose.random() < 0.5}])
    if choose.random() < 0.3:
        content["normalizer"] = {"type": "Prepend", "prepend": "▁"}
    config = {"tokenizer_class": choose.choice(["LlamaTokenizer", "LlamaTokenizerFast"]), "bos_token": "<s>",
              "eos_token": "</s>", "unk_token": "<unk>"}
    for key in ("legacy", "add_prefix_space", "add_bos_token", "add_eos_token"):
        if choose.random() < 0.5:
            config[key] = choose.random() < 0.5
    files = {"tokenizer_config.json": config}
    if choose.random() < 0.3:
        files["config.json"] = {"model_type": "llama", "bos_token_id": 1, "eos_token_id": 2}
    return str(files), written(content, files), None


def generated(choose):
    if choose.random() < 0.5:
        return of_llama(choose)
    config = dict(BASES["bytes"])
    for key, some in {"add_bos_token": [True, False], "add_eos_token": [True, False], "split_special_tokens": [True, False],
                      "additional_special_tokens": [["<tool>"], ["<mask>", "<|im_end|>"]], "pad_token": ["<pad>", None],
                      "image_token": ["<tool>"], "legacy": [True, False], "clean_up_tokenization_spaces": [True, False],
                      "do_lower_case": [True, False], "model_max_length": [512], "errors": ["replace"],
                      "extra_special_tokens": [{"boi_token": "<mask>"}, ["<tool>"]]}.items():
        if choose.random() < 0.4:
            config[key] = choose.choice(some)
    if "additional_special_tokens" in config and "extra_special_tokens" in config:
        del config["extra_special_tokens"]
    return str(config), written(tokenizer_files.bases["bytes"], {"tokenizer_config.json": config}), None
