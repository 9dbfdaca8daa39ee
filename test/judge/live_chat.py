#!/usr/bin/env python3
"""A chat model as people run it, live in float32 and in bfloat16: ctxc.hf.generate gives the module's own greedy answer, with
the chat template and without, with patches beside the weights and added to them.

  live_chat.py PACKAGE MODEL [--prompts N] [--tokens N] [--dtypes NAME…] [--keep none]

--keep none shows what happens without the tokens that are kept by default."""

import argparse
import sys
import time
import warnings

parser = argparse.ArgumentParser()
parser.add_argument("package")
parser.add_argument("model")
parser.add_argument("--prompts", type=int, default=12)
parser.add_argument("--tokens", type=int, default=20)
parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
parser.add_argument("--keep", choices=["none"])
given = parser.parse_args()
sys.path.insert(0, given.package)

import ctxc  # noqa: E402
import ctxc.hf  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from ctxc._live_text import conversation, ends_of  # noqa: E402

PROMPTS = [
    "The capital of France is Paris, and the capital of Italy is",
    "Once upon a time there was a little girl who lived in a village near the forest.",
    "Water boils when its temperature reaches one hundred degrees, and it freezes",
    "My favourite recipe for apple pie begins with six apples and a cup of sugar.",
    "List the planets of the solar system in order of their distance from the sun.",
    "The mitochondria is the powerhouse of the cell. It produces",
    "def factorial(n):\n    if n == 0:\n        return 1\n",
    "Explain in two sentences why the sky is blue during the day.",
    "In 1969, Neil Armstrong became the first person to walk on",
    "To be, or not to be, that is the question:",
    "What is the difference between a virus and a bacterium?",
    "The train left the station at nine in the morning and arrived",
]


@torch.no_grad()
def own_answer(module, ids, count):
    """The module's greedy tokens, and by how much each is ahead of the second."""
    made, ahead, cache, last = [], [], None, torch.tensor([ids])
    for _ in range(count):
        output = module(last, past_key_values=cache, use_cache=True)
        cache, two = output.past_key_values, output.logits[0, -1].float().topk(2)
        made.append(int(two.indices[0]))
        ahead.append(float(two.values[0] - two.values[1]))
        if made[-1] in ends_of(module, None):
            break
        last = torch.tensor([made[-1:]])
    return made, ahead


def judged(module, tokenizer, text, is_chat):
    """For patches beside the weights and in them: how many tokens are the module's own, of how many."""
    prompt = [{"role": "user", "content": text}] if is_chat else text
    ids = conversation(tokenizer, [("user", text)]) if is_chat else tokenizer(text)["input_ids"]
    own, ahead = own_answer(module, ids, given.tokens)
    equal, kept, wrong = [0, 0], (), []
    for at, (token, patch) in enumerate(ctxc.hf.generate(module, tokenizer, prompt, given.tokens, given.keep, self_check=False,
                                                            threads=1)):
        added = int(ctxc.hf.patched_logits(module, patch).argmax())
        kept = patch.origin.kept
        for form, found in enumerate((token, added)):
            equal[form] += at < len(own) and found == own[at]
            if at < len(own) and found != own[at]:
                wrong.append((at, form, f"{ahead[at]:.3g}", f"{patch.replay_error('bf16'):.3f}"))
        if at >= len(own) or token != own[at]:
            break
    return equal, len(own), kept, wrong


def main():
    tokenizer = transformers.AutoTokenizer.from_pretrained(given.model)
    bad = 0
    warnings.simplefilter("ignore")
    for name in given.dtypes:
        dtype = getattr(torch, name)
        module = transformers.AutoModelForCausalLM.from_pretrained(given.model, dtype=dtype).eval()
        for is_chat in (True, False):
            begin = time.monotonic()
            for text in PROMPTS[:given.prompts]:
                equal, count, kept, wrong = judged(module, tokenizer, text, is_chat)
                bad += equal != [count, count]
                print(f"{name:8} {'chat' if is_chat else 'text'}  beside {equal[0]:2} of {count:2}, added {equal[1]:2} of "
                      f"{count:2}, kept {list(kept)}: {text[:40]!r} {wrong or ''}", flush=True)
            print(f"{time.monotonic() - begin:.0f} s", flush=True)
    print(f"{bad} answers differ from the module's own" if bad else "every token is the module's own")
    return bad > 0


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    sys.exit(main())
