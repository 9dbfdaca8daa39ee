"""The programs that are compared, each as something that can be timed once more.

Every one has `round()`: what one interleaved round measures of it, in milliseconds (of prefill: of
all its tokens) or GB/s, by name. None of them computes while another is timed.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONVERTER = "convert_hf_to_gguf.py"


class Failed(Exception):
    """What went wrong, for the user; the whole message."""


def output_of(command, **options):
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


class Setup:
    """One configuration: a checkpoint, its type, and how many threads run it."""

    def __init__(self, model, directory, dtype, threads, args):
        self.model, self.directory, self.dtype, self.threads = model, Path(directory), dtype, threads
        self.context, self.tokens, self.prefill = args.context, args.tokens, args.prefill

    @property
    def name(self):
        return f"{self.model} {self.dtype} {self.threads}"


class Ours:
    def __init__(self, build, setup):
        self.command = [build / "bin/ctxc-bench", setup.directory, "--threads", setup.threads,
                        "--rounds", 1, "--tokens", setup.tokens, "--context", setup.context,
                        "--prefill", setup.prefill, "--json", "-"]
        if not self.command[0].is_file():
            raise Failed(f"{self.command[0]}: not there; build it first")

    def round(self):
        medians = json.loads(output_of(self.command))["medians"]
        return {name.removesuffix("_ms"): value for name, value in medians.items()
                if value is not None}

    def close(self):
        pass


def has_bfloat_pairs():
    """Whether this processor has an instruction for the products of pairs of bfloat16."""
    return "avx512_bf16" in Path("/proc/cpuinfo").read_text()


class Rounded(Ours):
    """Ours where a prompt is read with rounded activations, as the others read it."""

    def __init__(self, build, setup):
        super().__init__(build, setup)
        self.command += ["--round-prompts"]
        self.command[self.command.index("--tokens") + 1] = 1

    def round(self):
        return {"prefill": super().round()["prefill"]}


class Bandwidth:
    def __init__(self, build, setup):
        self.command = [build / "bin/ctxc-bandwidth", "--threads", setup.threads, "--seconds", 1]

    def round(self):
        return {"read_gbps": json.loads(output_of(self.command))["read_gbps"]}

    def close(self):
        pass


class PyTorch:
    NAMES = ["plain", "factored", "factored_tuned", "materialised", "materialised_tuned", "prefill"]

    def __init__(self, setup):
        dtype = {"f32": "float32", "bf16": "bfloat16"}[setup.dtype]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "pytorch_peer.py"), str(setup.directory), "--dtype", dtype,
             "--threads", str(setup.threads), "--context", str(setup.context),
             "--tokens", str(setup.tokens), "--prefill", str(setup.prefill)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"pytorch_peer.py: exit code {self.process.wait()}; see its message above")
        return json.loads(line)

    def measure(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.answer()

    def round(self):
        return {name: self.measure(name) for name in self.NAMES}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class LlamaCpp:
    """llama-bench, with those of its options that are fastest here."""

    def __init__(self, folder, work, setup):
        self.folder, self.setup = Path(folder), setup
        self.file = self.gguf(Path(work))
        self.options = {}
        self.options = {name: self.fastest(name) for name in ("plain", "prefill")}

    def gguf(self, work):
        """The checkpoint as a GGUF file, by llama.cpp's own converter and quantize."""
        f32, wanted = (work / f"{self.setup.model}-{dtype}.gguf" for dtype in ("f32", self.setup.dtype))
        if not f32.is_file():
            source = self.setup.directory
            output_of([sys.executable, self.folder / "source" / CONVERTER, source, "--outtype", "f32",
                       "--outfile", f32])
        if not wanted.is_file():
            output_of([self.folder / "bin/llama-quantize", f32, wanted, "BF16"])
        return wanted

    def bench(self, name, options, repeats):
        setup = self.setup
        what = ["-p", setup.prefill, "-n", 0] if name == "prefill" else \
            ["-p", 0, "-n", setup.tokens, "-d", setup.context]
        return json.loads(output_of(
            [self.folder / "bin/llama-bench", "-m", self.file, "-t", setup.threads, "-ngl", 0,
             "-r", repeats, "-o", "json", *what, *options]))

    def fastest(self, name):
        """Flash attention or not, weights mapped or read into memory: the faster."""
        runs = self.bench(name, ["-fa", "0,1", "-lm", "none,mmap"], 2)
        best = min(runs, key=lambda run: min(run["samples_ns"]))
        return ["-fa", int(best["flash_attn"]), "-lm", best["load_mode"]]

    def round(self):
        # A sample is the time of all tokens of one run.
        times = {name: statistics.median(self.bench(name, self.options[name], repeats)[0]["samples_ns"])
                 / 1e6 for name, repeats in (("plain", 3), ("prefill", 1))}
        return {"plain": times["plain"] / self.setup.tokens, "prefill": times["prefill"]}

    def close(self):
        pass
