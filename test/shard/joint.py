"""One patch for a whole text is the same where the model runs elsewhere: on ranks, and on GPUs."""
import json

import mpi

TOKENS = "5,17,3,60,22,9"
TEXT = {"prompt": [60, 22], "answer": [9, 31, 4]}


def steps(path):
    """What a report says of each token: the next one, and how far the patched run's logits are."""
    return [[each["next"], each["patched"]] for each in json.loads(path.read_text())["steps"]]


def check_joint(name, model, work, alone, elsewhere, is_exact, generate=4):
    """verify and patch, by `alone` and by `elsewhere`, which run a command; `is_exact`: their numbers are the same."""
    where = work / f"joint-{name.replace(' ', '-')}"
    where.mkdir()
    (where / "text.jsonl").write_text(json.dumps(TEXT) + "\n")
    verify = ["verify", model, "--joint", "--tokens", TOKENS, "--generate", generate, "--keep", "0"]
    patch = ["patch", model, "--joint", "--context-tokens", TOKENS, "--keep", "0,1", "--text", where / "text.jsonl"]
    for kind, run in (("one", alone), ("other", elsewhere)):
        for words in ([*verify, "--json", where / f"{kind}.json"], [*patch, "-o", where / kind]):
            made = run(*words)
            if made.returncode:
                mpi.fail(f"{name}: {words[0]} --joint", made)
    one, other = (steps(where / f"{kind}.json") for kind in ("one", "other"))
    if [next for next, _ in one] != [next for next, _ in other] or (is_exact and one != other):
        mpi.fail(f"{name}: the steps differ")
    weights = [(where / kind / "adapter_model.safetensors").read_bytes() for kind in ("one", "other")]
    if is_exact and weights[0] != weights[1]:
        mpi.fail(f"{name}: the adapters differ")
