#!/usr/bin/env python3
"""Measures ctxc beside PyTorch, llama.cpp, Eigen, OpenBLAS, oneDNN and the machine's memory.

  tools/setup.sh --bench                            # Google Benchmark, OpenBLAS, oneDNN, matplotlib
  tools/build.sh ctxc-bench ctxc-gemv ctxc-gemm
  bench/peers/build_llama_cpp.sh build/llama.cpp    # ten minutes; optional
  build/judges/bin/python bench/side_by_side.py build GEMMA-F32 GEMMA-BF16 -o results.json

GEMMA-F32 and GEMMA-BF16 are directories of Gemma 3 270M; a Llama of 260M parameters with random
weights is made in --work. Each setup (model, type, threads) is measured in --rounds rounds, in
which each peer runs between two runs of ctxc. Rounds that the file of -o already has count, so that an
interrupted measurement continues. --only names some setups, --page writes the tables into the page's
section, --plot draws the plot; with --report nothing is measured.
"""

import argparse
import itertools
import json
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "peers")]
import programs  # noqa: E402
import report  # noqa: E402
import results as r  # noqa: E402
from page import write_section  # noqa: E402

SETTLED = 0.3  # seconds until the threads of the previous program have stopped spinning


def say(text):
    print(text, file=sys.stderr, flush=True)


def machine(args):
    script = (ROOT / "bench/peers/build_llama_cpp.sh").read_text()
    package = re.search(r"package=(\S+)", script)[1].replace("==", " ")
    return {"text": programs.machine(), "llama.cpp": package}


def setups(args):
    import random_llama
    directories = {"gemma-3-270m": {"f32": args.f32, "bf16": args.bf16},
                   "llama-260m": random_llama.make(args.work)}
    for model, by_type in directories.items():
        for dtype, directory in by_type.items():
            for threads in args.threads:
                setup = programs.Setup(model, directory, dtype, threads, args)
                if all(word in setup.name.split() for word in args.only):
                    yield setup


def weight_bytes(directory):
    """The bytes that a token needs: all weights except an embedding table that is not the head."""
    from safetensors import safe_open
    config = json.loads((directory / "config.json").read_text())
    total = 0
    for path in directory.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                tensor = file.get_slice(name)
                size = {"F32": 4, "BF16": 2}[tensor.get_dtype()]
                for d in tensor.get_shape():
                    size *= d
                total += 0 if "embed" in name and not config["tie_word_embeddings"] else size
    return total


def start(setup, args, started):
    """The programs of a setup, by name; `started` gets each as soon as it runs."""
    build = Path(args.build)
    started[r.CTXC] = programs.Ours(build, setup)
    if setup.dtype == "bf16" and programs.has_bfloat_pairs():
        started[r.ROUNDED] = programs.Ours(build, setup, "--round-prompts")
    if (Path(args.llama) / "bin/llama-bench").exists():
        started[r.LLAMA_CPP] = programs.LlamaCpp(args.llama, args.work, setup)
    else:
        say(f"{args.llama}: has no llama-bench; llama.cpp is left out")
    started[r.PYTORCH] = programs.PyTorch(setup)


class Round:
    """One round of a setup. The machine's speed changes from second to second; a peer is therefore measured
    between two runs of ctxc, and compared with these."""

    def __init__(self, started):
        self.started = started
        self.ours = {r.CTXC: {}, r.ROUNDED: {}}  # {MEASUREMENT: [milliseconds]}
        self.peers = {}  # {PROGRAM: {MEASUREMENT: [{"theirs", "ours"}]}}, milliseconds

    def measure(self, program, name):
        time.sleep(SETTLED)
        return self.started[program].measure(name)

    def own(self, program, name):
        found = self.measure(program, name)
        for measurement, value in found.items():
            self.ours[program].setdefault(measurement, []).append(value)
        return found

    def beside(self, comparisons):
        """Measures each peer between two runs of ctxc. A run serves the peers before and after it."""
        program = comparisons[0].ours_in(self.started)
        before = self.own(program, comparisons[0].ours)
        for c in comparisons:
            if c.program not in self.started:
                continue
            theirs = self.measure(c.program, c.measurement)
            after = self.own(program, c.ours)
            self.peers.setdefault(c.program, {}).setdefault(c.measurement, []).append(
                {"theirs": theirs, "ours": (before[c.ours] + after[c.ours]) / 2})
            before = after

    def run(self):
        self.measure(r.CTXC, "read")  # finds the fastest way
        decode = self.own(r.CTXC, "decode")
        prefill = [self.own(r.CTXC, name) for name in ("prefill", "positions", "prefill")]
        for name, comparisons in r.TABLES.items():
            for _ in range(r.REPEATS[name]):
                self.beside(comparisons)
        ours = {program: {name: statistics.median(values) for name, values in found.items()}
                for program, found in self.ours.items() if found}
        return {"ours": ours, "peers": self.peers, "decode": decode,
                "positions": 2 * prefill[1]["positions"]
                / (prefill[0]["prefill"] + prefill[2]["prefill"])}


def measure(setup, args, entry, keep):
    """Adds rounds to those that a setup has, and stores each round as soon as it is done."""
    started = {}
    programs.drop_from_page_cache(setup.directory.glob("*.safetensors"))
    try:
        start(setup, args, started)
        entry["about"] = dict(started[r.PYTORCH].about)
        if r.LLAMA_CPP in started:
            entry["about"][r.LLAMA_CPP] = started[r.LLAMA_CPP].options
        while len(entry["rounds"]) < args.rounds:
            entry["rounds"].append(Round(started).run())
            keep()
            say(f"{setup.name}: round {len(entry['rounds'])} of {args.rounds}")
    finally:
        for program in started.values():
            program.close()


def products(args, name, threads):
    """The results of ctxc-gemv or ctxc-gemm."""
    program = Path(args.build) / "bin" / f"ctxc-{name}"
    if not program.is_file():
        say(f"{program}: not there; the libraries that it compares are left out")
        return None
    return json.loads(programs.output_of(
        [program, f"--threads={threads}", "--benchmark_format=json", "--benchmark_min_time=0.1",
         "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true"]))


def run(args, results, keep):
    for setup in setups(args):
        entry = results["setups"].setdefault(setup.name, {
            "model": setup.model, "dtype": setup.dtype, "threads": setup.threads,
            "context": setup.context, "prefill": setup.prefill,
            "weight_bytes": weight_bytes(setup.directory), "about": {}, "rounds": []})
        if len(entry["rounds"]) < args.rounds:
            measure(setup, args, entry, keep)
    for name, threads in itertools.product(("gemv", "gemm"), () if args.only else args.threads):
        if str(threads) not in results.setdefault(name, {}):
            found = products(args, name, threads)
            if found:
                results[name][str(threads)] = found
                keep()


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", help="the build folder")
    parser.add_argument("f32", metavar="GEMMA-F32")
    parser.add_argument("bf16", metavar="GEMMA-BF16")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.json")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--context", type=int, default=64, help="tokens before the one at hand")
    parser.add_argument("--tokens", type=int, default=10, help="decoded in a round")
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD",
                        help="setups whose name has all of these: gemma-3-270m, bf16, 2…")
    parser.add_argument("--work", default=ROOT / "build/peers", metavar="FOLDER",
                        help="for models made of others")
    parser.add_argument("--llama", default=ROOT / "build/llama.cpp", metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--page", metavar="FILE.md", help="docs/measurements.md")
    parser.add_argument("--plot", metavar="FILE.svg")
    return parser.parse_args()


def main():
    args = parse()
    output = Path(args.output)
    results = json.loads(output.read_text()) if output.exists() else {"setups": {}}
    if not args.report:
        Path(args.work).mkdir(parents=True, exist_ok=True)
        results["machine"] = machine(args)
        run(args, results, lambda: output.write_text(json.dumps(results, indent=1) + "\n"))
    section = report.section(results)
    print(section)
    if args.page:
        write_section(Path(args.page), report.HEADING, section)
    if args.plot:
        import plot
        if not plot.save(results, args.plot):
            say(f"{args.plot}: not drawn; no setup has the machine's bandwidth")


if __name__ == "__main__":
    try:
        main()
    except (programs.Failed, OSError) as error:
        sys.exit(f"side_by_side: {error}")
