"""Ranks with a GPU each give what one GPU gives: on the stand-ins of NVIDIA's driver, which runs PTX, and of NCCL.

Usage: gpu.py CTXC ROOT --mpi KIND --driver FOLDER --nccl FOLDER [--all]

Without NCCL sums go through the hosts' memory. Either way they round as ranks on processors do.
"""
import argparse
import pathlib
import shutil

import mpi
from compare import check_close

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

    def together(self, count, *words, with_nccl=True, shard=None, **more):
        return self.ranks.together(count, *words, "--target", "cuda", "--force", shard=shard or f"tensor={count}",
                                   env=self.environment(with_nccl, **more), timeout=400)

    def check(self, family, count, words, option, of_norm, ways=(True,)):
        """One GPU's file and that of several, over NCCL (twice) or over the hosts."""
        words = [words[0], self.goldens / family, *words[1:], option]
        name = f"{family} on {count} GPUs: {words[0]}"
        one = self.work / "one.safetensors"
        alone = self.ranks.alone(*words, one, "--target", "cuda", "--force", env=self.environment(False),
                                 timeout=400)
        if alone.returncode:
            mpi.fail(f"{name}, alone", alone)
        for with_nccl in ways:
            several = self.work / "several.safetensors"
            made = self.together(count, *words, several, with_nccl=with_nccl)
            if made.returncode:
                mpi.fail(name, made)
            if ("go through the hosts' memory" in made.stderr) == with_nccl:
                mpi.fail(f"{name}: it is not said whether sums go through the hosts", made)
            check_close(name, one, several, of_norm)
            if not with_nccl:
                continue
            first = several.read_bytes()
            self.together(count, *words, several, with_nccl=with_nccl)
            if several.read_bytes() != first:
                mpi.fail(f"{name}: the file is another one the second time")

    def refuses(self, what, result, text):
        if result.returncode != 2 or text not in result.stderr + result.stdout:
            mpi.fail(f"{what}: expected exit code 2 and '{text}'", result)
        if (self.work / "patch.safetensors").exists():
            mpi.fail(f"{what}: a file was written", result)

    def faults(self):
        words = ["patch", self.goldens / "llama", *FEW, "-o", self.work / "patch.safetensors"]
        self.refuses("a pipeline", self.together(2, *words, shard="pipeline=2"), "expected tensor=2")
        for function, text in (("ncclGetUniqueId", "making a group of ranks failed"),
                               ("ncclCommInitRank", "joining the group of ranks failed"),
                               ("ncclAllReduce", "a sum over devices failed")):
            self.refuses(function, self.together(2, *words, CTXC_FAKE_NCCL=function), text)
        # A rank without a driver, while the other has one.
        own = [self.ranks.ctxc, *words, "--target", "cuda", "--shard", "tensor=2"]
        libraries = self.environment(True)["LD_LIBRARY_PATH"]
        with_driver = ["env", f"LD_LIBRARY_PATH={libraries}", *own]
        result = self.ranks.differing([with_driver, own])
        self.refuses("a rank without a driver", result, "rank 1: cuda: there is no driver of NVIDIA's")
        self.refuses("ranks without a driver", self.ranks.differing([own, own]), "there is no driver of NVIDIA's")


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
    gpus.check("gemma3", 2, ["patch", *FEW], "-o", True, (True, False))
    if options.all:
        for family, count in (("gemma3", 2), ("llama", 2), ("mixtral", 2), ("gpt2", 3), ("falcon", 5)):
            gpus.check(family, count, ["patch", *MANY], "-o", True)
            gpus.check(family, count, ["verify", *FEW, "--generate", "2"], "--logits", False)
            gpus.check(family, count, ["verify", *MANY, "--positions", "2-5"], "--logits", False, (True, False))
    shutil.rmtree(work)
    print("equal")


main()
