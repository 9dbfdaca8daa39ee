#!/usr/bin/env python3
"""PyTorch and transformers on a GPU, with random weights at a model's true shapes: plain decoding and
Algorithm 1, eager and by torch.compile. Prints one JSON object a line, {"what", "ms"} or {"what",
"why"} where it cannot be measured. Times are medians by the device's events.

  bench/gpu/peer.py MODEL --context N --prompt N
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]
from models import MODELS, SMALL  # noqa: E402

REPEATS = 10


def say(what, **fields):
    print(json.dumps({"what": what, **fields}), flush=True)


class Peer:
    def __init__(self, name, context, device):
        import torch
        import transformers
        self.torch, self.transformers, self.device = torch, transformers, device
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps((MODELS | SMALL)[name]))
            config = transformers.AutoConfig.from_pretrained(folder)
        torch.manual_seed(1)
        default = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        with torch.device(device):
            self.model = transformers.AutoModelForCausalLM.from_config(
                config, attn_implementation="sdpa").eval()
        torch.set_default_dtype(default)
        draw = lambda n: torch.randint(10, config.vocab_size, (1, n), device=device)
        self.prompt, self.token = draw(context), draw(1)
        self.position = torch.tensor([[context]], device=device)
        with torch.inference_mode():
            self.cache = transformers.DynamicCache(config=config)
            self.model(self.prompt, past_key_values=self.cache, logits_to_keep=1)

    def time(self, work):
        """The time of `work`; each call adds a token, since a cache with windows cannot be truncated."""
        torch, cache = self.torch, self.cache
        times = []
        with torch.inference_mode():
            for i in range(3 + REPEATS):
                self.position.fill_(cache.get_seq_length())
                if self.device == "cuda":
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    work(cache)
                    end.record()
                    torch.cuda.synchronize()
                    milliseconds = begin.elapsed_time(end)
                else:
                    work(cache)
                    milliseconds = 0.0
                if i >= 3:
                    times.append(milliseconds)
        return statistics.median(times)

    def prefill(self, count):
        """The time of a prompt of `count` tokens from its start, including the last token's logits."""
        torch = self.torch
        prompt = torch.randint(10, self.model.config.vocab_size, (1, count), device=self.device)
        times = []
        with torch.inference_mode():
            for i in range(2 + 5):
                cache = self.transformers.DynamicCache(config=self.model.config)
                begin, end = (torch.cuda.Event(enable_timing=True) if self.device == "cuda" else None
                              for _ in range(2))
                if begin:
                    begin.record()
                self.model(prompt, past_key_values=cache, logits_to_keep=1)
                if end:
                    end.record()
                    torch.cuda.synchronize()
                if i >= 2:
                    times.append(begin.elapsed_time(end) if begin else 0.0)
        return statistics.median(times)

    def plain(self, model):
        return lambda cache: model(self.token, past_key_values=cache, position_ids=self.position,
                                   logits_to_keep=1)


def measure(what, work):
    try:
        say(what, ms=work())
    except Exception as error:  # each is measured separately; the table reports those that fail
        say(what, why=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=4096, help="tokens that are read at once")
    parser.add_argument("--device", default="cuda", help="cpu runs the same without its times")
    args = parser.parse_args()
    try:
        import torch
        if args.device == "cuda" and not torch.cuda.is_available():
            return say("pytorch", why="PyTorch shows no device")
        peer = Peer(args.model, args.context, args.device)
    except Exception as error:
        return say("pytorch", why=f"{type(error).__name__}: {error}")
    say("pytorch", version=torch.__version__, transformers=peer.transformers.__version__)
    measure("plain", lambda: peer.time(peer.plain(peer.model)))
    measure("prefill", lambda: peer.prefill(args.prompt))

    import algorithm1
    forms = {}
    layers = getattr(getattr(peer.model, "model", None), "layers", None)
    if layers is not None and hasattr(getattr(layers[0], "mlp", None), "gate_proj"):
        for name, tuned in (("algorithm1", False), ("algorithm1_tuned", True)):
            forms[name] = algorithm1.Algorithm1(peer.model, materialised=False, tuned=tuned)
            measure(name, lambda form=forms[name]: peer.time(
                lambda cache: form.step(peer.token, cache, peer.position)))
    else:
        say("algorithm1", why="bench/peers/algorithm1.py knows gate, up and down projections only")
    if args.device == "cuda":  # compiling is slow, and so comes last
        measure("plain_compiled", lambda: peer.time(peer.plain(torch.compile(peer.model))))
        if forms:
            step = torch.compile(forms["algorithm1_tuned"].step)
            measure("algorithm1_compiled", lambda: peer.time(
                lambda cache: step(peer.token, cache, peer.position)))


if __name__ == "__main__":
    main()
