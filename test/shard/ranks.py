"""A model over several ranks gives what one process gives: logits, patches, and the report on them.

Usage: ranks.py CTXC ROOT --mpi KIND [--all]

The kernels of a step and the order of its sums do not depend on where it runs, so that files are compared
byte by byte; what the judges say of one process's patches holds for these. Where ranks share a layer, sums
are taken in another way, and numbers agree to 1e-4.
"""
import argparse
import array
import json
import math
import pathlib
import re
import shutil

import mpi

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
    """The bytes between ranks are those that `ctxc compile --emit=cost --shard` predicts of a token."""
    cost = ranks.alone("compile", model, "--emit=cost", "--shard", f"pipeline={count}", "--bandwidth",
                       "10", "--network", "10,1", "--format", "json", "-o", "-")
    if cost.returncode:
        mpi.fail(f"{name}: no cost", cost)
    of_both = json.loads(cost.stdout)["streamBytes"]
    runs = found["tokens"]
    # A patch takes both runs' streams, everything else one.
    tokens = 2 * runs["patch"] + runs["prefill"] + runs["verify"] + runs["control"]
    # An encoder reads the token with its context.
    tokens += model.name.startswith("bert")
    for rank in found["ranks"][:-1]:
        if rank["streamBytes"] != tokens * of_both / 2:
            mpi.fail(f"{name}: {rank['streamBytes']} bytes went to the next rank, expected "
                     f"{tokens * of_both / 2} for {tokens} tokens")
    if found["ranks"][-1]["streamBytes"]:
        mpi.fail(f"{name}: the last rank sent streams")


def tensors(path):
    """The float32 tensors of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            found[name] = array.array("f", data[begin:end])
    return found


def check_close(what, one, several, of_norm):
    """Every tensor within 1e-4: of its norm, or of each entry. The change of a scale or a bias is a quotient or a
    difference of values, which rounding changes more."""
    expected, found = tensors(one), tensors(several)
    if not expected or expected.keys() != found.keys():
        mpi.fail(f"{what}: has {sorted(found)}, expected {sorted(expected)}")
    for name, numbers in expected.items():
        apart = [a - b for a, b in zip(numbers, found[name], strict=True)]
        error = math.hypot(*apart) if of_norm else max(map(abs, apart))
        allowed = 1e-4
        if of_norm:
            is_factor = name.endswith((".u", ".v"))
            allowed = math.hypot(*numbers) * (1e-4 if is_factor else 3e-4) + (0 if is_factor else 1e-5)
        if not error <= allowed:
            mpi.fail(f"{what}: {name} is {error} apart")


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
        alone = ranks.alone(*words, one)
        together = ranks.together(count, *words, several, shard=shard)
        for result in (alone, together):
            if result.returncode:
                mpi.fail(f"{name}: {words}", result)
        check_close(f"{name}: {words[0]}", one, several, of_norm)
    if everything:
        again = where / "again.safetensors"
        ranks.together(count, *words, again, shard=shard)
        same_files(f"{name}, twice", several, again)


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
    for family, shared in SHARED.items():
        if options.all or family in ("gemma3", "mixtral"):
            check_shared(ranks, goldens / family, shared, 1, work, options.all or family == "gemma3")
    check_shared(ranks, goldens / "gpt-oss", 2, 2, work, options.all)
    if options.all:
        for family in FAMILIES:
            layers = {"falcon": 2, "mixtral": 2, "gemma3": 6}.get(family, 3)
            for count in range(3, min(layers, 4) + 1):
                check_model(ranks, goldens / family, count, work, True)
        check_model(ranks, options.root / "examples" / "models" / "gemma3-kjv-1m", 4, work, True)
    shutil.rmtree(work)
    print("equal")


main()
