"""The programs that are compared.

Each has a method `measure(name)`, which returns milliseconds (for prefill, those of all its tokens). None
of them computes while another is timed.
"""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONVERTER = "convert_hf_to_gguf.py"


class Failed(Exception):
    """An error for the user; its text is the whole message."""


def output_of(command, **options):
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def drop_from_page_cache(paths):
    """A file that has just been written is cached in pages as small as the pieces that were written; the next to
    read it reads it afresh."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Setup:
    """One configuration: a checkpoint, its type, and how many threads run it."""

    def __init__(self, model, directory, dtype, threads, args):
        self.model, self.directory, self.dtype, self.threads = model, Path(directory), dtype, threads
        self.context, self.tokens, self.prefill = args.context, args.tokens, args.prefill

    @property
    def name(self):
        return f"{self.model} {self.dtype} {self.threads}"


class Asked:
    """A program that answers the name of a measurement with a line of JSON."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name}: exit code {self.process.wait()}; see its message above")
        return json.loads(line)

    def measure(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.answer()

    def peak_bytes(self):
        """The most memory that the program has had so far, with the pages of mapped files."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)[1]) << 10

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours(Asked):
    """{MEASUREMENT: milliseconds} for one name."""

    def __init__(self, build, setup, *options, environment=None):
        program = build / "bin/ctxc-bench"
        if not program.is_file():
            raise Failed(f"{program}: not there; build it first")
        super().__init__(program.name, [
            program, setup.directory, "--threads", setup.threads, "--tokens", setup.tokens,
            "--context", setup.context, "--prefill", setup.prefill, "--ask", *options],
            environment)

    def measure(self, name):
        return {column.removesuffix("_ms"): value for column, value in super().measure(name).items()}


def has_bfloat_pairs():
    """Whether this processor has an instruction for the products of pairs of bfloat16."""
    return "avx512_bf16" in Path("/proc/cpuinfo").read_text()


def has_tiles():
    """Whether this processor has products of tiles of bfloat16."""
    return "amx_bf16" in Path("/proc/cpuinfo").read_text()


def processor():
    """This processor's name, and the vectors and tiles that it has."""
    features = Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"model name\s*: (.*)", features)
    cpu = cpu[1] if cpu else platform.machine()
    wide = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in features]
    return f"{cpu}, {os.cpu_count()} cores, {', '.join(wide)}"


def machine():
    """This machine, and today's date, in words."""
    return f"{processor()}; {datetime.date.today()}."


def run(main):
    """Calls the program's main; an error of the user's is one line."""
    try:
        main()
    except (Failed, OSError) as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")


class PyTorch(Asked):
    """Returns milliseconds."""

    def __init__(self, setup, *options):
        dtype = {"f32": "float32", "bf16": "bfloat16"}[setup.dtype]
        super().__init__("pytorch_peer.py", [
            sys.executable, HERE / "pytorch_peer.py", setup.directory, "--dtype", dtype,
            "--threads", setup.threads, "--context", setup.context, "--tokens", setup.tokens,
            "--prefill", setup.prefill, *options])


class LlamaCpp:
    """llama-bench, with the options that are fastest on this machine."""

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

    def measure(self, name):
        # A sample is the time of all tokens of one run.
        run = self.bench(name, self.options[name], {"plain": 3, "prefill": 1}[name])[0]
        milliseconds = statistics.median(run["samples_ns"]) / 1e6
        return milliseconds / self.setup.tokens if name == "plain" else milliseconds

    def close(self):
        pass
