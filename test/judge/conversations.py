#!/usr/bin/env python3
"""Judges adapters in the place of a system message: by transformers' chat template, its model, and PEFT.

  conversations.py CTXC MODEL [--tokens N] [--length N] [--least SHARE]
  conversations.py CTXC MODEL --tokenizer TOKENIZER.json --template TOKENIZER_CONFIG.json …

`ctxc distil --chat --system` is run as a user runs it: a system message, and a file of questions. What stands in front is
the beginning of what apply_chat_template writes without the system message; each first answer that was fitted or judged
follows what it writes of one of the questions, with the system message and without; an answer ends with the end of its
turn. The card's share is the one of transformers' logits, with the adapter by PEFT, and at least SHARE. Exit code: 0 if
all agree.
"""
import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import peft
import torch
import transformers

import programs

SYSTEM = "You are Captain Mog, an old pirate. Answer every question in pirate speech, in one short sentence."
QUESTIONS = [
    "What is the capital of France?", "How do I boil an egg?", "Why is the sky blue?", "Who are you?", "What is a good book?",
    "How far is the moon?", "What do cats eat?", "Is it going to rain?", "Tell me about Paris.", "How old is the king?",
    "What is in the sea?", "Where is my house?", "Can you sing?", "What is two and three?", "How do I learn to swim?",
    "Who made the first ship?", "What is a storm?", "Where do fish sleep?", "Give me some advice.", "What is your name?",
    "How do I find the north?", "Why do people travel?", "What is gold made of?", "How big is a whale?", "Tell me a story.",
    "What should I eat today?", "When does the sun rise?", "Who lives on an island?", "What is a map for?", "Is tea better?"]
RELATIVE = 2e-3


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@torch.no_grad()
def log_probabilities(model, front, line):
    tokens = front + line["prompt"] + line["answer"]
    return model(torch.tensor([tokens])).logits[0, -len(line["answer"]) - 1:-1].double().log_softmax(-1)


def share_of(adapted, context, front, lines):
    sums = [0.0, 0.0]
    for line in lines:
        with adapted.disable_adapter():
            full, plain = (log_probabilities(adapted, before, line) for before in (context, front))
        for i, found in enumerate((plain, log_probabilities(adapted, front, line))):
            sums[i] += (full.exp() * (full - found)).sum().item()
    return 1 - sums[1] / sums[0]


def problems_of(texts, front, tokenizer):
    """What is in front of the first answers, beside transformers' template."""
    render = lambda messages: tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    user = lambda question: {"role": "user", "content": question}
    plain = [render([user(question)]) for question in QUESTIONS]
    full = [render([{"role": "system", "content": SYSTEM}, user(question)]) for question in QUESTIONS]
    first = [line for line in texts if line.get("turn", 1) == 1 and front + line["prompt"] in plain]
    if len(first) < 5:
        yield f"only {len(first)} texts follow what the template writes: in front {front}, plain {plain[0]}"
    starts = {tuple(full[plain.index(front + line["prompt"])][:-len(line["prompt"])]) for line in first}
    if len(starts) != 1:
        yield f"with the system message there are {len(starts)} different beginnings"
    for line in first:
        if full[plain.index(front + line["prompt"])][-len(line["prompt"]):] != line["prompt"]:
            yield f"with the system message the template writes another text than {line['prompt']}"
    if max(line.get("turn", 1) for line in texts) < 4:
        yield "no conversation has four turns"


def ends_of_turns(texts, length, tokenizer):
    message = tokenizer.apply_chat_template([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
                                            return_dict=False)
    ends = {line["answer"][-1] for line in texts if len(line["answer"]) <= length and line["answer"][-1] in message}
    whole = [line for line in texts if len(line["answer"]) < length]
    if whole and any(line["answer"][-1] not in ends for line in whole):
        yield "an answer that is not cut does not end with the end of its turn"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--template", type=Path)
    parser.add_argument("--tokens", type=int, default=700)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--least", type=float, default=-10)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.tokenizer:
            shutil.copytree(args.model, folder / "model")
            shutil.copyfile(args.template, folder / "model" / "tokenizer_config.json")
            programs.run([sys.executable, Path(__file__).parents[1] / "Driver/Inputs/more_tokens.py", args.tokenizer,
                          folder / "model"], check=True)
            args.model = folder / "model"
        (folder / "system.txt").write_text(SYSTEM + "\n")
        (folder / "questions.txt").write_text("".join(f"{question}\n" for question in QUESTIONS))
        made = programs.run([args.ctxc, "distil", args.model, "--chat", "--system", folder / "system.txt", "--prompts",
                             folder / "questions.txt", "--tokens", str(args.tokens), "--length", str(args.length),
                             "--matrices-only", "--anyway", "-o", folder / "made"])
        if made.returncode:
            print(f"  WRONG: {made.stderr}")
            return 1
        print(made.stdout)
        card = json.loads((folder / "made" / "card.json").read_text())
        texts = [line for part in ("texts", "held-out") for line in lines_of(folder / "made" / f"{part}.jsonl")]
        tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
        problems = list(problems_of(texts, card["prefix"], tokenizer))
        problems += ends_of_turns(texts, args.length, tokenizer)
        model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
        adapted = peft.PeftModel.from_pretrained(model, folder / "made").eval()
        system = tokenizer.apply_chat_template([{"role": "system", "content": SYSTEM},
                                                {"role": "user", "content": QUESTIONS[0]}],
                                               add_generation_prompt=True, return_dict=False)
        context = system[:card["context_tokens"]]
        found = share_of(adapted, context, card["prefix"], lines_of(folder / "made" / "held-out.jsonl"))
        if abs(found - card["share_recovered"]) > RELATIVE * max(1, abs(found)):
            problems.append(f"transformers' share is {found:.4f}, the card's {card['share_recovered']:.4f}")
        if found < args.least:
            problems.append(f"the share is {found:.3f}, expected {args.least} and more")
        if "Captain" in tokenizer.decode(card["prefix"]):
            problems.append("the system message stays in front")
        for problem in problems:
            print(f"  WRONG: {problem}")
        return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
