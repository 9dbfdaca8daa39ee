#!/usr/bin/env python3
"""Judges adapters of models whose first token is attention's sink: by transformers and PEFT.

  sinks.py CTXC [--seeds N]

Models are made by chance, with a sink that is planted in their weights: token 0 with nothing before it gets a state that is
many times as long as all others, and attention rests on it; behind any other token it is ordinary. That is what models
without a begin-of-sequence token do with the token that opens each text. The texts begin with token 0. `ctxc distil` fits
an adapter with nothing in front of them, and one behind a kept token 0, whose state is the same as the text's first; for
that one there is a warning, which names the token and another one. transformers says that the sink is there, that it is
gone behind the context, that it is still there with the adapter, and how much the adapter recovers. Exit code: 0 if all is
as it should be.
"""
import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

import peft
import tokenizers
import torch
import transformers

import programs

VOCABULARY, WIDTH, HEADS, LAYERS = 60, 64, 4, 4
OPENS, BEFORE, ALWAYS, SINK = range(4)  # features of the stream: the first token; others before it; 1; the sink's state
TURN = -1  # of a head's width: the part whose rotation is slowest


def plant(model):
    """The sink's weights, in a Llama-like model of random ones."""
    scale = (WIDTH // HEADS) ** 0.5
    embedding = model.model.embed_tokens.weight
    embedding[:, :4] = 0
    embedding[0, OPENS] = 4
    embedding[:, ALWAYS] = 4
    for number, layer in enumerate(model.model.layers):
        attention, mlp = layer.self_attn, layer.mlp
        size = attention.head_dim
        query, key = attention.q_proj.weight, attention.k_proj.weight
        value, out = attention.v_proj.weight, attention.o_proj.weight
        for matrix in (query, key, value, mlp.gate_proj.weight, mlp.up_proj.weight):
            matrix[:, [OPENS, BEFORE, SINK]] = 0
        for matrix in (out, mlp.down_proj.weight):
            matrix[:4] = 0
        for head in range(HEADS if number else 1):
            query[head * size:(head + 1) * size] *= 1 if number else 0
            query[head * size + size + TURN] = 0
            query[head * size + size + TURN, ALWAYS] = scale
        for head in range(HEADS // 2 if number else 1):
            key[head * size + size + TURN] = 0
            if number:  # all heads read the sink where there is one
                key[head * size + size + TURN, SINK] = 0.25
            else:  # the first head reads every token but those that open
                key[head * size + size + TURN, [ALWAYS, OPENS]] = torch.tensor([3.0, -3.0])
                value[0] = 0
                value[0, [ALWAYS, OPENS]] = torch.tensor([1.0, -1.0])
                out[BEFORE, 0] = 1
        if number == 0:
            mlp.gate_proj.weight[0] = 0
            mlp.gate_proj.weight[0, [OPENS, BEFORE]] = torch.tensor([2.0, -6.0])
            mlp.up_proj.weight[0] = 0
            mlp.up_proj.weight[0, ALWAYS] = 1
            mlp.down_proj.weight[:, 0] = 0
            mlp.down_proj.weight[SINK, 0] = 60


@torch.no_grad()
def make(folder, seed):
    transformers.set_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS // 2, max_position_embeddings=256,
        rope_parameters={"rope_theta": 1e6, "rope_type": "default"}, bos_token_id=None, eos_token_id=1)
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.normal_(0, parameter.shape[1] ** -0.5)
    model.model.embed_tokens.weight.normal_(0, 1)
    model.lm_head.weight.mul_(2)
    plant(model)
    model.save_pretrained(folder)
    words = {f"w{i}": i for i in range(VOCABULARY)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w2"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    return model


@torch.no_grad()
def lengths(model, tokens):
    """Of the states behind each layer but the last: layers x tokens."""
    states = model(torch.tensor([tokens]), output_hidden_states=True).hidden_states
    return torch.stack(states[1:-1])[:, 0].norm(dim=-1)


@torch.no_grad()
def log_probabilities(model, front, tokens, prompt):
    logits = model(torch.tensor([front + tokens])).logits[0].double().log_softmax(-1)
    return logits[len(front) + prompt - 1:-1]


def share(model, adapted, context, front, lines):
    sums = [0, 0]
    for line in lines:
        tokens, prompt = line["prompt"] + line["answer"], len(line["prompt"])
        with adapted.disable_adapter():
            full = log_probabilities(adapted, context, tokens, prompt)
            plain = log_probabilities(adapted, [], tokens, prompt)
        for i, found in enumerate((plain, log_probabilities(adapted, front, tokens, prompt))):
            sums[i] += (full.exp() * (full - found)).sum().item()
    return 1 - sums[1] / sums[0]


def judge_seed(ctxc, seed, folder):
    source = random.Random(seed)
    words = lambda count: [source.randrange(3, VOCABULARY) for _ in range(count)]
    model = make(folder / "model", seed)
    context = [0] + words(12)
    lines = [{"prompt": [0] + words(3), "answer": words(10)} for _ in range(60)]
    (folder / "held.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:12]))
    (folder / "text.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[12:]))
    (folder / "keep.txt").write_text("w0")
    text = lines[0]["prompt"] + lines[0]["answer"]
    plain, full = lengths(model, text), lengths(model, context + text)
    usual = plain[:, 1:].median()
    problems = []
    if not plain[:, 0].min() > 20 * usual or not full[:, len(context)].max() < 3 * usual:
        problems.append(f"no sink is planted: {plain[:, 0]} of {usual}, with the context {full[:, len(context)]}")
    for kept, front in (([], []), (["--keep", folder / "keep.txt"], [0])):
        out = folder / f"adapter{len(front)}"
        made = programs.run([ctxc, "distil", folder / "model", "--context-tokens", ",".join(map(str, context)),
                             "--text", folder / "text.jsonl", "--held-out", folder / "held.jsonl", "--matrices-only",
                             "--rank", "16", *kept, "-o", out])
        if made.returncode:
            problems.append(made.stderr)
            continue
        warned = "'w0'" in made.stderr and "'w1'" in made.stderr
        if warned != bool(kept):
            problems.append(f"equal tokens in front: {made.stderr!r}")
        adapted = peft.PeftModel.from_pretrained(make(folder / "again", seed), out).eval()
        found = share(model, adapted, context, front, lines[:12])
        there = (lengths(adapted, front + text)[:, 0] / plain[:, 0] - 1).abs().max().item()
        print(f"  seed {seed}, {'behind an equal token' if kept else 'nothing kept'}: share {found:.3f}; "
              f"the sink changes by {there:.2g}", flush=True)
        if not found > 0.3 or not there < 0.2:
            problems.append("that is too little, or too much")
    for problem in problems:
        print(f"  WRONG: {problem}")
    return not problems


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    good = True
    for seed in range(args.seeds):
        with tempfile.TemporaryDirectory() as folder:
            good &= judge_seed(args.ctxc, seed, Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
