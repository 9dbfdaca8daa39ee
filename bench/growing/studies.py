"""What is measured: a list of points for each study, by their keys, and how each is measured."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Callable

from growing import models
from programs import Ours, Setup, output_of

CONTEXT = 64       # tokens before the one that is decoded, where the context is not what grows
BUFFER = 2048      # MB by which memory is measured: more would take most of the time
TILED = ["MXFP4", "Q4_0", "Q4_K", "Q4_1", "Q5_0", "Q5_K", "Q5_1", "Q6_K", "Q8_0"]
PLAIN = ["F16", "BF16", "F32"]


@dataclass
class Point:
    study: str
    key: str
    about: dict  # what the tables and plots say of the point
    measure: Callable  # gives a dictionary of numbers


@dataclass
class Sizes:
    """What the studies go through. The small ones are for the test of the script."""
    contexts: list
    windowless: dict
    types: list
    quantised: dict
    positions: list
    depths: list
    layer: tuple  # hidden, intermediate, heads, vocabulary
    experts: list
    mixture: tuple
    widths: list  # hidden, intermediate, layers, heads, vocabulary
    odd: dict
    compiled: list
    buffer: int


FULL = Sizes(
    contexts=[512, 1024, 2048, 4096, 8192, 16384, 32768],
    windowless=models.llama(512, 1536, 8, 8, 32000, positions=1 << 16), types=TILED + PLAIN,
    quantised=models.llama(1024, 2816, 16, 16, 32000, groups=8), positions=[1, 8, 64, 512, 2048, 8192],
    depths=[2, 4, 8, 16, 32, 64], layer=(768, 2048, 12, 4096), experts=[4, 8, 16, 32, 64, 128],
    mixture=(512, 1024, 4, 8, 4096),
    widths=[(128, 384, 4, 4, 1024), (256, 768, 8, 4, 4096), (512, 1536, 12, 8, 16000),
            (768, 2048, 20, 12, 32000), (1280, 3584, 28, 20, 32000), (1792, 5120, 24, 28, 32000)],
    odd={"multiples of 32": (1024, 3072, 8, 8, 32000), "odd": (1023, 3071, 8, 8, 31999)},
    compiled=[2, 8, 32, 64], buffer=BUFFER)
SMALL = Sizes(
    contexts=[8, 16], windowless=models.llama(64, 96, 2, 4, 128), types=["Q4_K", "F32"],
    quantised=models.llama(256, 256, 2, 4, 128), positions=[1, 8], depths=[1, 2], layer=(64, 96, 4, 128),
    experts=[2, 4], mixture=(64, 96, 2, 4, 128), widths=[(32, 96, 2, 4, 128), (64, 96, 2, 4, 128)],
    odd={"multiples of 32": (64, 96, 2, 4, 128), "odd": (63, 95, 2, 4, 127)}, compiled=[1, 2], buffer=16)


class Studies:
    """`args` has build, model, threads, rounds, tokens and work; `sizes` what to go through."""

    def __init__(self, args, sizes):
        self.args, self.sizes = args, sizes
        self.ctxc = args.build / "bin/ctxc"
        self.work = args.work / "models"

    def points(self):
        """All points, study by study."""
        return [*self.contexts(), *self.bits(), *self.positions(), *self.layers(), *self.experts(),
                *self.hidden(), *self.odd(), *self.compiled()]

    # The points of each study.

    def contexts(self):
        shipped, windowless = self.args.model, self.sizes.windowless
        for name, make in ((shipped.name, lambda: models.of_checkpoint(shipped)),
                           ("llama", lambda: models.drawn(self.ctxc, self.work / "context", windowless, "f32"))):
            for tokens in self.sizes.contexts:
                yield Point("context", f"context-{name}-{tokens}", {"model": name, "tokens": tokens},
                            lambda make=make, tokens=tokens: self.context(make(), tokens))

    def bits(self):
        for kind in self.sizes.types:
            ways = ["exact"] if kind in PLAIN else ["exact", "integers"]
            for way in ways:
                yield Point("bits", f"bits-{kind}-{way}", {"type": kind, "arithmetic": way},
                            lambda kind=kind, way=way, last=way == ways[-1]: self.quantised(kind, way, last))

    def positions(self):
        for count in self.sizes.positions:
            yield Point("positions", f"positions-{self.args.model.name}-{count}", {"positions": count},
                        lambda count=count: self.patched(count))

    def layers(self):
        hidden, inner, heads, vocabulary = self.sizes.layer
        for depth in self.sizes.depths:
            yield self.llama("layers", depth, {"layers": depth}, (hidden, inner, depth, heads, vocabulary))

    def experts(self):
        for count in self.sizes.experts:
            config = models.mixture(*self.sizes.mixture, count)
            yield Point("experts", f"experts-{count}", {"experts": count},
                        lambda config=config: self.decoded(self.drawn(config)))

    def hidden(self):
        for shape in self.sizes.widths:
            yield self.llama("hidden", shape[0], {"hidden": shape[0]}, shape)

    def odd(self):
        for name, shape in self.sizes.odd.items():
            yield self.llama("odd", name.split()[0], {"widths": name}, shape)

    def llama(self, study, name, about, shape):
        return Point(study, f"{study}-{name}", about, lambda: self.decoded(self.drawn(models.llama(*shape))))

    def compiled(self):
        for depth in self.sizes.compiled:
            yield Point("compile", f"compile-{depth}", {"layers": depth}, lambda depth=depth: self.compile(depth))

    # How a point is measured.

    def drawn(self, config):
        return models.drawn(self.ctxc, self.work / "drawn", config)

    def start(self, model, *options, context=CONTEXT, prefill=1):
        setup = Setup(model.path.name, model.path, "", self.args.threads,
                      SimpleNamespace(context=context, tokens=self.args.tokens, prefill=prefill))
        return Ours(self.args.build, setup, "--buffer", self.sizes.buffer, *model.options, *options)

    def rounds(self, asked):
        """The round of the median share of memory's bandwidth: medians of each number may come from rounds of different
        speed. Memory is read after each token, in the way that was fastest at the start."""
        asked.measure("read")
        rounds = [asked.measure("token") for _ in range(self.args.rounds)]
        return sorted(rounds, key=lambda found: found["plain"] * found["read_gbps"])[len(rounds) // 2]

    def decoded(self, model, *options):
        asked = self.start(model, *options)
        try:
            return {"bytes": asked.about["weight_bytes"], **self.rounds(asked)}
        finally:
            asked.close()

    def context(self, model, tokens):
        self.start(model, context=1).close()  # compiles the kernels, so that it does not count as memory
        asked = self.start(model, context=tokens)
        try:
            asked.measure("plain")
            peak = asked.peak_bytes()  # before memory is measured, which takes some
            weights = models.checkpoint_bytes(model.path) if model.path.is_dir() else \
                4 * sum(models.matrix_parameters(model.config)) + 4 * model.config["hidden_size"] \
                * model.config["vocab_size"]
            return {"bytes": asked.about["weight_bytes"], "cache": models.cache_bytes(model.config, tokens),
                    "weights": weights, "peak": peak, **self.rounds(asked)}
        finally:
            asked.close()

    def quantised(self, kind, way, last):
        config = self.sizes.quantised
        model = models.quantised(self.work / f"{kind}.gguf", config, kind)
        found = self.decoded(model, *(["--integer-products"] if way == "integers" else []))
        if last:
            model.path.unlink()  # of a dozen types, several gigabytes
        return {"parameters": sum(models.matrix_parameters(config)), **found}

    def patched(self, count):
        """A prompt of `count` tokens, the patches of all of them, and the file of those behind a first token."""
        model = models.of_checkpoint(self.args.model)
        asked = self.start(model, prefill=count)
        try:
            found = {name: asked.measure(name)[name] for name in ("prefill", "positions")}
            found["read_gbps"] = asked.measure("read")["read_gbps"]
            found["bytes"] = asked.about["weight_bytes"]
        finally:
            asked.close()
        with tempfile.TemporaryDirectory(dir=self.args.work) as folder:
            ids, file = Path(folder) / "ids.txt", Path(folder) / "patches.safetensors"
            vocabulary = model.config["vocab_size"]
            ids.write_text(",".join(str((7 + 131 * i) % vocabulary) for i in range(count + 1)))
            said = output_of([self.ctxc, "patch", model.path, "--tokens", f"@{ids}", "--positions", "all",
                              "--threads", self.args.threads, "-o", file])
            found |= {"file": file.stat().st_size, "write": float(re.search(r"write ([\d.]+) s", said)[1])}
        return found | {"operations": self.operations(model.config, count), "gflops": gflops(self.args.threads)}

    @staticmethod
    def operations(config, tokens):
        """Floating-point operations of reading a prompt: two for each weight of a layer, and those of attention
        (q · k and p · v of each token with those that it sees)."""
        seen = sum(window * (tokens - window / 2) if window and window < tokens else tokens * tokens / 2
                   for window in models.windows(config))
        return 2 * models.matrix_parameters(config)[0] * tokens \
            + 4 * config["num_attention_heads"] * config["head_dim"] * seen

    def compile(self, depth):
        """The median of three runs with an empty cache of kernels, in seconds."""
        model = self.drawn(models.llama(256, 768, depth, 4, 4096))
        seconds = []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as cache:
                said = output_of([self.ctxc, "verify", model.path, *model.options, "--tokens", "2,5,7"],
                                 env=os.environ | {"XDG_CACHE_HOME": cache})
            seconds.append(float(re.search(r"compile ([\d.]+) s", said)[1]))
        return {"seconds": statistics.median(seconds)}


PRODUCT = """
import time, numpy
a, b = (numpy.ones((2048, 2048), numpy.float32) for _ in range(2))
best = 1e9
for _ in range(8):
    begin = time.perf_counter()
    a @ b
    best = min(best, time.perf_counter() - begin)
print(2 * 2048 ** 3 / best / 1e9)
"""


def gflops(threads):
    """The machine's arithmetic in float32, as OpenBLAS's product of two large matrices has it (numpy's)."""
    done = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, text=True,
                          env=os.environ | {"OPENBLAS_NUM_THREADS": str(threads)})
    return float(done.stdout) if done.returncode == 0 else None
