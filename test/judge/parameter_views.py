#!/usr/bin/env python3
"""Modules whose matrices are parts of parameters, against PyTorch: kernels run each of them, its layers are controllable as those of
the same module with a matrix in each parameter, and PyTorch gives with a patch in its own parameters the logits of the whole text.
So it does with the changes of an adapter that was distilled, by which the numbers of its card are computed again.
Weights of another such module are read by their names in PyTorch, and refused where they have no such parts.

  parameter_views.py CTXC PACKAGE [--generated N] [--seed S]"""
import argparse
import contextlib
import json
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("ctxc")
parser.add_argument("package")
parser.add_argument("--generated", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--only", default="")
given = parser.parse_args()
sys.path[:0] = [given.package, str(Path(__file__).parent / "kinds"), str(Path(__file__).parent)]

import card_numbers  # noqa: E402
import programs  # noqa: E402
import torch  # noqa: E402
import views  # noqa: E402
from ctxc import export  # noqa: E402
from ctxc._errors import Mismatch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

TOKENS = [5, 17, 3, 11, 2, 19, 7]
EXACT = 2e-5


def run(*words):
    return programs.run([given.ctxc, *map(str, words)])


def logits_of(module, tokens, changed=None):
    with torch.no_grad():
        return torch.func.functional_call(module, changed or {}, (torch.tensor([tokens]),))[0, -1]


def judged(build, folder):
    """What is wrong; empty where nothing is."""
    torch.manual_seed(0)
    module = build().eval()
    file, patch, words = folder / "model.ctxc", folder / "patch.safetensors", ("--tokens", ",".join(map(str, TOKENS)))
    export.export(module, export.inputs_of(module, None), file)
    checked = run("check", file)
    if checked.returncode or not re.search(r"layers 0-1, block '\w+': controllable", checked.stdout):
        return f"found the verdict\n{checked.stdout}{checked.stderr}"
    if "not compared" in checked.stdout + checked.stderr:
        return f"its numbers are not compared: {checked.stderr}"
    if "graph.body" in run("import", file).stdout:
        return "parts of it run as a program"
    done = run("patch", file, *words, "-o", patch, "--force")
    if done.returncode:
        return f"no patch: {done.stderr}"
    wanted = logits_of(module, TOKENS)
    with_patch = logits_of(module, TOKENS[-1:], export.apply_patch(module, patch, file))
    without = logits_of(module, TOKENS[-1:])
    worst, control = (float((made - wanted).abs().max() / wanted.abs().max()) for made in (with_patch, without))
    if not worst < EXACT < 10 * EXACT < control:
        return f"with the patch the logits differ by {worst:.3g}, without it by {control:.3g}"
    return wrong_when_live(module, patch, file, wanted) or wrong_adapters(module, file, folder) or wrong_with_other_weights(build().eval(), file, words, folder)


def bits_of(module):
    return {name: (each.data_ptr(), each.detach().contiguous().view(torch.int32).clone()) for name, each in module.named_parameters()}


def wrong_when_live(module, patch, file, wanted):
    """The patch in the module's own memory: it answers as with the context, refuses other tokens, and has its own bits again."""
    before, last = bits_of(module), torch.tensor([TOKENS[-1:]])
    with torch.no_grad(), export.patched(module, patch, file):
        worst = float((module(last)[0, -1] - wanted).abs().max() / wanted.abs().max())
        try:
            module(torch.tensor([TOKENS[:1]]))
            return "a live module with a patch reads other tokens"
        except Mismatch:
            pass
    if not worst < EXACT:
        return f"patched live, the logits differ by {worst:.3g}"
    try:
        with torch.no_grad(), export.patched(module, patch, file):
            dict(module.named_parameters())[next(iter(export.apply_patch(module, patch, file)))].mul_(2)
        return "a parameter that is written to meanwhile is not reported"
    except Mismatch:
        pass
    with contextlib.suppress(ZeroDivisionError), export.patched(module, patch, file):
        raise ZeroDivisionError
    same = all(address == other and torch.equal(bits, again) for (address, bits), (other, again) in zip(before.values(), bits_of(module).values()))
    return "" if same else "a module that was patched has other bits"


def answered(module, front, text, changed=None):
    """The logits of the tokens of `text` behind `front`."""
    with torch.no_grad():
        return torch.func.functional_call(module, changed or {}, (torch.tensor([front + text]),))[0, -len(text):]


def wrong_adapters(module, file, folder):
    """One change for a whole text, which is exact, and one that stands for the context, of which the card's numbers are PyTorch's."""
    draw, words = random.Random(1), module(torch.tensor([TOKENS])).shape[-1]
    lines = [{"prompt": [draw.randrange(words)], "answer": [draw.randrange(words) for _ in range(8)]} for _ in range(20)]
    fitted, held, text = (folder / f"{name}.jsonl" for name in ("fitted", "held", "text"))
    for path, some in ((fitted, lines[4:]), (held, lines[:4]), (text, [{"prompt": [], "answer": [3, 8, 1]}])):
        path.write_text("".join(json.dumps(line) + "\n" for line in some))
    about, joint, adapter = ("--context-tokens", ",".join(map(str, TOKENS))), folder / "joint", folder / "adapter"
    for made in (joint, adapter):
        shutil.rmtree(made, ignore_errors=True)
    done = run("patch", file, "--joint", *about, "--text", text, "--keep", "none", "-o", joint)
    if done.returncode:
        return f"no change for a text: {done.stderr}"
    wanted, found = answered(module, TOKENS, [3, 8, 1]), answered(module, [], [3, 8, 1], export.apply_patch(module, joint, file))
    worst = float((found - wanted).abs().max() / wanted.abs().max())
    if not worst < 10 * EXACT:
        return f"with the change for a text the logits differ by {worst:.3g}"
    done = run("distil", file, *about, "--text", fitted, "--held-out", held, "--rank", "3", "--anyway", "-o", adapter)
    if done.returncode:
        return f"no adapter: {done.stderr}"
    runs = {"full": (TOKENS, {}), "without": ([], {}), "adapted": ([], export.apply_patch(module, adapter, file))}
    expected = card_numbers.numbers(lambda name, line: answered(module, runs[name][0], line["prompt"] + line["answer"], runs[name][1])
                                    [-len(line["answer"]) - 1:-1], lines[:4])
    errors = card_numbers.differences(json.loads((adapter / "card.json").read_text()), expected)
    return "" if max(errors.values()) < 1e-4 else f"the card differs from PyTorch by {errors}"


def wrong_with_other_weights(module, file, words, folder):
    """The program with the weights of another module of the same kind, by the names that PyTorch gives them."""
    weights, logits = folder / "weights", folder / "logits.safetensors"
    weights.mkdir(exist_ok=True)
    (weights / "config.json").write_text("{}")
    save_file({name: tensor.contiguous() for name, tensor in module.state_dict().items()}, weights / "model.safetensors")
    logits.unlink(missing_ok=True)
    done = run("verify", file, *words, "--weights", weights, "--logits", logits)
    if done.returncode:
        return f"with other weights: {done.stderr}"
    wanted, found = logits_of(module, TOKENS), load_file(logits)["full"][0]
    worst = float((found - wanted).abs().max() / wanted.abs().max())
    if not worst < EXACT:
        return f"with other weights the logits differ by {worst:.3g}"
    of = next(name for name in ("qkv", "layers.0.qkv.weight") if name in module.state_dict())
    for change, said in ((lambda tensors: tensors.pop(of), f"has no tensor '{of}', of which '.+' is a part"),
                         (lambda tensors: tensors.update({of: tensors[of].reshape(-1)[:40].clone()}), f"tensor '{of}' has shape .40., in which ")):
        tensors = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
        change(tensors)
        save_file(tensors, weights / "model.safetensors")
        done = run("verify", file, *words, "--weights", weights)
        if done.returncode != 2 or not re.search(said, done.stderr):
            return f"expected a refusal /{said}/, found exit code {done.returncode}: {done.stderr}"
    return ""


def main():
    draw = random.Random(given.seed)
    choose = lambda of: draw.choice(list(of))  # noqa: E731
    cases = [*views.each_way(choose), *(views.made(choose) for _ in range(given.generated))]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, build in cases:
            if given.only in name:
                wrong = judged(build, Path(folder))
                failures += bool(wrong)
                print(name, f"FAILS: {wrong}" if wrong else "as expected", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
