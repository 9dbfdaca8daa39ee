"""Compares ctxc's ids and texts with those of the tokenizers package, on ten thousand texts.

  tokenizers_judge.py JUDGE-TOKENIZE [--root DIR] [--count N] [--seed N] [--kinds NAME…]

The tokenizers are trained here, one of each kind that models use; nothing is fetched. Those that
llama.cpp has a name for are read from a GGUF file too. Broken UTF-8 must be read as
bytes.decode("utf-8", "replace") reads it. Everything must be equal.
"""
import argparse
import io
import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sentencepiece
import transformers
import gguf
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

import texts

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
          r"|\s*[\r\n]|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
BYTES = [f"<0x{b:02X}>" for b in range(256)]
ADDED = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<mask>", "<tool>", "Wort", "<s>", "</s>",
         "<both>", "  <|im_end|>  ", "<mask> ", " <tool>", "Wortlaut", "ein Wort!", "<|im_start|"]


def byte_level(pre_tokenizer, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return tokenizer, trainer


def split(*expressions):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(e), "isolated") for e in expressions] +
        [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def fallback(**options):
    """A tokenizer in which characters that the vocabulary lacks become bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **options))
    trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False, limit_alphabet=200,
                                  special_tokens=["<unk>", "<s>", "</s>"] + BYTES)
    return tokenizer, trainer


def template(tokenizer, before, after=()):
    single = " ".join([*before, "$A", *after])
    pairs = [(token, tokenizer.token_to_id(token)) for token in {*before, *after}]
    return processors.TemplateProcessing(single=single, special_tokens=pairs)


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def gpt2_prefixed():
    tokenizer, trainer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer, trainer


def llama3():
    return byte_level(split(LLAMA3), ignore_merges=True)


def qwen2():
    tokenizer, trainer = byte_level(split(QWEN2))
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer, trainer


def o200k():
    return byte_level(split(O200K))


def deepseek():
    return byte_level(split(r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK))


def cl100k():
    return byte_level(split(CL100K))


def bloom():
    return byte_level(split(BLOOM))


def starcoder():
    return byte_level(pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)]))


def falcon():
    return byte_level(pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
         pre_tokenizers.Digits(individual_digits=False),
         pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))


def llama2():
    tokenizer, trainer = fallback()
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    return tokenizer, trainer


def gemma():
    tokenizer, trainer = fallback()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer, trainer


def mistral():
    tokenizer, trainer = fallback()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace("▁", prepend_scheme="first")])
    return tokenizer, trainer


def metaspace():
    tokenizer, trainer = fallback()
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    return tokenizer, trainer


def unknowns():
    """A tokenizer without byte fallback, with a suffix and a prefix, and with the other normal forms."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>",
                                     continuing_subword_prefix="@@"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.NFD(),
         normalizers.Replace(Regex(r"[\s\d]{2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_next"),
         pre_tokenizers.Split("o", "removed"), pre_tokenizers.Split(Regex("[aeiu]+"), "contiguous"),
         pre_tokenizers.Split(Regex(r"\w*b\w*"), "merged_with_previous", invert=True)])
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"],
                                  limit_alphabet=150, end_of_word_suffix="</w>",
                                  continuing_subword_prefix="@@")
    return tokenizer, trainer


def words():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=1500, show_progress=False, limit_alphabet=1000,
                                        special_tokens=["[UNK]"])
    return tokenizer, trainer


def bert(lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=lowercase)
    trainer = trainers.WordPieceTrainer(vocab_size=1500, show_progress=False, limit_alphabet=300,
                                        special_tokens=["[UNK]", "[CLS]", "[SEP]", "<s>", "</s>"])
    return tokenizer, trainer


def bert_cased():
    return bert(lowercase=False)


def word_level():
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.CharDelimiterSplit("_"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    return tokenizer, trainers.WordLevelTrainer(vocab_size=1500, show_progress=False, special_tokens=["[UNK]"])


def charsmap():
    """sentencepiece's own normalization (nmt_nfkc), which Unigram models have precompiled."""
    model, text = io.BytesIO(), iter(["a b c d e f g h i j k l m n o p q r s t u v w x y z"])
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=text, model_writer=model, vocab_size=30,
                                             hard_vocab_limit=False, minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def t5():
    """As T5, ALBERT, XLM-RoBERTa and others have it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    return tokenizer, trainers.UnigramTrainer(vocab_size=4000, show_progress=False, unk_token="<unk>",
                                              special_tokens=["<pad>", "</s>", "<unk>"])


def unigram_bytes():
    """Without words, and with bytes for what the vocabulary lacks."""
    tokenizer, _ = t5()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.FixedLength(length=40)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer, trainers.UnigramTrainer(vocab_size=4500, show_progress=False, unk_token="<unk>",
                                              special_tokens=["<unk>", "<s>", "</s>"] + BYTES)


def speech():
    """Characters, of which a model of speech gives many of each."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "|")
    tokenizer.decoder = decoders.CTC()
    return tokenizer, trainers.BpeTrainer(vocab_size=200, show_progress=False, limit_alphabet=150,
                                          special_tokens=["<pad>", "<unk>"])


KINDS = [gpt2, gpt2_prefixed, llama3, qwen2, o200k, deepseek, cl100k, bloom, starcoder, falcon, llama2, gemma,
         mistral, metaspace, unknowns, words, bert, bert_cased, word_level,
         t5, unigram_bytes, speech]


def make(kind, corpus, path):
    """Trains a tokenizer, adds tokens of every sort, writes tokenizer.json, and returns the tokenizer read from
    it."""
    tokenizer, trainer = kind()
    tokenizer.train_from_iterator(corpus, trainer)
    content = json.loads(tokenizer.to_str())
    # Byte tokens are ordinary tokens; they were special only for the trainer.
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] not in BYTES]
    if kind in (gpt2, llama2) and "merges" in content["model"]:
        content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    if content["model"]["type"] == "Unigram":
        content["model"]["byte_fallback"] = kind is unigram_bytes
        seen = set()  # the trainer may find a special token in the texts, too
        for pair in content["model"]["vocab"]:
            pair[0] += f"#{len(seen)}" if pair[0] in seen else ""
            seen.add(pair[0])
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens([AddedToken(t) for t in ("<s>", "</s>", "<|im_start|>", "<|endoftext|>")])
    tokenizer.add_special_tokens([AddedToken("<|im_end|>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([
        AddedToken("<mask>", lstrip=True, normalized=False), AddedToken("<tool>", rstrip=True),
        AddedToken("Wort", single_word=True), AddedToken("<both>", normalized=True, special=False),
        AddedToken("\u00c4\u0308rger", normalized=True), AddedToken("king of", normalized=True)])
    if kind is bert:
        tokenizer.post_processor = processors.BertProcessing(
            ("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]")))
    elif kind is starcoder:
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    elif kind is llama3:
        tokenizer.post_processor = processors.Sequence(
            [processors.ByteLevel(), template(tokenizer, ["<s>"])])
    elif kind in (llama2, gemma, mistral, bert_cased):
        tokenizer.post_processor = template(tokenizer, ["<s>"], ["</s>"] if kind is bert_cased else [])
    path.mkdir()
    (path / "tokenizer.json").write_text(json.dumps(
        json.loads(tokenizer.to_str()), ensure_ascii=kind in (gpt2, gemma)))
    if kind is not mistral:
        return Tokenizer.from_file(str(path / "tokenizer.json"))
    # transformers, too, takes the special tokens around a text from tokenizer.json.
    (path / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
         "add_bos_token": False, "add_eos_token": True}))
    return transformers.AutoTokenizer.from_pretrained(path).backend_tokenizer


def plain_added(kind, corpus):
    """A trained tokenizer whose added tokens are found by their text alone, as a GGUF file can express."""
    tokenizer, trainer = kind()
    tokenizer.train_from_iterator(corpus, trainer)
    if kind is qwen2:
        tokenizer.normalizer = None  # llama.cpp composes nothing
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in ("<s>", "<|im_end|>")])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    if kind is llama3:
        tokenizer.post_processor = template(tokenizer, ["<s>"])
    return tokenizer


def make_gguf(kind, corpus, path):
    """The same vocabulary in the form in which llama.cpp's converter writes it to a GGUF file."""
    tokenizer = plain_added(kind, corpus)
    content = json.loads(tokenizer.to_str())
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    kinds = [1] * size
    for token in content["added_tokens"]:
        kinds[token["id"]] = 3 if token["special"] else 4
    file = gguf.GGUFWriter(path, "llama")
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre({gpt2: "gpt-2", llama3: "llama-bpe", qwen2: "qwen2"}[kind])
    file.add_token_list([tokenizer.id_to_token(i) for i in range(size)])
    file.add_token_types(kinds)
    file.add_token_merges([" ".join(pair) for pair in content["model"]["merges"]])
    file.add_bos_token_id(tokenizer.token_to_id("<s>"))
    file.add_add_bos_token(kind is llama3)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_ti_data_to_file()
    file.close()
    return tokenizer


class Answers:
    """Reads the output of judge-tokenize."""
    def __init__(self, data):
        self.data, self.at = data, 0

    def ids(self):
        count, = struct.unpack_from("<I", self.data, self.at)
        ids = list(struct.unpack_from(f"<{count}I", self.data, self.at + 4))
        self.at += 4 + 4 * count
        return ids

    def text(self):
        return self.bytes().decode()

    def bytes(self):
        size, = struct.unpack_from("<I", self.data, self.at)
        found = self.data[self.at + 4:self.at + 4 + size]
        self.at += 4 + size
        return found


def judge(tokenizer, lines, answers):
    """The number of texts that differ; the first few are printed."""
    differ = tokens = 0
    added = set(tokenizer.get_added_tokens_decoder())
    repeats = '"CTC"' in tokenizer.to_str()  # whose tokens are not one after the other in the text
    for line in lines:
        text = line.decode("utf-8", "replace")
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        expected = [tokenizer.encode(text).ids, plain,
                    *(tokenizer.decode(part) for part in (plain, plain[1:], plain[:-1]))]
        found = [answers.ids(), answers.ids(), answers.text(), answers.text(), answers.text()]
        stands_for = answers.bytes()
        # Added tokens are as they are spelled, and the package drops them; unfinished characters it replaces one by one.
        if "\ufffd" not in expected[2] and not repeats and not added.intersection(plain):
            own = stands_for.decode("utf-8", "replace").strip(" ")
            # Of a text's first token a decoder may leave spaces out.
            shorter = [own.replace(" ", "", count) for count in range(1, own.count(" ") + 1)]
            expected.append(expected[2].strip(" "))
            found.append(next((each for each in shorter if each == expected[-1]), own))
        tokens += len(plain)
        if expected == found:
            continue
        differ += 1
        if differ <= 3:
            what = next(i for i in range(len(found)) if expected[i] != found[i])
            print(f"  {text!r}\n    expected {expected[what]!r}\n    found    {found[what]!r}")
            if what < 2:
                print("    expected", [tokenizer.id_to_token(i) for i in expected[what]],
                      "\n    found   ", [tokenizer.id_to_token(i) for i in found[what]])
    answers.ids()  # the tokens that end a text: gguf_vocabularies.py judges them
    if answers.at != len(answers.data):
        print("  more answers than texts")
        differ += 1
    return differ, tokens


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="JUDGE-TOKENIZE")
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=20251117)
    parser.add_argument("--kinds", nargs="+")
    args = parser.parse_args()
    lines = texts.texts(args.root, args.count, args.seed, ADDED)
    corpus = [line.decode("utf-8", "replace") for line in lines[::2]]
    print(f"{len(lines)} texts of seed {args.seed}, {sum(map(len, lines))} bytes")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "lines"
        packed.write_bytes(b"".join(struct.pack("<I", len(line)) + line for line in lines))
        for kind in KINDS:
            if args.kinds and kind.__name__ not in args.kinds:
                continue
            for maker in (make, make_gguf) if kind in (gpt2, llama3, qwen2) else (make,):
                name = kind.__name__ + (".gguf" if maker is make_gguf else "")
                path, out = Path(folder) / name, Path(folder) / "answers"
                tokenizer = maker(kind, corpus, path)
                start = time.perf_counter()
                subprocess.run([args.program, path, packed, out], check=True)
                seconds = time.perf_counter() - start
                differ, tokens = judge(tokenizer, lines, Answers(out.read_bytes()))
                print(f"{name:14} {tokens:8} tokens, {differ} texts differ, {seconds:.2f} s",
                      flush=True)
                bad += differ
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
