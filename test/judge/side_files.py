"""Compares ctxc's ids with those of transformers' AutoTokenizer where files beside the tokenizer say more about it.

  side_files.py JUDGE-TOKENIZE [--count N] [--seed N]

Directories are drawn, with a tokenizer.json or a tokenizer.model of Llama's class: tokens that only tokenizer_config.json, special_tokens_map.json or added_tokens.json have,
roles of tokens, ids with gaps, flags.
"""
import argparse
import io
import json
import random
import sys
import tempfile
from pathlib import Path

import sentencepiece
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import texts
from gguf_vocabularies import differences, run

NEW = ["<tool>", "<|call|>", "<both>", "Wort", "<mask>", "king of", "<|x|>"]
OLD = ["<s>", "</s>", "<|im_end|>"]
ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token"]


def trained(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken(t) for t in OLD])
    return json.loads(tokenizer.to_str())


# What the files say about a token, all of them the same.
FLAGS = {"<|im_end|>": {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}} | {t: {"lstrip": i % 3 == 1, "rstrip": i % 4 == 2, "single_word": t == "Wort", "normalized": False}
         for i, t in enumerate(NEW)}


def token(draw, content):
    """A special token as a file spells it: as a text, or with its flags."""
    if content in OLD or (draw.random() < 0.5 and not any(FLAGS[content].values())):
        return content
    return {"content": content, **FLAGS[content], "special": True, "__type": "AddedToken"}


def piece_model(corpus):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, vocab_size=900, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2, unk_id=0, bos_id=1,
        eos_id=2)
    return model.getvalue()


def write_pieces(draw, content, path):
    """A tokenizer.model of Llama's class."""
    (path / "tokenizer.model").write_bytes(content)
    (path / "config.json").write_text(json.dumps({"model_type": "llama", "bos_token_id": 1, "eos_token_id": 2}))
    config = {"tokenizer_class": draw.choice(("LlamaTokenizer", "LlamaTokenizerFast"))}
    for flag in ("legacy", "add_bos_token", "add_eos_token", "add_prefix_space"):
        if draw.random() < 0.5:
            config[flag] = draw.random() < 0.5
    if draw.random() < 0.5:
        config.update(bos_token="<s>", eos_token=token(draw, draw.choice(("</s>", "<|im_end|>"))))
    special = draw.sample(NEW + OLD[2:], 3)
    listed = [t for t in special if draw.random() < 0.7]
    if draw.random() < 0.5:
        config["added_tokens_decoder"] = {str(900 + i): {"content": t, **FLAGS[t], "special": True}
                                          for i, t in enumerate(listed)}
    else:
        (path / "added_tokens.json").write_text(json.dumps({t: 900 + i for i, t in enumerate(listed)}))
    (path / "tokenizer_config.json").write_text(json.dumps(config))


def write(draw, content, path):
    content = json.loads(json.dumps(content))
    size = max(content["model"]["vocab"].values()) + 1 + len(OLD)
    if draw.random() < 0.3:
        content["normalizer"] = {"type": "Lowercase"}
    if draw.random() < 0.3:  # an id with a gap
        content["added_tokens"].append({"id": size + draw.randint(60, 99), "content": "<gap>", "single_word": False,
                                        "lstrip": False, "rstrip": False, "normalized": False, "special": True})
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    special = draw.sample(NEW + OLD, 6)
    roles = dict(zip(draw.sample(ROLES, draw.randint(0, 4)), (token(draw, t) for t in special)))
    extra = [token(draw, t) for t in special[4:4 + draw.randint(0, 2)]]
    # Extra tokens with flags are special to transformers in some places, and not in others.
    config["split_special_tokens"] = draw.random() < 0.3 and all(isinstance(t, str) for t in extra)
    if draw.random() < 0.5:
        config.update(add_bos_token=draw.random() < 0.5, add_eos_token=draw.random() < 0.5)
    if draw.random() < 0.5:
        config.update(roles)
    else:
        (path / "special_tokens_map.json").write_text(json.dumps(
            {role: t for role, t in roles.items() if role != "image_token"}))
    if extra:
        config[draw.choice(("additional_special_tokens", "extra_special_tokens"))] = extra
    listed = draw.sample(NEW, draw.randint(0, 4))
    isSpecial = {t: t in special for t in listed}
    if draw.random() < 0.5:
        config["added_tokens_decoder"] = {str(size + 50 - i): {"content": t, **FLAGS[t], "special": isSpecial[t]}
                                           for i, t in enumerate(listed)}
    if draw.random() < 0.5:
        (path / "added_tokens.json").write_text(json.dumps(
            {t: size + 20 - i for i, t in enumerate(draw.sample(NEW, draw.randint(0, 3)))}))
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    (path / "tokenizer.json").write_text(json.dumps(content))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="JUDGE-TOKENIZE")
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20251117)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    lines = texts.texts(args.root, 60, args.seed, NEW + OLD + ["<gap>"])
    lines += [f"a{t} {t.upper()}b  {t} c".encode() for t in NEW + OLD + ["<gap>"]]
    corpus = [line.decode("utf-8", "replace") for line in lines]
    content, pieces = trained(corpus), piece_model(corpus)
    bad = 0
    for i in range(args.count):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name)
            (path / "model").mkdir()
            if i % 3 == 0:
                write_pieces(draw, pieces, path / "model")
            else:
                write(draw, content, path / "model")
            tokenizer = transformers.AutoTokenizer.from_pretrained(path / "model")
            expected = [[tokenizer(text).input_ids, tokenizer(text, add_special_tokens=False).input_ids]
                        for text in (line.decode("utf-8", "replace") for line in lines)]
            found = run(args.program, path / "model", lines, path)
            differ = differences(found, expected, lines)
            if differ:
                print(f"{i}:", *(f"\n  {file.name}: {file.read_text()}" for file in (path / "model").iterdir()
                                 if not file.name.startswith("tokenizer.")))
            bad += differ
    print(f"{args.count} directories, {bad} texts differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
