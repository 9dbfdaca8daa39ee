"""Runs the C programs on an emulated AArch64. The kernels are compiled here for --target=aarch64; a cross compiler
compiles the functions of libCtxcNumerics that they call, and links both.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from run import STORAGE, compile_program, make_model, random_sizes, sizes

CROSS = "aarch64-linux-gnu-"
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
NUMERICS = ["KernelABI", "NormInversionCore", "UnitProblem", "ReplayError"]


def build_numerics(source, llvm, work):
    archive, objects = work / "libCtxcNumerics.a", []
    for name in NUMERICS:
        objects.append(work / f"{name}.o")
        subprocess.run([CROSS + "g++", "-std=c++17", "-O2", "-fPIC", "-I", source / "include",
                        "-I", source, "-isystem", llvm, "-c",
                        "-DLLVM_DISABLE_ABI_BREAKING_CHECKS_ENFORCING=1",
                        source / "lib/Numerics" / f"{name}.cpp", "-o", objects[-1]], check=True)
    subprocess.run([CROSS + "ar", "rcs", archive, *objects], check=True)
    return archive


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "source", "llvm", "model", "work"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--programs", nargs="+", required=True)
    options = parser.parse_args()
    root = pathlib.Path(options.work)
    root.mkdir(parents=True, exist_ok=True)
    numerics = build_numerics(pathlib.Path(options.source), options.llvm, root)
    shipped = json.loads((pathlib.Path(options.model) / "config.json").read_text())
    failures = 0
    for number, storage in enumerate(STORAGE):
        work, config = root / storage, random_sizes(shipped, number + 1)
        make_model(work, config)
        library = work / "kernels.so"
        subprocess.run([options.ctxc, "compile", work, "--emit=obj", "--dtype", storage,
                        "--target=aarch64", "-o", work / "kernels.o"], check=True)
        subprocess.run([CROSS + "g++", "-shared", "-o", library, work / "kernels.o", numerics,
                        "-Wl,-z,defs", "-lm"], check=True)
        for source in options.programs:
            program = work / pathlib.Path(source).stem
            compile_program([CROSS + "gcc"], source, program, work, config, storage, [])
            if subprocess.run([*EMULATOR, program, library]).returncode:
                print(f"{program} fails: {storage}, {sizes(config)}")
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
