"""adapter_config.json: what `ctxc apply` makes of a checkpoint and an adapter, against PEFT's logits."""
import dataclasses
import json
import re
import shutil
import tempfile
import warnings
from pathlib import Path

import judge as models
import peft
import programs
import torch
from key_values import ABSENT, USUAL
from safetensors.torch import load_file, save_file

NAME = "adapter_config.json"
TOKENS = [5, 17, 3, 60, 22, 41, 9, 33, 12, 71, 2, 6]
MODELS = {"llama": ["q_proj", "down_proj"], "gpt2": ["c_attn", "attn.c_proj"], "mixtral": ["o_proj"]}
# Beside the usual ones, by key.
OWN = {
    "peft_type": ["LORA", "lora", "ADALORA", "IA3", "XLORA"],
    "task_type": ["CAUSAL_LM", "SEQ_CLS", "FEATURE_EXTRACTION", "TOKEN_CLS"],
    "r": [4, 8, 2], "lora_alpha": [8, 8.5, 100, -4, 1e300],
    "rank_pattern": [{"down_proj": 4}, {"down_proj": 2}, {"x": 2}, {"down_proj": 0}, {"down_proj": "4"}],
    "alpha_pattern": [{"q_proj": 32}, {"q_proj|down_proj": 64}, {r".*\.layers\.[01]\..*": 64}, {"^q_proj": 100},
                      {r"^model\.layers\.0\.self_attn\.q_proj": 64}, {"layers.0.self_attn.q_proj": 3},
                      {"down_proj": 16, "mlp.down_proj": 100}, {"mlp.down_proj": 100, "down_proj": 16}, {"(": 3},
                      {"(?i)Q_PROJ": 3}, {"(?i:Q_PROJ)": 3}, {r"layers\.\d+\.mlp\.\w+": 2.5}, {"c_attn": None},
                      {"[[:alpha:]]_proj": 3}, {"attn.c_.+": 5}, {r"\Qdown_proj\E": 3}, {"q_proj": "9"}],
    "use_rslora": [True, False],
    "target_modules": [["q_proj", "down_proj", "up_proj"], ["q_proj"], "all-linear", "ALL-LINEAR", r".*(q|down)_proj",
                       r".*layers\.[01]\.(self_attn\.q|mlp\.down)_proj", "q_proj", ["c_attn", "c_proj"], r".*\.attn\..*",
                       r"model\.layers\.\d+\.\w+\.(q_proj|down_proj)", ["model.layers.0.mlp.down_proj", "q_proj"],
                       ["lm_head"], ["embed_tokens", "q_proj"], ["q_proj", "down_proj", "norm"], r".*mlp.*|.*q_proj"],
    "exclude_modules": [["k_proj"], ["q_proj"], ["layers.0.self_attn.q_proj"], r".*\.0\..*", r".*\.k_proj"],
    "layers_to_transform": [[0, 1, 2], [0, 1], [1], 1, [7]],
    "layers_pattern": ["layers", ["layers", "h"], "h", ["blocks"]],
    "modules_to_save": [["norm"], ["ln_f"], ["lm_head"], ["embed_tokens"], ["input_layernorm"], ["q_proj"]],
    "target_parameters": [["q_proj.weight"], ["mlp.experts.down_proj"], ["down_proj"]],
    "init_lora_weights": ["gaussian", "eva", "olora", "pissa", "pissa_niter_4", "corda", "loftq", "orthogonal", "mica",
                          "lora_ga", "OLoRA", "Gaussian"],
    "loftq_config": [{"loftq_bits": 4}], "eva_config": [{"rho": 2.0}], "corda_config": [{"corda_method": "kpm"}],
    "lora_ga_config": [{"scale": "unit"}], "qalora_group_size": [16, 32], "megatron_core": ["megatron.core"],
    "fan_in_fan_out": [True, False], "bias": ["all", "lora_only", "none"], "lora_bias": [True], "use_dora": [True],
    "alora_invocation_tokens": [[3], [60, 22]], "layer_replication": [[[0, 1], [0, 2]], [[0, 3]]],
    "trainable_token_indices": [[5, 6], {"embed_tokens": [5]}], "megatron_config": [{"a": 1}],
    "velora_config": [{"num_groups": 2}], "monteclora_config": [{"num_samples": 2}],
    "use_bdlora": [{"nblocks": 2, "match_strict": False}], "arrow_config": [{"top_k": 1}], "kasa_config": [{"beta": 0.1}],
    "runtime_config": [{"ephemeral_gpu_offload": True}], "lora_dropout": [0.5, 0.0],
}
# Some keys go with others, and what one of them says shows at the other.
ALSO = {"layers_pattern": {"layers_to_transform": [0, 1, 2]}}
# Refusals that may name another key: of tensors that the file has not for this value.
NAMED = {"bias": ["biases"], "r": ["rank_pattern"], "init_lora_weights": ["PiSSA"]}


def start(ctxc):
    global program, folder, bases, plain
    program = ctxc
    folder = Path(tempfile.mkdtemp())
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    goldens = Path(__file__).resolve().parents[2] / "goldens"
    bases = {name: goldens / name for name in MODELS}
    import atexit
    atexit.register(shutil.rmtree, folder)


def known():
    return [field.name for field in dataclasses.fields(peft.LoraConfig)]


def values(key):
    return USUAL + OWN.get(key, [])


def names(key):
    return NAMED.get(key, [])


def is_no_matter(key, value, reason):
    """PEFT checks these where it trains or prepares, though they say nothing about the adapter's numbers; and modules without
    parameters stand in no file."""
    return "Dropout" in reason or key in ("lora_dropout", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "inference_mode",
                   "auto_mapping", "base_model_name_or_path", "revision", "peft_version", "runtime_config", "fan_in_fan_out",
                   "megatron_core", "qalora_group_size")


def fill(model, seed=1):
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.3 * torch.randn_like(parameter) / parameter.shape[-1] ** 0.5)
            elif "modules_to_save" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))


made = {}


def written(base, options):
    """A directory that PEFT wrote with these options of LoraConfig."""
    key = base + json.dumps(options, sort_keys=True)
    if key not in made:
        path = folder / f"adapter-{len(made)}"
        model = peft.get_peft_model(models.load_checkpoint(bases[base]), peft.LoraConfig(task_type="CAUSAL_LM", **options))
        fill(model)
        model.save_pretrained(path, save_embedding_layers=False)
        made[key] = path
    return made[key]


def changed(base, options, change, text=None):
    """The same, with keys of the file set, or taken away."""
    source = written(base, options)
    path = folder / "changed"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, path)
    config = json.loads((path / NAME).read_text())
    for key, value in change.items():
        config.pop(key, None)
        if value is not ABSENT:
            config[key] = value
    (path / NAME).write_text(text or json.dumps(config))
    return base, path


def cases(key, value):
    for base, modules in MODELS.items():
        if base != "llama" and key not in ("fan_in_fan_out", "target_modules", "alpha_pattern", "target_parameters", "r"):
            continue
        options = {"r": 4, "lora_alpha": 8, "target_modules": modules}
        if key == "modules_to_save" and value == ["norm"]:
            options["modules_to_save"] = value
        yield base, changed(base, options, {**ALSO.get(key, {}), key: value})


@torch.no_grad()
def logits(model):
    return model(torch.tensor([TOKENS])).logits[0, -1].double()


def ctxc(case):
    base, path = case
    out = folder / "applied"
    shutil.rmtree(out, ignore_errors=True)
    done = programs.run([program, "apply", bases[base], path, "-o", out, "--dtype", "f32"])
    if done.returncode:
        return None, done.stderr
    return logits(models.load_checkpoint(out)), ""


def judge(case):
    base, path = case
    torch.manual_seed(2)
    try:
        return logits(peft.PeftModel.from_pretrained(models.load_checkpoint(bases[base]), path).eval()), ""
    except Exception as error:  # a config can cause any
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def differ(found, expected):
    error = (found - expected).abs().max().item()
    return None if error <= 1e-4 * max(1, expected.abs().max().item()) else f"logits differ by {error:.3g} from PEFT's"


PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def pattern(choose):
    """A key of rank_pattern or alpha_pattern, as people write them."""
    name = choose.choice(PROJECTIONS)
    layer = choose.randrange(3)
    return choose.choice([
        name, f"self_attn.{name}", f"layers.{layer}.mlp.{name}", rf".*\.layers\.{layer}\..*", rf"layers\.\d+\.\w+\.{name}",
        f"({'|'.join(choose.sample(PROJECTIONS, 2))})", f"[qkv]_proj", rf"^model\.layers\.[0-{layer}]\..*{name}$",
        rf"(?!.*{name}).*_proj", f"(?:up|gate)_proj", rf"model.layers.{layer}.*", rf".*{name}", f"{name[0]}.*", f"^{name}"])


def generated(choose):
    targets = choose.sample(PROJECTIONS, 3)
    options = {"r": choose.choice([2, 4]), "lora_alpha": choose.choice([1, 8, 16]), "use_rslora": choose.random() < 0.5,
               "target_modules": choose.choice([targets, rf".*\.({'|'.join(targets)})"]),
               "rank_pattern": {pattern(choose): choose.randint(1, 6) for _ in range(choose.randint(0, 2))},
               "alpha_pattern": {pattern(choose): choose.choice([1, 5, 32, 0.5]) for _ in range(choose.randint(0, 3))}}
    if isinstance(options["target_modules"], list) and choose.random() < 0.4:
        options["layers_to_transform"] = choose.sample(range(3), 2)
        if choose.random() < 0.5:
            options["layers_pattern"] = choose.choice(["layers", ["layers"], ["h", "layers"]])
    if choose.random() < 0.4:
        options["exclude_modules"] = choose.choice([[targets[0]], rf".*layers\.{choose.randrange(3)}\.mlp.*"])
    if choose.random() < 0.3:
        options["modules_to_save"] = ["input_layernorm"]
    return json.dumps(options), changed("llama", options, {}), None
