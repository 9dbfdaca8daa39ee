"""What goes wrong on ranks ends all of them, with a message and exit code 2, and leaves no file.

Usage: faults.py CTXC ROOT --mpi KIND [--all]
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

import mpi

TOKENS = ["--tokens", "5,17,3,60,22"]


def is_whole(path):
    """Whether a safetensors file has all bytes that its header names."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8:8 + size])
    tensors.pop("__metadata__", None)
    return len(data) == 8 + size + max(each["data_offsets"][1] for each in tensors.values())


class Faults:
    def __init__(self, ranks, root, work):
        self.ranks, self.work, self.model = ranks, work, root / "test" / "goldens" / "gemma3"
        self.output = work / "patch.safetensors"
        self.words = ["patch", self.model, *TOKENS, "-o", self.output]

    def expect(self, what, result, *texts, code=2):
        said = result.stdout + result.stderr
        if result.returncode != code:
            mpi.fail(f"{what}: exit code {result.returncode}, expected {code}", result)
        for text in texts:
            if text not in said:
                mpi.fail(f"{what}: nothing says '{text}'", result)
        left = [each for each in self.work.iterdir() if each.name.startswith("patch")]
        if left:
            mpi.fail(f"{what}: {left[0].name} was written", result)

    def usage(self):
        alone = self.ranks.alone(*self.words, "--shard", "pipeline=2")
        self.expect("no mpirun", alone, "not started by mpirun", "mpirun -n N")
        for shard, text in (("pipeline=3", "mpirun started 2"),
                            ("tensor=2,pipeline=3", "which are 6 ranks, and mpirun started 2"),
                            ("rows=2", "expected tensor=T,pipeline=P")):
            result = self.ranks.together(2, *self.words, shard=shard)
            self.expect(shard, result, text)
        result = self.ranks.together(2, *self.words, "--backend", "reference")
        self.expect("reference", result, "does not go with --backend reference")

    def layers(self):
        words = [*self.words]
        words[1] = self.model.parent / "falcon"
        result = self.ranks.together(3, *words)
        self.expect("more ranks than layers", result, "the model has 2 layers",
                    "no more ranks than layers")
        if result.stderr.count("no more ranks than layers") != 1:
            mpi.fail("more ranks than layers: it is not said once", result)

    def heads(self):
        words = [*self.words]
        words[1] = self.model.parent / "llama"
        result = self.ranks.together(3, *words, shard="tensor=3")
        self.expect("heads that cannot be shared", result, "has 6 heads over 2 of keys",
                    "expected no more ranks than 2")
        if result.stderr.count("has 6 heads") != 1:
            mpi.fail("heads that cannot be shared: it is not said once", result)

    def differing(self):
        shard = ["--shard", "pipeline=2"]
        own = [self.ranks.ctxc, *self.words, *shard]
        other = [*own, "--keep", "0"]
        self.expect("another argument", self.ranks.differing([own, other]),
                    "rank 1: its command line is", "--keep 0")
        # The same command line in two folders.
        for name, model in (("a", "gemma3"), ("b", "gemma3-mixed")):
            here = self.work / name
            here.mkdir()
            (here / "model").symlink_to(self.model.parent / model)
        words = [self.ranks.ctxc, "patch", "model", *TOKENS, "-o", self.output, *shard]
        inside = [["env", "-C", self.work / name, *words] for name in ("a", "b")]
        self.expect("another model", self.ranks.differing(inside), "rank 1: its weights' digest is")
        # A file that is cut short on one rank.
        cut = self.work / "b" / "model"
        cut.unlink()
        shutil.copytree(self.model, cut)
        weights = cut / "model.safetensors"
        os.truncate(weights, weights.stat().st_size - 1000)
        self.expect("a truncated file", self.ranks.differing(inside), "rank 1: model/")
        # A program of another build.
        program = self.work / "bin" / "ctxc"
        program.parent.mkdir()
        shutil.copy(self.ranks.ctxc, program)
        (self.work / "lib").symlink_to(pathlib.Path(self.ranks.ctxc).parent.parent / "lib")
        with open(program, "ab") as file:
            file.write(b"another")
        self.expect("another build", self.ranks.differing([own, [program, *own[1:]]]),
                    "rank 1: its build of ctxc is")

    def overflowing(self):
        """Logits of one rank's rows of the head that are not finite: it alone fails, while another one waits."""
        for rank, row in ((0, 0), (1, 96)):
            model = self.work / f"overflow-{rank}"
            shutil.copytree(self.model.parent / "llama", model)
            data = bytearray((model / "model.safetensors").read_bytes())
            size = int.from_bytes(data[:8], "little")
            entry = json.loads(data[8:8 + size])["lm_head.weight"]
            width = entry["shape"][1]
            begin = 8 + size + entry["data_offsets"][0] + 4 * width * row
            data[begin:begin + 4 * width] = struct.pack("<f", 3e38) * width
            (model / "model.safetensors").write_bytes(data)
            for more in (["--positions", "1-4"], ["--generate", "1"]):
                result = self.ranks.together(2, "verify", model, *TOKENS, *more, shard="tensor=2")
                self.expect(f"an overflow of rank {rank}, {more[0]}", result, "the logits are not finite")

    def not_joining(self):
        """A rank that knows nothing of the others. The exit code is mpirun's, which may not wait for that of the
        rank that says so; OpenMPI's ends the job itself."""
        own = [self.ranks.ctxc, *self.words, "--shard", "pipeline=2"]
        result = self.ranks.differing([own, ["true"]])
        if result.returncode == 0:
            mpi.fail("a rank that does not join", result)
        if self.ranks.kind == "mpich":
            self.expect("a rank that does not join", result, "not all have joined",
                        code=result.returncode)

    def unwritable(self):
        words = [*self.words[:-1], self.work / "no" / "patch.safetensors"]
        self.expect("no folder", self.ranks.together(2, *words), "no/patch.safetensors")

    def failing_calls(self, library, everything):
        """Each call of rank 0 that changes a file fails once, as on a full disk, or is where it is killed."""
        program = [self.ranks.ctxc, *self.words, "--shard", "pipeline=2"]

        def with_fault(kind, **more):
            settings = [f"{name}={value}" for name, value in more.items()]
            faulty = ["env", f"LD_PRELOAD={library}", f"CTXC_FAULT={kind}", *settings, *program]
            return self.ranks.differing([faulty, program])

        count = self.work / "count"
        whole = with_fault("file", CTXC_FAULT_COUNT=count)
        if whole.returncode:
            mpi.fail("counting calls", whole)
        data = self.output.read_bytes()
        self.output.unlink()
        total = int(count.read_text())
        refusals = 0
        for kind in ("file", "kill") if everything else ("file",):
            for at in range(1 if everything else max(1, total - 4), total + 1):
                result = with_fault(kind, CTXC_FAULT_AT=at)
                what = f"{kind} at call {at} of {total}"
                if self.output.exists() and self.output.read_bytes() != data:
                    mpi.fail(f"{what}: a part of the file was written", result)
                if result.returncode == 0 and not self.output.exists():
                    mpi.fail(f"{what}: exit code 0, and no file", result)
                self.output.unlink(missing_ok=True)
                for left in self.work.glob("*patch*"):
                    if kind == "file":
                        mpi.fail(f"{what}: {left.name} was left", result)
                    left.unlink()
                refusals += result.returncode == 2 and "patch.safetensors" in result.stderr
        if not refusals:
            mpi.fail("no call of the writer failed")

    def killed(self, rank, seconds, sent=signal.SIGKILL, shard="pipeline=2"):
        """Ends a rank after some time, upon which mpirun ends the others; or stops it, as a machine that is
        gone."""
        marker = self.work / "pid"
        marker.unlink(missing_ok=True)
        long = ",".join(str(i * 7 % 90) for i in range(3000))
        words = [self.ranks.ctxc, "patch", self.model, "--tokens", long, "--positions", "1-2999",
                 "-o", self.output, "--shard", shard]
        noted = ["bash", "-c", f'echo $$ >{marker}.new; mv {marker}.new {marker}; exec "$@"', "bash"]
        programs = [words, words]
        programs[rank] = [*noted, *words]
        start = [*self.ranks.start]
        for i, program in enumerate(programs):
            start += ([":"] if i else []) + ["-n", "1", *program]
        process = subprocess.Popen([str(word) for word in start], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        while not marker.exists():
            time.sleep(0.01)
        time.sleep(seconds)
        try:
            os.kill(int(marker.read_text()), sent)
        except ProcessLookupError:  # it was done
            process.communicate(timeout=60)
            self.output.unlink()
            return None
        begin = time.monotonic()
        said, _ = process.communicate(timeout=60)
        result = subprocess.CompletedProcess(start, process.returncode, said, "")
        what = f"rank {rank} killed after {seconds} s"
        if time.monotonic() - begin > 30:
            mpi.fail(f"{what}: the others went on for more than 30 s", result)
        if "2999 patches" in said and self.output.exists() and is_whole(self.output):
            self.output.unlink()
            return None  # it was about to end
        if result.returncode == 0:
            mpi.fail(f"{what}: exit code 0", result)
        if self.output.exists():
            mpi.fail(f"{what}: {self.output.name} was written", result)
        for left in self.work.glob("*patch*"):  # of a process that could no longer remove it
            left.unlink()
        return result

    def stopped(self, rank, shard):
        """Later each time, since on a busy machine a rank may be stopped before it has joined the others."""
        for seconds in (0.5, 1, 2, 4):
            result = self.killed(rank, seconds, signal.SIGSTOP, shard)
            if result is None:
                return
            if result.returncode != 2:
                mpi.fail("a rank that is gone", result)
            if f"rank {rank} no longer answers" in result.stdout:
                return
            if "not all have joined" not in result.stdout:
                break
        mpi.fail("nothing says that a rank is gone", result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ctxc")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--mpi", default="")
    parser.add_argument("--fail-calls", help="the library of test/faults")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    work = pathlib.Path(mpi.folder())
    faults = Faults(mpi.Ranks(options.ctxc, options.mpi), options.root, work)
    faults.usage()
    faults.layers()
    faults.heads()
    faults.differing()
    faults.unwritable()
    faults.overflowing()
    if options.fail_calls:
        faults.failing_calls(options.fail_calls, options.all)
    for rank in (0, 1):
        for seconds in (0.05, 0.2, 0.5, 1, 1.5, 2, 3) if options.all else (0.5,):
            faults.killed(rank, seconds)
            faults.killed(rank, seconds, shard="tensor=2")
    if options.all:
        faults.not_joining()
        for rank in (0, 1):
            for shard in ("pipeline=2", "tensor=2"):
                faults.stopped(rank, shard)
    shutil.rmtree(work)
    print("refused")


main()
