"""A model over several ranks gives what one process gives: logits, patches, and the report on them.

Usage: ranks.py CTXC ROOT --mpi KIND [--all]

The kernels of a step and the order of its sums do not depend on where it runs, so that files are compared
byte by byte; what the judges say of one process's patches holds for these. Where ranks share a layer, sums
are taken in another way, and numbers agree to 1e-4.
"""
import argparse
import array
import functools
import json
import pathlib
import random
import re
import shutil

import mpi
from joint import check_joint
from compare import MADE_UP, check_close, check_shared_bytes, predicted, ranks_of

FAMILIES = ["gemma3", "llama", "falcon", "gpt2", "mixtral", "deepseek-v3", "gpt-oss", "bert"]
# How many ranks can share a layer of it: they divide its heads, and its heads of keys.
SHARED = {"gemma3": 2, "llama": 2, "falcon": 5, "gpt2": 3, "mixtral": 2, "deepseek-v3": 3, "gpt-oss": 2,
          "bert": 3}
TOKENS = "5,17,3,60,22,9"


def report(result):
    """What verify prints, without times and what is said of ranks."""
    return re.sub(r"^(ranks |time[ :]).*\n( .*\n)*", "", result.stdout, flags=re.M)


def same(what, one, several, expected):
    for result in (one, several):
        if result.returncode != expected:
            mpi.fail(f"{what}: exit code {result.returncode}, expected {expected}", result)
    if report(one) != report(several):
        mpi.fail(f"{what}: the reports differ\n--- alone\n{report(one)}\n--- ranks\n{report(several)}")


def contents(path):
    """Of a file, or of each file of a directory."""
    if path.is_dir():
        return {each.name: each.read_bytes() for each in path.iterdir()}
    return path.read_bytes()


def same_files(what, one, several):
    if contents(one) != contents(several):
        mpi.fail(f"{what}: {one.name} and {several.name} differ")


def check_model(ranks, model, count, work, everything, tokens=TOKENS, positions="2-5"):
    """verify and patch of one token and of several positions, alone and on `count` ranks; of these, unless
    `everything`, one of each."""
    name = f"{model.name} on {count} ranks"
    is_encoder = model.name.startswith("bert")
    cases = [["patch"]]
    if everything or is_encoder:
        cases.append(["verify", "--generate", 1 if is_encoder else 2])
    if not is_encoder:
        cases.append(["verify", "--positions", positions])
        if everything:
            cases.append(["patch", "--positions", positions])
    for number, (command, *more) in enumerate(cases):
        files = {}
        results = []
        for kind in ("alone", "ranks"):
            # Patches of many positions of a mixture need a file each.
            ending = "" if command == "patch" and more else ".safetensors"
            output = files[kind] = work / f"{name.replace(' ', '-')}-{kind}-{number}{ending}"
            words = [command, model, "--tokens", tokens, *more]
            words += ["--logits" if command == "verify" else "-o", output]
            if command == "verify":
                words += ["--json", work / f"{kind}.json", "--force"]
            # Of the two, the command line names the files.
            results.append(ranks.alone(*words) if kind == "alone" else ranks.together(count, *words))
        for result in results:
            result.stdout = result.stdout.replace(str(files["alone"]), "F").replace(
                str(files["ranks"]), "F")
        same(f"{name}: {command} {more}", *results, expected=0)
        same_files(name, files["alone"], files["ranks"])
        if command == "verify" and "--generate" in more:
            check_bytes(name, json.loads((work / "ranks.json").read_text()), ranks, model, count,
                        tokens)


def check_bytes(name, found, ranks, model, count, tokens):
    """The bytes between ranks are those that are predicted of a token."""
    cost, runs = predicted(name, ranks, model, f"pipeline={count}"), found["tokens"]
    of_both = cost["streamBytes"]
    cut = [(group["firstLayer"], group["firstLayer"] + group["layers"]) for group in cost["groups"]]
    if cut != [(rank["firstLayer"], rank["endLayer"]) for rank in found["ranks"]]:
        mpi.fail(f"{name}: the layers are not cut as predicted, {cut}")
    # A patch takes both runs' streams, everything else one.
    tokens = 2 * runs["patch"] + runs["prefill"] + runs["verify"] + runs["control"]
    # An encoder reads the token with its context; all others a text more.
    tokens += 1 if model.name.startswith("bert") else MADE_UP
    for rank in found["ranks"][:-1]:
        if rank["streamBytes"] != tokens * of_both / 2:
            mpi.fail(f"{name}: {rank['streamBytes']} bytes went to the next rank, expected "
                     f"{tokens * of_both / 2} for {tokens} tokens")
    if found["ranks"][-1]["streamBytes"]:
        mpi.fail(f"{name}: the last rank sent streams")


def check_shared(ranks, model, tensor, pipeline, work, everything):
    """Ranks that share each layer: sums over them round in another way, and every time alike."""
    shard, count = f"tensor={tensor},pipeline={pipeline}", tensor * pipeline
    is_encoder = model.name.startswith("bert")
    name = f"{model.name} with {shard}"
    where = work / name.replace(" ", "-")
    where.mkdir()
    cases = [(["patch"], "-o", True)]
    if everything:
        cases.append((["verify", "--generate", "1" if is_encoder else "2"], "--logits", False))
        if not is_encoder:
            cases.append((["verify", "--positions", "2-5"], "--logits", False))
    for words, option, of_norm in cases:
        one, several = where / "one.safetensors", where / "several.safetensors"
        words = [words[0], model, "--tokens", TOKENS, *words[1:], "--force", option]
        is_counted = "--generate" in words
        json_file = where / "ranks.json"
        alone = ranks.alone(*words, one)
        more = ["--json", json_file] if is_counted else []
        together = ranks.together(count, *words, several, *more, shard=shard)
        for result in (alone, together):
            if result.returncode:
                mpi.fail(f"{name}: {words}", result)
        check_close(f"{name}: {words[0]}", one, several, of_norm)
        if is_counted:
            check_shared_bytes(name, ranks, model, shard, json.loads(json_file.read_text()))
    if everything:
        again = where / "again.safetensors"
        ranks.together(count, *words, again, shard=shard)
        same_files(f"{name}, twice", several, again)


def write_llama(to, hidden, vocabulary):
    """A Llama of one layer and of so many tokens, whose rows of the embedding repeat."""
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
              "intermediate_size": hidden, "num_hidden_layers": 1, "num_attention_heads": 4,
              "num_key_value_heads": 4, "head_dim": hidden // 4, "vocab_size": vocabulary, "rms_norm_eps": 1e-6,
              "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
              "max_position_embeddings": 256, "attention_bias": False, "mlp_bias": False}
    layer = [f"model.layers.0.{name}.weight" for name in (
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
        "mlp.up_proj", "mlp.down_proj")]
    norms = ["model.norm.weight"] + [f"model.layers.0.{name}_layernorm.weight"
                                     for name in ("input", "post_attention")]
    numbers = random.Random(1)
    matrix = array.array("f", (numbers.gauss(0, hidden**-0.5) for _ in range(hidden * hidden))).tobytes()
    row = len(matrix) // hidden
    header, parts, end = {}, [], 0
    for name in ["model.embed_tokens.weight", *layer, *norms]:
        shape = [vocabulary if name.startswith("model.embed") else hidden, hidden]
        part = (matrix * (shape[0] // hidden + 1))[:shape[0] * row]
        if name in norms:
            shape, part = [hidden], array.array("f", [1] * hidden).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + len(part)]}
        end += len(part)
        parts.append(part)
    to.mkdir()
    (to / "config.json").write_text(json.dumps(config))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (to / "model.safetensors").write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *parts]))


def check_memory(ranks, work):
    """Of a vocabulary that is most of the model, each rank has its part in memory."""
    resident, hidden, vocabulary = [], 256, 65537
    for rows in (97, vocabulary):
        model = work / f"vocabulary-{rows}"
        write_llama(model, hidden, rows)
        made = ranks.together(2, "verify", model, "--tokens", TOKENS, "--json", work / "memory.json", "--force",
                              shard="tensor=2")
        if made.returncode:
            mpi.fail("a large vocabulary", made)
        found = json.loads((work / "memory.json").read_text())
        resident.append([rank["residentBytes"] for rank in found["ranks"]])
    table = vocabulary * hidden * 4
    for few, many in zip(*resident, strict=True):
        # Some of the rest are logits.
        if not many - few <= 0.65 * table:
            mpi.fail(f"a table of {table} bytes takes {many - few} in one of two ranks")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ctxc")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--mpi", default="")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    ranks = mpi.Ranks(options.ctxc, options.mpi)
    work = pathlib.Path(mpi.folder())
    goldens = options.root / "test" / "goldens"
    for family in FAMILIES:
        check_model(ranks, goldens / family, 2, work, options.all or family == "gemma3")
    # A prompt of several chunks, in layers with a window.
    long = ",".join(str(i * 7 % 90) for i in range(1100))
    words = ["patch", goldens / "gemma3", "--tokens", long, "--keep", "0-3", "--force"]
    for count in (2, 3, 4, 6) if options.all else (2,):
        ranks.alone(*words, "-o", work / "alone.safetensors")
        made = ranks.together(count, *words, "-o", work / "ranks.safetensors")
        if made.returncode:
            mpi.fail("a long prompt", made)
        same_files(f"a long prompt on {count} ranks", work / "alone.safetensors",
                   work / "ranks.safetensors")
    # Its sums go from where they are to where they belong.
    for again in ("", "-again"):
        made = ranks.together(2, *words, "-o", work / f"shared{again}.safetensors", shard="tensor=2")
        if made.returncode:
            mpi.fail("a long prompt that ranks share", made)
    check_close("a long prompt that ranks share", work / "alone.safetensors", work / "shared.safetensors", True)
    same_files("a long prompt that ranks share", work / "shared.safetensors", work / "shared-again.safetensors")
    for family, shared in SHARED.items():
        if options.all or family in ("gemma3", "mixtral"):
            check_shared(ranks, goldens / family, shared, 1, work, options.all or family == "gemma3")
    for family in FAMILIES if options.all else ["gpt-oss"]:
        check_shared(ranks, goldens / family, SHARED.get(family, 2), 2, work, options.all)
    check_memory(ranks, work)
    for family, tensor in SHARED.items():
        for shard in (f"tensor={tensor}", "pipeline=2"):
            if family != "bert" and (options.all or family in ("gemma3", "mixtral")):
                check_joint(f"{family} {shard}", goldens / family, work, ranks.alone,
                            functools.partial(ranks.together, ranks_of(shard), shard=shard),
                            is_exact=shard == "pipeline=2")
    if options.all:
        for family in FAMILIES:
            layers = {"falcon": 2, "mixtral": 2, "gemma3": 6}.get(family, 3)
            for count in range(3, min(layers, 4) + 1):
                check_model(ranks, goldens / family, count, work, True)
        check_model(ranks, options.root / "examples" / "models" / "gemma3-kjv-1m", 4, work, True)
    shutil.rmtree(work)
    print("equal")


main()
