#!/usr/bin/env python3
"""Models of text and of images or sounds: what ctxc says of a text is what transformers' whole model says.

  wrapped_texts.py CTXC TABLE [TYPE…] [--all] [--shard I/N]

For each row of TABLE (lib/Import/HuggingFace/wrappers.json) a small model with random numbers is saved by transformers, and ctxc's
logits of a text, of the run with the context and of the one without, are compared with it, and PEFT adds ctxc's adapter to
it; then the same with its tensors named and its config written as older versions did. --all takes every text model of a row, in place of its first one.
Exit code: 0 if all agree, otherwise 1."""
import argparse
import contextlib
import copy
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/describe"))
import torch  # noqa: E402
import wrappers  # noqa: E402
from peft import PeftModel  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

CONTEXT = [5, 17, 3, 60, 22, 41, 9]
TOLERANCE = 1e-4
OLDER = {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."}


def run(ctxc, folder):
    """ctxc's logits behind the context, and what else it reads of the text; or what it refuses."""
    report, logits = folder / "report.json", folder / "logits.safetensors"
    done = subprocess.run([ctxc, "verify", str(folder), "--tokens", ",".join(map(str, CONTEXT)), "--generate", "2",
                           "--json", str(report), "--logits", str(logits)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return None, done.stderr.strip()
    steps = json.loads(report.read_text())["steps"]
    return (load_file(logits), [step["next"] for step in steps], done.returncode), ""


@torch.no_grad()
def difference(ctxc, folder, model):
    found, refused = run(ctxc, folder)
    if refused:
        return refused
    logits, tokens, code = found
    ids = torch.tensor([CONTEXT + tokens[:-1]])
    expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, len(CONTEXT) - 1:].float()
    far = (logits["full"].reshape(expected.shape) - expected).abs().max().item()
    same = (logits["patched"].reshape(expected.shape) - expected).abs().max().item()
    if far > TOLERANCE:
        return f"logits differ by {far:.1e}"
    if code or same > 1e-2:
        return f"the patched run differs by {same:.1e}"
    return None


@torch.no_grad()
def of_adapter(ctxc, folder, model):
    """What is wrong with the model that has an adapter in place of all tokens before the last."""
    with tempfile.TemporaryDirectory() as name:
        adapter = str(Path(name) / "adapter")
        done = subprocess.run([ctxc, "patch", str(folder), "--tokens", ",".join(map(str, CONTEXT)), "--keep", "none", "--format=peft",
                               "-o", adapter],
                              capture_output=True, text=True)
        if "a LoRA holds matrices alone" in done.stderr:
            return None
        if done.returncode:
            return f"the adapter: {done.stderr.strip()}"
        expected = model(input_ids=torch.tensor([CONTEXT])).logits[0, -1]
        changed = PeftModel.from_pretrained(copy.deepcopy(model), adapter).eval()
        last, place, found = torch.tensor([CONTEXT[-1:]]), torch.tensor([[len(CONTEXT) - 1]]), {}
        for is_control in (False, True):
            with changed.disable_adapter() if is_control else contextlib.nullcontext():
                logits = changed(input_ids=last, position_ids=place).logits[0, -1]
            found[is_control] = (logits - expected).abs().max().item()
    return None if found[False] < 1e-3 < 1e-1 < found[True] else f"with the adapter {found[False]:.1e}, without {found[True]:.1e}"


def written_older(folder, flat):
    """The tensors and the config as transformers wrote them before its fifth version; False where it still does."""
    path, config = folder / "model.safetensors", json.loads((folder / "config.json").read_text())
    if flat:  # whose tensors it stores as ever
        text = config.pop("text_config")
        rope = text.pop("rope_parameters")
        config = {**text, **config, "rope_theta": rope["rope_theta"], "vision_token_id": 7,
                  "rope_scaling": {"type": "mrope", "mrope_section": rope["mrope_section"]}}
        (folder / "config.json").write_text(json.dumps(config))
        return True
    tensors, renamed = load_file(path), {}
    if not any(name.startswith("model.language_model.") for name in tensors):
        return False
    for name, value in tensors.items():
        front = next((front for front in OLDER if name.startswith(front)), "model.")
        renamed[OLDER.get(front, "") + name.removeprefix(front)] = value
    save_file(renamed, path)
    (folder / "config.json").write_text(json.dumps({**config, "ignore_index": -100, "vocab_size": config["text_config"]["vocab_size"]}))
    return True


def judged(ctxc, model_type, text_type, row):
    """What is wrong with one model, by the form in which it is stored."""
    config = wrappers.wrapper(model_type, wrappers.text_config(text_type))
    model = wrappers.random_model(config)
    wrong = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_pretrained(folder)
        wrong["today's"] = difference(ctxc, folder, model)
        wrong["adapter"] = of_adapter(ctxc, folder, model)
        if written_older(folder, row.get("flat", False)):
            wrong["older"] = difference(ctxc, folder, model)
            wrong["older adapter"] = of_adapter(ctxc, folder, model)
    return {form: what for form, what in wrong.items() if what}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc")
    parser.add_argument("table", type=Path)
    parser.add_argument("types", metavar="TYPE", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--shard", default="0/1")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = json.loads(arguments.table.read_text())["wrappers"]
    index, count = map(int, arguments.shard.split("/"))
    chosen = arguments.types or sorted(rows)[index::count]
    failed = 0
    for model_type in chosen:
        row = rows[model_type]
        for text_type in row["texts"] if arguments.all else row["texts"][:1]:
            wrong = judged(arguments.ctxc, model_type, text_type, row)
            failed += bool(wrong)
            print(f"{model_type} around {text_type}: {wrong or 'equal'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
