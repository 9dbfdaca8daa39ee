"""Small tokenizers' directories with changed files: ctxc's ids of some texts beside AutoTokenizer's."""
import atexit
import contextlib
import io
import json
import shutil
import tempfile
import warnings
from pathlib import Path

import transformers
from gguf_vocabularies import run
from key_values import ABSENT
from side_files import trained
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = Path(__file__).resolve().parents[3]
WORDS = ["And David said unto Saul, 3 kings!", "  the King  of Größe 東京 é\n", "a<s>b</s> c<|im_end|>d <tool>",
         "THE <Tool>kings<mask>", "", "x"]


def start(tokenize):
    global program, folder, bases
    program, folder = tokenize, Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    transformers.logging.set_verbosity(50)
    warnings.simplefilter("ignore")
    corpus = [line for line in (ROOT / "README.md").read_text().splitlines() if line][:400] + WORDS * 5
    bases = {"bytes": trained(corpus), "words": word_pieces(corpus), "pieces": pieces(corpus)}


def word_pieces(corpus):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(corpus, trainers.WordPieceTrainer(
        vocab_size=400, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens([AddedToken("[CLS]"), AddedToken("[SEP]")])
    return json.loads(tokenizer.to_str())


def pieces(corpus):
    """Llama's kind."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=900, show_progress=False, limit_alphabet=120,
        special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]))
    return json.loads(tokenizer.to_str())


def written(content, files):
    path = folder / "model"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    (path / "tokenizer.json").write_text(json.dumps(content))
    for name, value in files.items():
        (path / name).write_text(json.dumps(value))
    return path


def with_key(config, key, value):
    changed = dict(config)
    changed.pop(key, None)
    return changed if value is ABSENT else changed | {key: value}


def ctxc(path):
    found = run(program, path, [word.encode() for word in WORDS], folder)
    return (None, found) if isinstance(found, str) else (found, "")


def judge(path):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            tokenizer = transformers.AutoTokenizer.from_pretrained(path)
            return [[tokenizer(word).input_ids, tokenizer(word, add_special_tokens=False).input_ids] for word in WORDS], ""
    except BaseException as error:  # tokenizers panics, too
        return None, f"{type(error).__name__}: {str(error)[:200]}"


def differ(found, expected):
    for word, one, other in zip(WORDS, found, expected):
        if one != other:
            return f"the ids of {word!r} are {one[0]} and {one[1]}, AutoTokenizer's {other[0]} and {other[1]}"
    return None
