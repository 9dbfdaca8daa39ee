"""Compares the numbers of two safetensors files, and the bytes that ranks sent with those that are predicted."""
import array
import json
import math

import mpi


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


def ranks_of(shard):
    """How many ranks tensor=T,pipeline=P has."""
    return math.prod(int(part.partition("=")[2]) for part in shard.split(","))


def predicted(name, ranks, model, shard):
    """What `ctxc compile --emit=cost --shard` says, of a machine for which a run is split."""
    cost = ranks.alone("compile", model, "--emit=cost", "--shard", shard, "--bandwidth", "1",
                       "--network", "10000,0", "--format", "json", "-o", "-")
    if cost.returncode:
        mpi.fail(f"{name}: no cost", cost)
    return json.loads(cost.stdout)


# Whether attention rests on the first token of a run, the model says by a text of so many tokens, the first of at most three;
# in those of this test it does not.
MADE_UP = 16


def check_shared_bytes(name, ranks, model, shard, found, made_up=MADE_UP):
    """The bytes between the ranks that share a layer are those that are predicted: of a token in one run, of one of
    which a patch is made, and of one with a patch."""
    cost, runs = predicted(name, ranks, model, shard), found["tokens"]
    if name.startswith("bert"):  # which keeps nothing, whatever attention rests on
        made_up = 0
    plain = runs["prefill"] + runs["control"] + (made_up or name.startswith("bert"))
    expected = 0
    for part in cost["parts"]:
        is_head = any(exchange["kind"] == "collect" for exchange in part["exchanges"])
        # A prompt's last token alone goes through the head.
        alone = (runs["prefill"] > 0) + runs["control"] + (made_up > 0) if is_head else plain
        expected += max(part["layers"], 1) * (
            alone * part["sent"] / 2 + runs["patch"] * part["sentToPatch"] +
            runs["verify"] * part["sentPatched"])
    expected *= cost["tensor"]
    sent = sum(rank["sharedBytes"] for rank in found["ranks"])
    if sent != round(expected) or not sent:
        mpi.fail(f"{name}: {sent} bytes went between ranks that share layers, expected {expected} for {runs}")
