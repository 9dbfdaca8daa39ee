"""Ranks with a GPU each give what one GPU gives: on the stand-ins of NVIDIA's driver, which runs PTX, and of NCCL.

Usage: gpu.py CTXC ROOT --mpi KIND --driver FOLDER --nccl FOLDER [--all]

Without NCCL sums go through the hosts' memory. Either way they round as ranks on processors do. In a pipeline the numbers
are the same bit for bit.
"""
import argparse
import json
import pathlib
import shutil
import time

import mpi
from joint import check_joint
from compare import check_close, check_shared_bytes, ranks_of

# Too few for a chunk of a prompt, which takes the interpreter long.
FEW, MANY = ["--tokens", "5,17,3"], ["--tokens", "5,17,3,60,22,9"]


class Gpus:
    def __init__(self, options, work):
        self.ranks, self.work = mpi.Ranks(options.ctxc, options.mpi), work
        self.goldens = options.root / "test" / "goldens"
        self.driver, self.nccl = options.driver, options.nccl

    def environment(self, with_nccl, **more):
        return {"LD_LIBRARY_PATH": f"{self.driver}:{self.nccl}" if with_nccl else self.driver,
                "OMP_NUM_THREADS": "1", **more}

    def together(self, shard, *words, with_nccl=True, **more):
        return self.ranks.together(ranks_of(shard), *words, "--target", "cuda", "--force", shard=shard,
                                   env=self.environment(with_nccl, **more), timeout=400)

    def check(self, family, shard, words, option, of_norm, ways=(True,)):
        """One GPU's file and that of several, over NCCL (twice) or over the hosts."""
        words = [words[0], self.goldens / family, *words[1:], option]
        name = f"{family} on GPUs with {shard}: {words[0]}"
        one = self.work / "one.safetensors"
        alone = self.ranks.alone(*words, one, "--target", "cuda", "--force", env=self.environment(False),
                                 timeout=400)
        if alone.returncode:
            mpi.fail(f"{name}, alone", alone)
        for with_nccl in ways:
            several = self.work / "several.safetensors"
            made = self.together(shard, *words, several, with_nccl=with_nccl)
            if made.returncode:
                mpi.fail(name, made)
            if ("go through the hosts' memory" in made.stderr) == with_nccl:
                mpi.fail(f"{name}: it is not said whether sums go through the hosts", made)
            check_close(name, one, several, of_norm)
            first = several.read_bytes()
            if "tensor" not in shard and first != one.read_bytes():
                mpi.fail(f"{name}: the file is not that of one GPU")
            if not with_nccl:
                continue
            self.together(shard, *words, several, with_nccl=with_nccl)
            if several.read_bytes() != first:
                mpi.fail(f"{name}: the file is another one the second time")

    def check_joint(self, family, shard, generate):
        """One patch for a text: by processors, and by a GPU, or several where `shard` says so."""
        def on_gpus(*words):
            if shard:
                return self.together(shard, *words)
            return self.ranks.alone(*words, "--target", "cuda", env=self.environment(False), timeout=400)

        check_joint(f"{family} {shard or 'one GPU'}", self.goldens / family, self.work, self.ranks.alone, on_gpus,
                    is_exact=False, generate=generate)

    def check_bytes(self, family, shard):
        """The bytes that devices send each other are those that are predicted."""
        report = self.work / "ranks.json"
        words = [self.goldens / family, "--tokens", "5,17"]  # so few that nothing could be kept
        made = self.together(shard, "verify", *words, "--generate", "2", "--json", report)
        if made.returncode:
            mpi.fail(f"{family} with {shard}: its bytes", made)
        check_shared_bytes(f"{family} on GPUs", self.ranks, words[0], shard, json.loads(report.read_text()),
                           made_up=0)

    def refuses(self, what, result, text):
        if result.returncode != 2 or text not in result.stderr + result.stdout:
            mpi.fail(f"{what}: expected exit code 2 and '{text}'", result)
        if (self.work / "patch.safetensors").exists():
            mpi.fail(f"{what}: a file was written", result)

    def faults(self):
        words = ["patch", self.goldens / "llama", *FEW, "-o", self.work / "patch.safetensors"]
        for function, text in (("ncclGetUniqueId", "making a group of ranks failed"),
                               ("ncclCommInitRank", "joining the group of ranks failed"),
                               ("ncclAllReduce", "a sum over devices failed"),
                               ("ncclGroupEnd", "passing values between devices failed")):
            self.refuses(function, self.together("tensor=2", *words, CTXC_FAKE_NCCL=function), text)
        # A rank without a driver, while the other has one.
        own = [self.ranks.ctxc, *words, "--target", "cuda", "--shard", "tensor=2"]
        with_driver = self.alone_with_nccl(own)
        result = self.ranks.differing([with_driver, own])
        self.refuses("a rank without a driver", result, "rank 1: cuda: there is no driver of NVIDIA's")
        self.refuses("ranks without a driver", self.ranks.differing([own, own]), "there is no driver of NVIDIA's")
        # In a pipeline, too, a rank that fails ends the others.
        piped = [*own[:-1], "pipeline=2"]
        result = self.ranks.differing([self.alone_with_nccl(piped), piped])
        self.refuses("a stage without a driver", result, "rank 1: cuda: there is no driver of NVIDIA's")

    def alone_with_nccl(self, words, **more):
        """One rank's command, with the libraries and what else is in its environment."""
        environment = {**self.environment(True), **more}
        return ["env", *(f"{name}={value}" for name, value in environment.items()), *words]

    def hang(self, rank, function, text):
        """A rank that never returns from a call of NCCL, while its process lives: every rank ends. Which of them says so
        first is chance."""
        words = [self.ranks.ctxc, "patch", self.goldens / "llama", *FEW, "-o", self.work / "patch.safetensors",
                 "--target", "cuda", "--shard", "tensor=2"]
        programs = [self.alone_with_nccl(words), self.alone_with_nccl(words)]
        programs[rank] = self.alone_with_nccl(words, CTXC_FAKE_NCCL=f"hang:{function}")
        begin = time.monotonic()
        result = self.ranks.differing(programs)
        self.refuses(f"rank {rank} hangs in {function}", result, text)
        self.refuses(f"rank {rank} hangs in {function}", result, "for 20 seconds")
        print(f"rank {rank} hangs in {function}: ended after {time.monotonic() - begin:.0f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ctxc")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--mpi", default="")
    parser.add_argument("--driver", required=True)
    parser.add_argument("--nccl", required=True)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    work = pathlib.Path(mpi.folder())
    gpus = Gpus(options, work)
    gpus.faults()
    gpus.hang(1, "ncclAllReduce", "a sum over devices has not")
    gpus.check("gemma3", "tensor=2", ["patch", *FEW], "-o", True, (True, False))
    gpus.check("gemma3", "pipeline=2", ["patch", *FEW], "-o", True)
    gpus.check_bytes("gemma3", "tensor=2")
    if options.all:
        gpus.hang(0, "ncclAllReduce", "a sum over devices has not")
        gpus.hang(1, "ncclCommInitRank", "joining the group of ranks has not returned for 20 seconds")
        for family, shard in (("gemma3", "tensor=2"), ("llama", "tensor=2"), ("mixtral", "tensor=2"),
                              ("gpt2", "tensor=3"), ("falcon", "tensor=5"), ("gemma3", "pipeline=3"),
                              ("llama", "pipeline=3"), ("mixtral", "pipeline=2"), ("gpt2", "pipeline=2"),
                              ("gemma3", "tensor=2,pipeline=2")):
            gpus.check(family, shard, ["patch", *MANY], "-o", True)
            gpus.check(family, shard, ["verify", *FEW, "--generate", "2"], "--logits", False)
            gpus.check(family, shard, ["verify", *MANY, "--positions", "2-5"], "--logits", False,
                       (True, False) if shard.startswith("tensor") else (True,))
        for family, shard in (("llama", "tensor=2"), ("gpt2", "tensor=3")):
            gpus.check_bytes(family, shard)
        for family, shard in (("llama", None), ("gemma3", None), ("gemma3", "tensor=2"), ("llama", "pipeline=2")):
            gpus.check_joint(family, shard, 3)
    shutil.rmtree(work)
    print("equal")


main()
