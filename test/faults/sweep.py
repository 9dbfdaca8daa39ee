#!/usr/bin/env python3
"""Lets calls of ctxc's commands fail, one at a time (fail.c), and looks at what is left.

  sweep.py CTXC LIBRARY SOURCE WORK [--most N] [--quick] [--only WORD] [--seed S]

Each command runs in a folder that holds what an earlier run left there. After each run

  - the exit code is 0 or 2; 2 has a message, and 0 has everything done;
  - every output is the old one or the new one, whole, or it was never there;
  - nothing else is in the folder, but for an OUT.tmp… where the process was killed.

With an allocator that aligns small blocks no more than it must, each command does all that it does otherwise.

With --most, at most N calls of each kind are taken for each command, spread evenly from another start for each
seed; else all are. --quick takes one call of two kinds of the commands that compile kernels.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

KINDS = ["file", "short", "map", "memory", "kill", "killed"]
# Bytes of the smallest allocation that fails; where kernels are compiled there are too many.
LEAST_MEMORY, LEAST_MEMORY_SLOW = 1 << 14, 1 << 18


class Command:
    """`outputs` are the files that it writes, in the folder it runs in. `comparable` has what of a file does not
    change from run to run, and fails where the file is not whole. With `folder` they are in one that the command makes.
    With `again` the same command goes on where it was ended."""

    def __init__(self, name, arguments, outputs, comparable=None, needs=(), again=False,
                 slow=False, folder=False):
        self.name, self.outputs, self.slow = name, outputs, slow
        self.arguments = arguments if folder else [*arguments, "--force"]  # what is there is not ctxc's
        self.comparable = comparable or (lambda data: data)
        self.needs, self.again, self.folder = needs, again, folder


def whole_json(data):
    json.loads(data)
    return "whole"


def records(data):
    """Lines of JSON; the last may be cut off, which the next run mends. Only that run shows the end."""
    *lines, last = data.split(b"\n")
    for line in lines:
        json.loads(line)
    return "whole"


def commands(source):
    model = str(source / "test/goldens/llama")
    text = str(source / "test/fuzz/Inputs/proved.mlir")
    tokens = ["--backend", "reference", "--tokens", "1,2,3"]
    patched = ["patched/" + name for name in ("config.json", "model.safetensors")]
    return [
        Command("patch", ["patch", model, *tokens, "-o", "p.safetensors"], ["p.safetensors"]),
        Command("positions", ["patch", model, *tokens, "--positions", "all", "-o", "each"],
                [f"each/position-{i}.safetensors" for i in (1, 2)], folder=True),
        Command("apply", ["apply", model, "given.safetensors", "-o", "patched"], patched,
                needs=["given.safetensors"], folder=True),
        Command("import", ["import", model, "-o", "m.mlir"], ["m.mlir"]),
        Command("verify", ["verify", model, *tokens, "--json", "v.json", "--logits", "l.safetensors"],
                ["v.json", "l.safetensors"],
                lambda data: whole_json(data) if data.startswith(b"{") else data),
        Command("proof", ["check", text, "--proof", "proof.json"], ["proof.json"]),
        Command("witness", ["check", text, "--witness=w.json"], ["w.json", "w.safetensors"]),
        Command("cache", ["patch", model, "--tokens", "1,2,3", "-o", "p.safetensors"],
                ["p.safetensors"], slow=True),
        Command("compile", ["compile", model, "--emit=obj", "-o", "k.o"], ["k.o"], slow=True),
        Command("experiment", ["experiment", "norms", model, "-o", "data", "--generate", "1"],
                ["data/records.jsonl"], records, again=True, slow=True, folder=True),
        Command("batch", ["batch", model, "prompts.jsonl", "-o", "data", "--backend", "reference", "--window", "2"],
                ["data/batch.json", "data/records-000000-00.jsonl", "data/patches-000000-00.safetensors",
                 "data/records-000001-00.jsonl", "data/patches-000001-00.safetensors", "data/part-1-of-1.json"],
                needs=["prompts.jsonl"], again=True, folder=True),
    ]


class Sweep:
    def __init__(self, options):
        self.options = options
        self.work = options.work
        self.counts = {}
        self.problems = []
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def run(self, command, folder, fault=None, at=None):
        """The exit code, and what was said."""
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"),
                       "CTXC_KERNEL_OPT": "0", "OMP_NUM_THREADS": "1"}
        if fault:
            size = LEAST_MEMORY_SLOW if command.slow else LEAST_MEMORY
            environment.update(LD_PRELOAD=str(self.options.library), CTXC_FAULT=fault,
                               CTXC_FAULT_SIZE=str(size))
            environment["CTXC_FAULT_AT" if at else "CTXC_FAULT_COUNT"] = (
                str(at) if at else str(self.work / "count"))
        with subprocess.Popen([self.options.ctxc, *command.arguments], cwd=folder, env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                said = process.communicate(timeout=120)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        # OpenMP's library leaves this where it is killed; a process with the number would not start.
        Path(f"/dev/shm/__KMP_REGISTERED_LIB_{process.pid}_{os.getuid()}").unlink(missing_ok=True)
        return process.returncode, said.decode(errors="replace")

    def prepare(self, command):
        """Two folders: one with what an earlier run left, one with what a run without a fault leaves there."""
        base = self.work / command.name
        old, new = base / "old", base / "new"
        old.mkdir(parents=True)
        for name in command.needs:
            shutil.copy(self.work / "given" / name, old)
        for name in command.outputs:
            (old / name).parent.mkdir(exist_ok=True)
        self.earlier(command, old)
        shutil.copytree(old, new)
        code, said = self.run(command, new)
        if code not in (0, 1):
            raise SystemExit(f"{command.name}: exit code {code} without a fault: {said}")
        self.good = code
        return old, new

    def earlier(self, command, folder):
        """Another result under each output's name, where that is replaced."""
        if command.folder:
            shutil.rmtree(folder / Path(command.outputs[0]).parent)
            return
        for name in command.outputs:
            (folder / name).write_bytes(b'{"an": "earlier result"}\n')

    def fresh(self, command, old):
        folder = self.work / command.name / "now"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)
        return folder

    def numbers(self, total, slow):
        most = 1 if slow and self.options.quick else self.options.most
        if not most or total <= most:
            return range(1, total + 1)
        start = self.options.seed % max(total // most, 1)
        return sorted({1 + (start + i * total // most) % total for i in range(most)})

    def sweep(self, command):
        old, new = self.prepare(command)
        code, said = self.run(command, self.fresh(command, old), "aligned")
        if code != self.good:
            self.problems.append(f"{command.name}: aligned: exit code {code}: {said}")
        for kind in ("file", "kill") if command.slow and self.options.quick else KINDS:
            folder = self.fresh(command, old)
            self.run(command, folder, kind)
            total = int((self.work / "count").read_text())
            taken = self.numbers(total, command.slow)
            row = self.counts.setdefault((command.name, kind), [total, 0, 0, 0])
            for at in taken:
                folder = self.fresh(command, old)
                code, said = self.run(command, folder, kind, at)
                row[1] += 1
                row[2] += code == self.good
                before = len(self.problems)
                for problem in self.judge(command, kind, code, said, folder, old, new):
                    self.problems.append(f"{command.name}: {kind} {at} of {total}: {problem}")
                row[3] += len(self.problems) > before

    def judge(self, command, kind, code, said, folder, old, new):
        if kind in ("kill", "killed"):
            if code not in (-9, self.good):
                yield f"exit code {code}, expected to be killed: {said}"
        elif code == 2:
            if "ctxc: error: " not in said:
                yield f"exit code 2 without a message: {said!r}"
        elif code != self.good:
            yield f"exit code {code}: {said}"
        for name in command.outputs:
            yield from self.judge_output(command, code, name, folder, old, new)
        known = {str(p.relative_to(base)) for base in (old, new) for p in base.rglob("*")}
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            name = str(path.relative_to(folder))
            left = ".tmp" in name and code == -9
            if name not in known and not name.startswith("cache/") and not left:
                yield f"{name} is left, with exit code {code}"
        if command.again:
            code, said = self.run(command, folder)
            if code != self.good:
                yield f"run again: exit code {code}: {said}"
            for name in command.outputs:
                if command.comparable((folder / name).read_bytes()) != command.comparable((new / name).read_bytes()):
                    yield f"run again: {name} is not what a run without a fault writes"

    def judge_output(self, command, code, name, folder, old, new):
        now, before, after = folder / name, old / name, new / name
        if not now.exists():
            if before.exists() or code == self.good:
                yield f"{name} is gone, with exit code {code}"
            return
        data = now.read_bytes()
        if before.exists() and data == before.read_bytes():
            if code == self.good:
                yield f"{name} is the old one, with exit code {code}"
            return
        try:
            same = command.comparable(data) == command.comparable(after.read_bytes())
        except ValueError:
            same = False
        if not same:
            yield f"{name} is neither the old nor the new one, with exit code {code}"


def main():
    parser = argparse.ArgumentParser()
    for name in ("ctxc", "library", "source", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for name in ("ctxc", "library", "source", "work"):
        setattr(options, name, getattr(options, name).resolve())
    sweep = Sweep(options)
    given = sweep.work / "given"
    given.mkdir()
    all_commands = commands(options.source)
    patch = all_commands[0]
    sweep.run(patch, given)
    (given / "p.safetensors").rename(given / "given.safetensors")
    (given / "prompts.jsonl").write_text("".join(f'{{"tokens": [1, 2, {i}]}}\n' for i in (3, 4, 5)))
    for command in all_commands:
        if options.only in command.name:
            sweep.sweep(command)
    print(f"{'command':12}{'fails':8}{'calls':>7}{'taken':>7}{'went on':>9}{'wrong':>7}")
    for (name, kind), (total, taken, good, wrong) in sweep.counts.items():
        print(f"{name:12}{kind:8}{total:7}{taken:7}{good:9}{wrong:7}")
    for problem in sweep.problems:
        print(problem, file=sys.stderr)
    return 1 if sweep.problems else 0


if __name__ == "__main__":
    sys.exit(main())
