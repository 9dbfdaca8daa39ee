#!/usr/bin/env python3
"""Judges ctxc on models as people publish them, each as a directory and as a GGUF file.

  published.py CTXC LLAMA.CPP language-model DIRECTORY FILE.gguf
  published.py CTXC LLAMA.CPP embedder DIRECTORY FILE.gguf

DIRECTORY is what transformers reads of the same weights. Of both forms `ctxc check` must find every layer
controllable; a prompt's tokens must be AutoTokenizer's, for the file llama.cpp's; and what `ctxc patch` writes must, in
transformers, give the last token alone what it gives with its context.
  language-model  the full run's logits against transformers', of a prompt and of a chat whose system message is
                  absorbed; the chat's tokens against apply_chat_template's; the predictions of `ctxc inspect`
  embedder        the last hidden state against transformers', the pooled vector against sentence-transformers' rule,
                  computed by torch, and against llama.cpp's, which computes in half precision
Exit code: 0 if all of this holds, otherwise 1.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import judge
import numpy as np
import programs
import torch
import transformers
from llama_cpp import LlamaCpp
from safetensors.torch import load_file

PROMPT = "The capital of France is Paris, and its river is called"
SYSTEM, USER = "You are a pirate. Answer in one sentence.", "What is the largest planet?"
SENTENCE = "The quick brown fox jumps over the lazy dog, isn't it?"


class Form:
    """ctxc's runs on one form of a model."""

    def __init__(self, ctxc, path, folder):
        self.ctxc, self.path, self.folder = ctxc, str(path), Path(folder)

    def run(self, command, *options):
        return programs.run([self.ctxc, command, self.path, *options], check=True)

    def report(self, command, *options):
        file = self.folder / "report.json"
        self.run(command, *options, "--json", file)
        return json.loads(file.read_text())

    def verified(self, *options):
        """The report and the vectors of the full run."""
        file = self.folder / "vectors.safetensors"
        report = self.report("verify", *options, "--logits", file)
        return report, load_file(file)["full"]

    def controllable(self):
        report = json.loads(self.run("check", "--format", "json").stdout)
        return all(group["verdict"] == "controllable" for group in report["groups"])

    def judged(self, directory, *options):
        """Whether transformers agrees with the patch; by the directory's tensors, whose names a file has too."""
        file = self.folder / "patch.safetensors"
        self.run("patch", *options, "-o", file)
        self.run("verify", "--patch", file)
        return judge.main([str(directory), str(file), "--control-above", "0.1"]) == 0


def tokens_of(report):
    return report["settings"]["tokens"]


@torch.no_grad()
def last_logits(model, report):
    tokens = tokens_of(report) + [step["next"] for step in report["steps"][:-1]]
    return model(torch.tensor([tokens]), use_cache=False).logits[0, len(tokens_of(report)) - 1:]


def judge_language_model(form, args, model, expect):
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.directory)
    report, logits = form.verified("--prompt", PROMPT, "--generate", "3")
    text = PROMPT.encode()
    expect("tokens", tokens_of(report) == (args.vocabulary.ids(text, True) if form.path.endswith(".gguf")
                                           else tokenizer(PROMPT)["input_ids"]))
    expect("logits", float((logits - last_logits(model, report)).abs().max()), 2e-3)
    chat, logits = form.verified("--chat", "--system", SYSTEM, "--prompt", USER, "--absorb", "system", "--generate", "3")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    expect("chat's tokens", tokens_of(chat) == tokenizer(whole, add_special_tokens=False)["input_ids"])
    expect("chat's logits", float((logits - last_logits(model, chat)).abs().max()), 2e-3)
    found = form.report("inspect", "--prompt", PROMPT)["subject"]["predictions"]["full"]
    likely = last_logits(model, report)[0].softmax(-1)
    expect("predictions", [each["token"] for each in found] == likely.topk(len(found)).indices.tolist())
    expect("probabilities", max(abs(each["probability"] - float(likely[each["token"]])) for each in found), 1e-4)
    expect("texts", all(each["text"] == tokenizer.decode(each["token"]) for each in found))
    expect("patch", form.judged(args.directory, "--prompt", PROMPT))


def judge_embedder(form, args, model, expect):
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.directory)
    report, states = form.verified("--prompt", SENTENCE)
    ids = tokenizer(SENTENCE)["input_ids"]
    expect("tokens", tokens_of(report) == ids == args.vocabulary.ids(SENTENCE.encode(), True))
    with torch.no_grad():
        rows = model(torch.tensor([ids])).last_hidden_state[0].double()
    expect("last hidden state", float((states[0] - rows[-1]).abs().max()), 1e-4)
    mean = rows.mean(0)
    is_scaled = not form.path.endswith(".gguf")  # a file does not say that
    expected = torch.nn.functional.normalize(mean, dim=0) if is_scaled else mean
    pooled = torch.tensor(report["pooled"]["full"], dtype=torch.float64)
    expect("pooled", float((pooled - expected).abs().max()), 1e-4)
    llama = np.array(args.vocabulary.embedding(ids))
    unit = (pooled / pooled.norm()).numpy()
    expect("llama.cpp's pooled", float(np.abs(unit - llama / np.linalg.norm(llama)).max()), 2e-3)
    expect("near", report["pooled"]["patched"]["linf"] < 1e-4 * report["pooled"]["control"]["linf"])
    inspected = form.report("inspect", "--prompt", SENTENCE)
    expect("no predictions", not inspected["model"]["head"])
    expect("patch", form.judged(args.directory, "--prompt", SENTENCE))


KINDS = {"language-model": judge_language_model, "embedder": judge_embedder}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("llama_cpp", metavar="LLAMA.CPP", type=Path)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("directory", metavar="DIRECTORY")
    parser.add_argument("file", metavar="FILE.gguf")
    args = parser.parse_args()
    args.vocabulary = LlamaCpp(args.llama_cpp / "llama.so").open(args.file, whole=args.kind == "embedder")
    model = judge.load_checkpoint(args.directory)
    good = True
    for path in (args.directory, args.file):
        shown = {"model": Path(path).name}

        def expect(what, found, most=None):
            nonlocal good
            shown[what] = found
            good &= found if most is None else found <= most

        with tempfile.TemporaryDirectory() as folder:
            form = Form(args.ctxc, path, folder)
            expect("controllable", form.controllable())
            KINDS[args.kind](form, args, model, expect)
        print(json.dumps(shown), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
