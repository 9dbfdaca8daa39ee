"""The keys of a GGUF file's tokenizer, against llama.cpp's ids."""
import atexit
import copy
import random
import shutil
import tempfile
from pathlib import Path

import gguf_vocabularies as vocabularies
import llama_cpp
from gguf_files import VALUES, Writer, put

NAME = "GGUF, the keys of the tokenizer"
ROOT = Path(__file__).resolve().parents[3]
TEXTS = [b"And David said unto Saul, 3 kings!", "  the King  of Größe 東京 é\n".encode(), b"a<s>b</s> c<|im_end|>d <tool>",
         b"", b"x", b"[CLS] words [SEP] KINGS"]
ENDS = """<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> <|eom_id|> <EOT> _<EOT>
[EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> <|fim_pad|> <|repo_name|> <|file_sep|> <|fim_prefix|>
<|plamo:eos|> <|channel|> <PAD>""".split()
OWN = {
    "tokenizer.ggml.model": ["llama", "gpt2", "bert", "t5", "rwkv", "no_vocab"], "tokenizer.ggml.pre": ["gpt-2", "llama-bpe", "qwen2"],
    **{f"tokenizer.ggml.{role}_token_id": [5, 300, 10 ** 6] for role in
       ("bos", "eos", "unknown", "seperator", "padding", "cls", "mask", "eot", "eom", "fim_pre", "prefix")},
    "tokenizer.ggml.token_type_count": [2], "tokenizer.chat_template": ["{{ messages }}"], "tokenizer.chat_template.rag": ["x"],
}


def start(tokenize, library):
    global program, llama, folder, made
    program, llama, folder = tokenize, llama_cpp.LlamaCpp(library), Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if line]
    corpus = lines[:300] + [text.decode() for text in TEXTS] * 3
    pairs = vocabularies.Made("gpt2", vocabularies.byte_pairs(corpus))
    pieces = vocabularies.Made("llama", vocabularies.raw_pairs(corpus))
    words = vocabularies.Made("bert", vocabularies.word_pieces(corpus))
    made = {"gpt2": (pairs, "gpt-2", {"bos": pairs.id("<s>"), "eos": pairs.id("</s>")}),
            "llama": (pieces, None, {"bos": pieces.id("<s>"), "eos": pieces.id("</s>"), "unknown": pieces.id("<unk>")}),
            "bert": (words, None, {"bos": words.id("[CLS]"), "seperator": words.id("[SEP]"), "unknown": words.id("[UNK]")})}


def known():
    return ["tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.merges", "tokenizer.ggml.token_type", *OWN][:-1]


def values(key):
    return VALUES + OWN.get(key, [])


def written(base, changes):
    path = folder / "model.gguf"
    vocabulary, pre, ids = made[base]
    vocabulary.write(path, pre, ids, {}, Writer, lambda file: [put(file, key, value) for key, value in changes.items()])
    return path


def cases(key, value):
    for base in made:
        yield base, written(base, {key: value})


def ctxc(path):
    found = vocabularies.run(program, path, TEXTS, folder)
    return (None, found) if isinstance(found, str) else ((found, found.ends), "")


def judge(path):
    found = llama.ids_apart(path, TEXTS)
    return (None, "llama.cpp refuses it") if found is None else (found, "")


def differ(found, expected):
    for text, one, other in zip(TEXTS, found[0], expected[0]):
        if one != other:
            return f"the ids of {text!r} are {one}, llama.cpp's {other}"
    return None if found[1] == expected[1] else f"a text ends at {found[1]}, in llama.cpp at {expected[1]}"


def names(key):
    unknown = "tokenizer.ggml.unknown_token_id"  # of words it has to be a symbol
    return {"tokenizer.ggml.scores": ["scores"], "tokenizer.ggml.token_type": ["token types", unknown],
            "tokenizer.ggml.tokens": ["tokens"], "tokenizer.ggml.model": ["tokenizer.ggml.merges", unknown],
            unknown: ["byte pieces", "unk_token"]}.get(key, [])


def is_no_matter(key, value, reason):
    """llama.cpp wants certain types, and aborts at a vocabulary that is of another kind than its model."""
    return isinstance(value, (bool, int, float, list, str)) and not key.endswith(".pre")


def with_ends(choose):
    """More tokens, which llama.cpp takes for ends and marks."""
    vocabulary, pre, ids = made["gpt2"]
    marked = copy.copy(vocabulary)
    named = [name for name in choose.sample(ENDS, choose.randint(1, 6)) if name not in vocabulary.tokens]
    marked.tokens, marked.kinds = vocabulary.tokens + named, vocabulary.kinds + [choose.choice([1, 3, 4]) for _ in named]
    path = folder / "model.gguf"
    keys = {f"tokenizer.ggml.{role}_token_id": choose.randrange(300)
            for role in choose.sample(["eot", "eom", "fim_pad", "fim_rep", "fim_sep", "fim_pre"], choose.randint(0, 2))}
    marked.write(path, pre, ids, {}, Writer, lambda file: [put(file, key, value) for key, value in keys.items()])
    return f"{named} {keys}", path, None


def generated(choose: random.Random):
    if choose.random() < 0.5:
        return with_ends(choose)
    base = choose.choice(list(made))
    changes = {f"tokenizer.ggml.{name}": choose.random() < 0.5 for name in
               ("add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces") if choose.random() < 0.5}
    for name in ("eot", "padding", "mask"):
        if choose.random() < 0.3:
            changes[f"tokenizer.ggml.{name}_token_id"] = choose.randrange(300)
    if choose.random() < 0.2:
        changes[choose.choice(["tokenizer.huggingface.json", "tokenizer.chat_template"])] = "{}"
    return f"{base} {changes}", written(base, changes), None
