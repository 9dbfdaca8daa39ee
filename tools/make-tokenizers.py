#!/usr/bin/env python3
"""Makes the small tokenizers under test/tokenizers, each with the results of the tokenizers package for
some texts.

  make-tokenizers.py test/tokenizers

Each OUT/NAME has a tokenizer.json, trained on the sentences below, and expected.json: for each text
its ids with and without special tokens, and the text that the latter decode to.
"""
import json
import sys
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

SENTENCES = """The king of the north went to the market, and the people of the market saw the king.
And it came to pass in those days that the people went up to the hill, and they sang there.
"Where is the king?", said the people; "he went to the hill", said the children of the market.
In the year 1234 the king saw 56 hills and 789 people; the naïve children's café was there.""".split("\n")
TEXTS = ["", " ", "The king went to the market.", "  two  spaces\n\nand\ttabs ", "naïve café Ärger",
         "DON'T they're 12345 6", "中文 ☃ 👩‍👩‍👧 עברית", "<s>the<|end|> king <mask>hill markets",
         "<0x41> ▁ ##ing Ġ", "x" * 40, "\u0000\u0085\u00a0\u3000", "e\u0301 \u1100\u1161 ﬁ",
         "zugabe zug"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def byte_level():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(vocab_size=320, show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def metaspace(vocab_size=330, special=("<unk>", "<s>", *BYTES), byte_fallback=True):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    return tokenizer, trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False,
                                          limit_alphabet=40, special_tokens=list(special))


def tiny():
    """Few enough ids for the checkpoints under test/goldens."""
    return metaspace(vocab_size=86, special=("<unk>", "<s>"), byte_fallback=False)


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer, trainers.WordPieceTrainer(vocab_size=120, show_progress=False,
                                                special_tokens=["[UNK]", "<s>"])


def make(path, made):
    tokenizer, trainer = made
    tokenizer.train_from_iterator(SENTENCES, trainer)
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] not in BYTES]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens(["<s>", AddedToken("<|end|>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True), AddedToken("market", single_word=True),
                          AddedToken("zug", single_word=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    path.mkdir(parents=True, exist_ok=True)
    (path / "tokenizer.json").write_text(
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False) + "\n")
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    expected = []
    for text in TEXTS:
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        expected.append({"text": text, "special": tokenizer.encode(text).ids, "plain": plain,
                         "decoded": tokenizer.decode(plain)})
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in expected)
    (path / "expected.json").write_text(f"[\n{lines}\n]\n")


def main():
    out = Path(sys.argv[1])
    for name, kind in {"byte-level": byte_level, "metaspace": metaspace, "tiny": tiny,
                       "word-piece": word_piece}.items():
        make(out / name, kind())


if __name__ == "__main__":
    main()
