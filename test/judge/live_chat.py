#!/usr/bin/env python3
"""A chat model as people run it, live in float32 and in bfloat16: ctxc.hf.generate gives the module's own greedy answer, with
the chat template and without, with patches beside the weights and added to them. In bfloat16 two tokens may be nearer to each
other than the module's own roundings, which a patch does not have: such ties are counted apart.

  live_chat.py PACKAGE MODEL [--prompts N] [--tokens N] [--dtypes NAME…] [--keep none]

--keep none shows what happens without the tokens that are kept by default."""

import argparse
import copy
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
from ctxc._live_text import conversation  # noqa: E402

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


class Own:
    """The module's own run, which reads what was generated token by token."""

    def __init__(self, module, exact, ids):
        self.exact = exact
        self.module, self.ids, self.cache, self.logits = module, [], None, None
        self.read(ids)

    @torch.no_grad()
    def read(self, ids):
        made = self.module(torch.tensor([ids]), past_key_values=self.cache, use_cache=True)
        self.ids, self.cache, self.logits = self.ids + ids, made.past_key_values, made.logits[0, -1].float()

    @torch.no_grad()
    def is_tie(self, token):
        """Whether the token is behind the first one by no more than what the module's roundings change: the two logits by as much
        as they differ from those of the same weights in float32."""
        exact = self.exact(torch.tensor([self.ids])).logits[0, -1]
        return float(self.logits.max() - self.logits[token]) <= 2 * float((exact - self.logits).abs().max())


def judged(module, exact, tokenizer, text, is_chat):
    """For patches beside the weights and in them: how many tokens are the module's own and how many are ties, of how many."""
    prompt = [{"role": "user", "content": text}] if is_chat else text
    ids = conversation(tokenizer, [("user", text)]) if is_chat else tokenizer(text)["input_ids"]
    own, equal, ties, count, kept = Own(module, exact, ids), [0, 0], [0, 0], 0, ()
    for token, patch in ctxc.hf.generate(module, tokenizer, prompt, given.tokens, given.keep, self_check=False, threads=1):
        count, kept = count + 1, patch.origin.kept
        added = int(ctxc.hf.patched_logits(module, patch).argmax())
        for form, found in enumerate((token, added)):
            is_equal = found == int(own.logits.argmax())
            equal[form] += is_equal
            ties[form] += not is_equal and own.is_tie(found)
        own.read([token])
    return equal, ties, count, kept


def main():
    tokenizer = transformers.AutoTokenizer.from_pretrained(given.model)
    bad = 0
    warnings.simplefilter("ignore")
    for name in given.dtypes:
        dtype = getattr(torch, name)
        module = transformers.AutoModelForCausalLM.from_pretrained(given.model, dtype=dtype).eval()
        exact = module if name == "float32" else copy.deepcopy(module).float()
        for is_chat in (True, False):
            begin = time.monotonic()
            for text in PROMPTS[:given.prompts]:
                equal, ties, count, kept = judged(module, exact, tokenizer, text, is_chat)
                bad += any(a + b != count for a, b in zip(equal, ties)) or (name == "float32" and ties != [0, 0])
                print(f"{name:8} {'chat' if is_chat else 'text'}  beside {equal[0]:2} (and {ties[0]} ties) of {count:2}, added "
                      f"{equal[1]:2} (and {ties[1]}) of {count:2}, kept {list(kept)}: {text[:40]!r}", flush=True)
            print(f"{time.monotonic() - begin:.0f} s", flush=True)
    print(f"{bad} answers differ from the module's own" if bad else "every token is the module's own")
    return bad > 0


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    sys.exit(main())
