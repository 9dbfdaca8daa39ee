"""Compares the ids that ctxc has for texts by a GGUF file's vocabulary with those of llama.cpp.

  gguf_vocabularies.py JUDGE-TOKENIZE LLAMA.CPP [--count N] [--kinds NAME…]

LLAMA.CPP is a folder with llama.so and, in models, the vocabularies that llama.cpp's own tests have, with their
texts (.inp) and ids (.out). Vocabularies of each kind are made here as well: byte pairs with every name that ctxc
knows for a split, sentencepiece's, word pieces, Unigram, each with the flags and ids that a file may have or lack.
Everything must be equal.
"""
import argparse
import itertools
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
from tokenizers import (AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers)

import texts
from llama_cpp import LlamaCpp

BYTES = [f"<0x{b:02X}>" for b in range(256)]
SYMBOLS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<tool>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "<unk>"]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
# Tokens of whole texts, so that a split that is missing shows.
LONG = {"vocab_size": 4000, "show_progress": False, "max_token_length": 12}


def byte_pairs(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **LONG))
    return tokenizer


def raw_pairs(corpus):
    """Tokens in UTF-8, with U+2581 for a space and bytes for rare characters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.train_from_iterator([line.replace("\n", "") for line in corpus], trainers.BpeTrainer(
        special_tokens=["<unk>"] + BYTES, limit_alphabet=500, **LONG))
    return tokenizer


def word_pieces(corpus):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(corpus, trainers.WordPieceTrainer(
        vocab_size=3000, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return tokenizer


def unigram(corpus):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(corpus, trainers.UnigramTrainer(
        vocab_size=8000, show_progress=False, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"]))
    return tokenizer


class Made:
    """A vocabulary as llama.cpp's converter writes it."""
    def __init__(self, model, tokenizer):
        tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in ("<s>", "</s>", "<|im_end|>")])
        tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
        content = json.loads(tokenizer.to_str())
        self.model, self.size = model, tokenizer.get_vocab_size(with_added_tokens=True)
        self.tokens = [tokenizer.id_to_token(i) for i in range(self.size)]
        self.kinds = [NORMAL] * self.size
        for token in content["added_tokens"]:
            self.kinds[token["id"]] = CONTROL if token["special"] else USER_DEFINED
        for i, token in enumerate(self.tokens):
            if token in BYTES:
                self.kinds[i] = BYTE
            if token in ("<unk>", "[UNK]"):
                self.kinds[i] = UNKNOWN
        self.merges = [" ".join(pair) for pair in content["model"].get("merges", [])]
        self.scores = [-float(i) for i in range(self.size)]
        if model == "t5":
            vocabulary = content["model"]["vocab"]
            self.scores = [score for _, score in vocabulary] + [0.0] * (self.size - len(vocabulary))
            for i, token in enumerate(self.tokens):  # the trainer may find a symbol in the texts, too
                if token in self.tokens[:i]:
                    self.tokens[i] = f"{token}#{i}"
        if model == "bert":
            self.tokens = [t if k != NORMAL else t[2:] if t.startswith("##") else "▁" + t
                           for t, k in zip(self.tokens, self.kinds)]

    def id(self, token):
        return self.tokens.index(token)

    def write(self, path, pre=None, ids=(), flags=(), kind=gguf.GGUFWriter, change=lambda file: None):
        """`change` gets the writer, of class `kind`, with all keys."""
        file = kind(path, "llama")
        file.add_tokenizer_model(self.model)
        if pre:
            file.add_tokenizer_pre(pre)
        file.add_token_list(self.tokens)
        file.add_token_types(self.kinds)
        if self.model in ("llama", "t5"):
            file.add_token_scores(self.scores)
        if self.merges and self.model == "gpt2":
            file.add_token_merges(self.merges)
        for name, id in dict(ids).items():
            file.add_uint32(f"tokenizer.ggml.{name}_token_id", id)
        for name, value in dict(flags).items():
            file.add_bool(f"tokenizer.ggml.{name}", value)
        change(file)
        file.write_header_to_file()
        file.write_kv_data_to_file()
        file.write_ti_data_to_file()
        file.close()


def split_names(program, made, folder):
    """Every name of a split that ctxc knows, as its message for another name lists them."""
    made.write(folder / "unknown", "unknown")
    message = run(program, folder / "unknown", [b""], folder)
    return re.search("known are (.*)", message).group(1).split(", ")


def variants(program, corpus, folder):
    """(name, maker of a file) of each kind, with what a file may say or not."""
    level, raw = Made("gpt2", byte_pairs(corpus)), Made("gpt2", raw_pairs(corpus))
    ends = {"bos": level.id("<s>"), "eos": level.id("</s>")}
    raw_ends = {"bos": raw.id("<s>"), "eos": raw.id("</s>")}
    for name in split_names(program, level, folder):
        isRaw = name in ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
        yield name, lambda path, name=name, isRaw=isRaw: (raw if isRaw else level).write(
            path, name, raw_ends if isRaw else ends)
    yield "no name", lambda path: level.write(path, None, ends)
    yield "no ids", lambda path: level.write(path, "gpt-2")
    for bos, eos in itertools.product((False, True), repeat=2):
        flags = {"add_bos_token": bos, "add_eos_token": eos}
        yield f"gpt-2 {flags}", lambda path, flags=flags: level.write(path, "gpt-2", ends, flags)
        yield f"no ids {flags}", lambda path, flags=flags: level.write(path, "llama-bpe", (), flags)
    spm = Made("llama", raw_pairs(corpus))
    yield "llama, no ids", lambda path: spm.write(path)
    for bos, eos, prefix in itertools.product((False, True), repeat=3):
        flags = {"add_bos_token": bos, "add_eos_token": eos, "add_space_prefix": prefix,
                 "remove_extra_whitespaces": prefix != bos}
        yield f"llama {flags}", lambda path, flags=flags: spm.write(
            path, None, {**raw_ends, "unknown": spm.id("<unk>")}, flags)
    bert = Made("bert", word_pieces(corpus))
    ids = {"bos": bert.id("[CLS]"), "seperator": bert.id("[SEP]"), "unknown": bert.id("[UNK]")}
    for lower in (None, False, True):
        flags = {} if lower is None else {"normalizer.lowercase": lower, "add_bos_token": lower}
        yield f"bert {flags}", lambda path, flags=flags: bert.write(path, None, ids, flags)
    t5 = Made("t5", unigram(corpus))
    for prefix, merge, bos in itertools.product((False, True), repeat=3):
        flags = {"add_space_prefix": prefix, "remove_extra_whitespaces": merge, "add_bos_token": bos}
        yield f"t5 {flags}", lambda path, flags=flags: t5.write(path, None, {"bos": t5.id("<s>")}, flags)


class Answers(list):
    """The ids of each line, with and without the tokens around it; `ends` are the tokens that end a text."""


def run(program, path, lines, folder):
    """The program's Answers, or its message."""
    packed, out = folder / "lines", folder / "answers"
    packed.write_bytes(b"".join(struct.pack("<I", len(line)) + line for line in lines))
    done = subprocess.run([program, path, packed, out], capture_output=True, text=True, errors="replace")
    if done.returncode:
        return done.stderr.strip()
    data, at, answers = out.read_bytes(), 0, Answers()
    for _ in lines:
        both = []
        for size in (4, 4, 1, 1, 1, 1):  # ids twice, three decoded texts, and the bytes of the tokens
            count, = struct.unpack_from("<I", data, at)
            if size == 4:
                both.append(list(struct.unpack_from(f"<{count}I", data, at + 4)))
            at += 4 + size * count
        answers.append(both)
    count, = struct.unpack_from("<I", data, at)
    answers.ends = list(struct.unpack_from(f"<{count}I", data, at + 4))
    return answers


def differences(found, expected, lines):
    """The number of texts that differ; the first few are printed."""
    if isinstance(found, str):
        print(f"  {found}")
        return 1
    differ = [(line, f, e) for line, f, e in zip(lines, found, expected) if f != e]
    for line, f, e in sorted(differ, key=lambda each: len(each[0]))[:2]:
        print(f"  {line.decode('utf-8', 'replace')!r}\n    expected {e}\n    found    {f}")
    return len(differ)


def judge(name, program, path, llama, lines, folder):
    vocabulary = llama.open(path)
    if not vocabulary:
        print(f"{name}: llama.cpp refuses it")
        return 1
    expected = [[vocabulary.ids(line, special) for special in (True, False)] for line in lines]
    ends = vocabulary.ends()
    vocabulary.close()
    found = run(program, path, lines, folder)
    bad = differences(found, expected, lines)
    if not isinstance(found, str) and found.ends != ends:
        print(f"  a text ends at {found.ends}, in llama.cpp at {ends}")
        bad += 1
    tokens = sum(len(plain) for _, plain in expected)
    print(f"{name}: {tokens} tokens, {bad} of {len(lines)} texts differ", flush=True)
    return bad


def shipped(path, program, folder):
    """A vocabulary's own texts and ids, which llama.cpp's tests have, made by the original tokenizers."""
    texts_of, ids_of = (path.with_name(path.name + end) for end in (".inp", ".out"))
    if not texts_of.exists():
        return 0
    lines = texts_of.read_bytes().split(b"\n__ggml_vocab_test__\n")
    expected = [list(map(int, line.split())) for line in ids_of.read_text().splitlines()]
    lines = lines[:len(expected)]
    found = run(program, path, lines, folder)
    if not isinstance(found, str):
        found = [plain for _, plain in found]
    bad = differences(found, expected, lines)
    print(f"{path.name}.out: {len(expected)} texts, {bad} differ", flush=True)
    return bad + (len(expected) < 40)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="JUDGE-TOKENIZE")
    parser.add_argument("llama_cpp", metavar="LLAMA.CPP", type=Path)
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=20251117)
    parser.add_argument("--kinds", nargs="+", default=[""])
    args = parser.parse_args()
    # llama.cpp reads broken UTF-8 in its own way, takes U+2581 in a text for a word's beginning, and may find the
    # spelling of a byte's token.
    lines = [line for line in texts.texts(args.root, args.count, args.seed, SYMBOLS)
             if valid(line) and not any(part in line for part in (b"\0", "▁".encode(), b"<0x"))]
    corpus = [line.decode() for line in lines[::2]][:2000]
    llama, bad, count = LlamaCpp(args.llama_cpp / "llama.so"), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for name, make in variants(args.program, corpus, folder):
            if any(kind in name for kind in args.kinds):
                make(folder / "vocabulary.gguf")
                bad += judge(name, args.program, folder / "vocabulary.gguf", llama, lines[:len(lines) // 5], folder)
                count += 1
        for path in sorted((args.llama_cpp / "models").glob("*.gguf")):
            if any(kind in path.name for kind in args.kinds):
                bad += shipped(path, args.program, folder)
                bad += judge(path.name, args.program, path, llama, lines, folder)
                count += 1
    print(f"{count} vocabularies, {bad} texts differ")
    return 1 if bad or not count else 0


def valid(line):
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
