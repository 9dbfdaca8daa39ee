#!/usr/bin/env python3
"""PyTorch and transformers as a process that is timed on demand.

  pytorch_peer.py MODEL --dtype float32|bfloat16 --threads N [--context C] [--tokens T] [--prefill P]
                  [--without-patches]

Loads the model, checks that Algorithm 1 is exact in it, prints one line of JSON (versions, checks)
and then, for each name of a measurement that it reads, one line: milliseconds. Names:

  plain               decoding of one token behind C others (median of T)
  factored            Algorithm 1 whole: full run, reduced run with patches, verification
  materialised        the same with patches added to the weights, and put back
  factored_tuned, materialised_tuned   both as algorithm1.py tunes them
  prefill             P tokens at once, with the logits of the last one

With --without-patches there is no Algorithm 1, which knows the forms of a few types only, and attention is computed as
transformers chooses for the type.
"""

import argparse
import json
import os
import statistics
import sys
import time

REPEATS = 3  # how often one measurement repeats Algorithm 1 and prefill


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=10)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--without-patches", action="store_true")
    return parser.parse_args()


ARGS = parse()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before PyTorch makes its pool
import algorithm1  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def milliseconds(work):
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


class Peer:
    def __init__(self, args):
        self.args = args
        torch.set_num_threads(args.threads)
        transformers.utils.logging.disable_progress_bar()
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            args.model, dtype=getattr(torch, args.dtype),
            attn_implementation=None if args.without_patches else "sdpa").eval()
        generator = torch.Generator().manual_seed(1)
        draw = lambda n: torch.randint(10, self.model.config.vocab_size, (1, n), generator=generator)
        self.context, self.token, self.prompt = draw(args.context), draw(1), draw(args.prefill)
        self.position = torch.tensor([[args.context]])
        forms = () if args.without_patches else ("factored", "materialised")
        self.forms = {form + suffix: algorithm1.Algorithm1(self.model, form == "materialised", tuned)
                      for form in forms for suffix, tuned in (("", False), ("_tuned", True))}

    @torch.inference_mode()
    def cache(self):
        cache = transformers.DynamicCache(config=self.model.config)
        self.model(self.context, past_key_values=cache, logits_to_keep=1)
        return cache

    def checks(self):
        return {name: form.check(self.token, self.cache(), self.position)
                for name, form in self.forms.items()}

    @torch.inference_mode()
    def plain(self):
        cache, token, times = self.cache(), self.token, []

        def decode():
            nonlocal token
            logits = self.model(token, past_key_values=cache, logits_to_keep=1).logits
            token = logits[:, -1].argmax(-1, keepdim=True)

        for _ in range(self.args.tokens):
            times.append(milliseconds(decode))
        return statistics.median(times)

    def algorithm1(self, name):
        times = []
        for _ in range(REPEATS):
            cache = self.cache()
            times.append(milliseconds(
                lambda: self.forms[name].step(self.token, cache, self.position)))
        return statistics.median(times)

    @torch.inference_mode()
    def prefill(self):
        return milliseconds(lambda: self.model(self.prompt, logits_to_keep=1, use_cache=True))

    def measure(self, name):
        if name in self.forms:
            return self.algorithm1(name)
        return {"plain": self.plain, "prefill": self.prefill}[name]()


def main():
    peer = Peer(ARGS)
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                      "checks": peer.checks()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(peer.measure(line.strip())), flush=True)


if __name__ == "__main__":
    try:
        main()
    except algorithm1.NotExact as error:
        sys.exit(f"pytorch_peer: {ARGS.model}: {error}")
