"""generation_config.json: the tokens that `ctxc verify --generate` writes, against transformers' greedy generate()."""
import atexit
import copy
import json
import shutil
import tempfile
from pathlib import Path

import programs
import torch
import transformers
from key_values import ABSENT, USUAL

NAME = "generation_config.json"
TOKENS, COUNT = [5, 17, 3, 60, 22, 41, 9, 33], 8
GOLDEN = Path(__file__).resolve().parents[2] / "goldens/gpt2"
# Beside the usual ones, by key.
OWN = {
    "repetition_penalty": [1.0, 1.3, 5.0], "no_repeat_ngram_size": [2], "num_beams": [2], "min_length": [30], "min_new_tokens": [20],
    "suppress_tokens": [[7]], "begin_suppress_tokens": [[7]], "bad_words_ids": [[[7]]], "max_length": [9, 100], "temperature": [0.5],
    "top_k": [50], "top_p": [0.9], "forced_bos_token_id": [3], "forced_eos_token_id": [3], "transformers_version": ["5.0.0"],
    "sequence_bias": [[[[7], -9.0]]], "guidance_scale": [2.0], "cache_implementation": ["static"], "stop_strings": ["x"],
    "penalty_alpha": [0.6], "exponential_decay_length_penalty": [[3, 1.5]], "max_new_tokens": [4],
}


def start(ctxc):
    global program, folder, model, own, plain
    program, folder = ctxc, Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    transformers.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(GOLDEN, dtype=torch.float32, attn_implementation="eager").eval()
    own = model.generation_config
    plain = judge(written(None))[0]
    # The third token and later ones end a text; so does one that never comes.
    OWN["eos_token_id"] = [plain[2], [plain[2]], [plain[4], plain[2]], [plain[-1]], -1, 10 ** 6, [[1]], "x", 2.5, [plain[2], "x"]]


def known():
    return [key for key in transformers.GenerationConfig().to_dict() if not key.startswith("_")]


def values(key):
    return (USUAL if key == "eos_token_id" else [None, True, False, 1, 0.5, "other"]) + OWN.get(key, [])


def written(content):
    path = folder / "model"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(GOLDEN, path)
    if content is not None:
        (path / "generation_config.json").write_text(json.dumps(content))
    return path


def cases(key, value):
    yield "alone", written({} if value is ABSENT else {key: value})


def ctxc(path):
    """A warning that names keys is as good as a refusal."""
    out = folder / "report.json"
    done = programs.run([program, "verify", path, "--tokens", ",".join(map(str, TOKENS)), "--generate", str(COUNT), "--json", out])
    if done.returncode == 2 or "generation_config.json" in done.stderr:
        return None, done.stderr
    return [step["next"] for step in json.loads(out.read_text())["steps"]], ""


def judge(path):
    try:
        one = copy.deepcopy(model)  # some settings stay in it
        has = (path / "generation_config.json").exists()
        one.generation_config = transformers.GenerationConfig.from_pretrained(path) if has else own
        given = torch.tensor([TOKENS])
        with torch.no_grad():
            made = one.generate(given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=COUNT,
                                num_return_sequences=1, return_dict_in_generate=False)
        return made[0, len(TOKENS):].tolist(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error)[:200]}"


def differ(found, expected):
    return None if found == expected else f"the tokens are {found}, transformers' {expected}"


def is_no_matter(key, value, reason):
    """transformers checks types and what goes with what; what ctxc does not read needs no right type."""
    return key != "eos_token_id"


def generated(choose):
    content = {"eos_token_id": choose.choice([plain[choose.randrange(COUNT)], choose.sample(plain, 3), choose.sample(range(64), 5)]),
               "do_sample": choose.random() < 0.5, "temperature": choose.choice([0.6, 1.0]), "top_p": choose.choice([0.9, 1.0]),
               "pad_token_id": choose.randrange(64), "bos_token_id": choose.randrange(64), "transformers_version": "4.50.0",
               "max_length": choose.choice([20, 4096])}
    for key in choose.sample(sorted(content), choose.randint(0, 4)):
        del content[key]
    penalty = choose.choice([None, 1.0, 1.1])
    if penalty:
        content["repetition_penalty"] = penalty
    return json.dumps(content), written(content), "repetition_penalty" if penalty == 1.1 else None
