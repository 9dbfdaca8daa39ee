#!/usr/bin/env python3
"""Train the small Gemma 3 model that ships in examples/models/gemma3-kjv-1m, or a Llama or a mixture like it.

Needs the Debian package bible-kjv (its `bible` command prints the text of
bible-kjv-text, the King James Version) and the Python packages torch,
transformers and sentencepiece. Everything is seeded and runs on one thread,
so the same versions of these packages on the same kind of processor give the
same model.

    tools/train-shipped-model.py --out build/gemma3-kjv-1m
    tools/train-shipped-model.py --out build/llama-kjv-1m --architecture llama
    tools/train-shipped-model.py --out build/mixture-kjv-3m --architecture mixture

The directory written is a transformers checkpoint (config.json,
model.safetensors in bfloat16, tokenizer.model), rewritten every
--checkpoint-every steps, so that a run that is cut short leaves a usable one.
"""

import argparse
import io
import itertools
import math
import pathlib
import random
import re
import subprocess
import time

import sentencepiece
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, Qwen2MoeConfig

PAD, EOS, BOS, UNK = 0, 1, 2, 3  # Gemma's numbering


def read_chapters():
    """The text as a list of chapters, each a list of verses without their references."""
    text = subprocess.run(["bible", "-f", "Gen1:1-Rev22:21"], check=True, capture_output=True,
                          text=True).stdout
    lines = [re.fullmatch(r"(\w+):\d+ (.*)", line).groups() for line in text.splitlines()]
    return [[" ".join(verse.split()) for _, verse in chapter]
            for _, chapter in itertools.groupby(lines, key=lambda line: line[0])]


def train_tokenizer(chapters, vocab_size, path):
    """BPE with Gemma's settings: no normalisation, no dummy prefix, bytes for unseen characters."""
    written = io.BytesIO()  # the model would record a file name
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=itertools.chain.from_iterable(chapters), model_writer=written,
        model_type="bpe", vocab_size=vocab_size, byte_fallback=True, character_coverage=1.0,
        normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False,
        split_digits=True, pad_id=PAD, eos_id=EOS, bos_id=BOS, unk_id=UNK, pad_piece="<pad>",
        eos_piece="<eos>", bos_piece="<bos>", unk_piece="<unk>", num_threads=1, minloglevel=1)
    path.write_bytes(written.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def encode(tokenizer, chapters):
    """One stream `<bos> verse \\n verse \\n … <eos> <bos> …` and where each verse starts in it."""
    stream, starts = [], []
    for chapter in chapters:
        stream.append(BOS)
        for verse in chapter:
            starts.append(len(stream))
            stream += tokenizer.encode(verse + "\n")
        stream.append(EOS)
    return torch.tensor(stream), starts


def gemma3_config(vocab_size):
    """Gemma 3's features at a size that fits a repository; its window is shorter than a prompt."""
    return Gemma3TextConfig(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=384, num_hidden_layers=6,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, query_pre_attn_scalar=32,
        sliding_window=32, max_position_embeddings=512,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                         "full_attention": {"rope_type": "default", "rope_theta": 1e6}},
        pad_token_id=PAD, eos_token_id=EOS, bos_token_id=BOS)


def llama_config(vocab_size):
    """The same sizes in Llama's blocks: norms in front of attention and MLP alone, no window."""
    return LlamaConfig(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=384, num_hidden_layers=6,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, tie_word_embeddings=True,
        pad_token_id=PAD, eos_token_id=EOS, bos_token_id=BOS)


def mixture_config(vocab_size):
    """Llama's attention, and in the place of its MLP eight experts, of which a token chooses two, beside a shared one."""
    return Qwen2MoeConfig(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=384, moe_intermediate_size=96,
        shared_expert_intermediate_size=96, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
        num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, tie_word_embeddings=True,
        pad_token_id=PAD, eos_token_id=EOS, bos_token_id=BOS)


def batch_loss(model, tokens):
    """Mean cross-entropy, in nats per token, of each token given those before it."""
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def sample_batch(stream, starts, rows, length, rng):
    """Windows that begin with <bos> and a random verse, as a prompt does."""
    begins = [min(rng.choice(starts), len(stream) - length) for _ in range(rows)]
    windows = torch.stack([stream[b:b + length] for b in begins])
    return torch.cat([torch.full((rows, 1), BOS), windows], dim=1)


@torch.no_grad()
def held_out_loss(model, stream, length):
    """The loss on consecutive windows of the held-out chapters."""
    windows = stream[:len(stream) // length * length].view(-1, length)
    windows = torch.cat([torch.full((len(windows), 1), BOS), windows], dim=1)
    losses = [batch_loss(model, rows).item() * len(rows) for rows in windows.split(16)]
    return sum(losses) / len(windows)


def save(model, path):
    """Write the weights rounded to bfloat16; the model in memory keeps float32."""
    rounded = AutoModelForCausalLM.from_config(model.config)
    rounded.load_state_dict(model.state_dict())
    rounded.to(torch.bfloat16).save_pretrained(path)
    (path / "generation_config.json").unlink(missing_ok=True)


def train(model, stream, starts, held_out, args):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": args.weight_decay},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=args.lr, betas=(0.9, 0.95), fused=True)
    rng, seen, mean, began = random.Random(args.seed), 0, None, time.time()
    for step in range(1, args.stop_after + 1):
        warmup = min(1.0, step / args.warmup)
        cosine = 0.5 * (1 + math.cos(math.pi * step / args.steps))
        for group in optimizer.param_groups:
            group["lr"] = args.lr * warmup * (0.02 + 0.98 * cosine)
        tokens = sample_batch(stream, starts, args.rows, args.length, rng)
        loss = batch_loss(model, tokens)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += tokens[:, 1:].numel()
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if step % 50 == 0:
            print(f"step {step} tokens {seen} loss {mean:.3f} seconds {time.time() - began:.0f}",
                  flush=True)
        if step % args.checkpoint_every == 0 or step == args.stop_after:
            save(model, args.out)
            print(f"step {step} held-out loss {held_out_loss(model, held_out, args.length):.3f}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory to write")
    parser.add_argument("--architecture", choices=["gemma3", "llama", "mixture"], default="gemma3")
    parser.add_argument("--steps", type=int, default=6000, help="steps the cosine is laid out for")
    parser.add_argument("--stop-after", type=int, default=5000,
                        help="last step taken; the loss on held-out text no longer falls there")
    parser.add_argument("--rows", type=int, default=8, help="sequences a step")
    parser.add_argument("--length", type=int, default=256, help="tokens a sequence")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=200, help="steps of linear warm-up")
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--vocab-size", type=int, default=2048)
    parser.add_argument("--hold-out-every", type=int, default=40, help="chapters")
    parser.add_argument("--checkpoint-every", type=int, default=500, help="steps")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    chapters = read_chapters()
    tokenizer = train_tokenizer(chapters, args.vocab_size, args.out / "tokenizer.model")
    every = args.hold_out_every
    kept = [chapter for i, chapter in enumerate(chapters) if i % every != every - 1]
    stream, starts = encode(tokenizer, kept)
    held_out, _ = encode(tokenizer, chapters[every - 1::every])
    config = {"gemma3": gemma3_config, "llama": llama_config, "mixture": mixture_config}[args.architecture]
    model = AutoModelForCausalLM.from_config(config(args.vocab_size))
    print(f"{len(stream)} tokens to train on, {len(held_out)} held out, "
          f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    train(model, stream, starts, held_out, args)

    rounded = AutoModelForCausalLM.from_pretrained(args.out, dtype=torch.float32)
    for length in (args.length, 2 * args.length - 1):
        print(f"as written (bfloat16), windows of {length}: held-out loss "
              f"{held_out_loss(rounded, held_out, length):.3f}")


if __name__ == "__main__":
    main()
