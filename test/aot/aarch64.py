"""Runs the C programs on an emulated AArch64. The kernels are compiled here for --target=aarch64; a cross compiler
compiles the functions of libCtxcNumerics that they call, and links both. Products by the instructions that not every
AArch64 has must be those of its baseline.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from run import STORAGE, compile_program, make_model, random_sizes, sizes

CROSS = "aarch64-linux-gnu-"
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
NUMERICS = ["KernelABI", "CpuFeatures", "ByteVectors", "ExpertGroups", "FixedVectors", "NormInversionCore", "UnitProblem", "ReplayError"]


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


# A layer to patch, and one that is the product.
MODEL = """
xf.block @layer(%x: tensor<256xf32>) -> tensor<256xf32> {{
  %Q = xf.param "q" : tensor<16x256xf32>
  %O = xf.param "o" : tensor<256x16xf32>
  %U = xf.param "up" : tensor<8x256xf32>
  %D = xf.param "down" : tensor<256x8xf32>
  %q0 = xf.linear %Q * %x : tensor<16x256xf32>, tensor<256xf32>
  %q = xf.reshape %q0 : tensor<16xf32> to tensor<1x16xf32>
  %a0 = xf.attention %q, %q, %q scale 0.25 : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32> -> tensor<1x16xf32>
  %a = xf.reshape %a0 : tensor<1x16xf32> to tensor<16xf32>
  %o = xf.linear %O * %a : tensor<256x16xf32>, tensor<16xf32>
  %y = xf.add %x, %o : tensor<256xf32>
  %u = xf.linear %U * %y : tensor<8x256xf32>, tensor<256xf32>
  %h = xf.activation silu %u : tensor<8xf32>
  %d = xf.linear %D * %h : tensor<256x8xf32>, tensor<8xf32>
  %z = xf.add %y, %d : tensor<256xf32>
  xf.yield %z : tensor<256xf32>
}}
xf.block @one(%x: tensor<256xf32>) -> tensor<70xf32> {{
  %W = xf.param "w" : tensor<70x256x{type}>
  %y = xf.linear %W * %x : tensor<70x256x{type}>, tensor<256xf32>
  xf.yield %y : tensor<70xf32>
}}
xf.model @model {{
  %E = xf.param "embed" : tensor<3x256xf32>
  %token = xf.token : tensor<i32>
  %x0 = xf.embed %E[%token] : tensor<3x256xf32>, tensor<i32>
  %x1 = xf.layer @layer(%x0) at "0." : (tensor<256xf32>) -> tensor<256xf32>
  %x2 = xf.layer @one(%x1) at "1." : (tensor<256xf32>) -> tensor<70xf32>
  xf.yield %x2 : tensor<70xf32>
}}
"""
# W's type, its bytes for each 256 numbers, and the targets and options of two libraries.
PRODUCTS = [("bf16", 512, [], ["+bf16", "--round-prompts"])] + [
    (f"!xf.quantized<{name}>", size, ["", "--integer-products"], [features, "--integer-products"])
    for name, size in (("q8_0", 272), ("q4_0", 144), ("q4_k", 144), ("q6_k", 210))
    for features in ("+dotprod", "+dotprod+i8mm")]


def compile_library(options, model, library, numerics, target, *more):
    subprocess.run([options.ctxc, "compile", model, "--emit=obj", "--target=aarch64" + target,
                    "-o", library.with_suffix(".o"), *more], check=True)
    subprocess.run([CROSS + "g++", "-shared", "-o", library, library.with_suffix(".o"), numerics,
                    "-Wl,-z,defs", "-lm"], check=True)


def products_differ(options, root, numerics):
    """How many products by other instructions are not those of the baseline."""
    failures = 0
    for number, (kind, size, *targets) in enumerate(PRODUCTS):
        work = root / f"products{number}"
        work.mkdir(exist_ok=True)
        (work / "model.mlir").write_text(MODEL.format(type=kind))
        libraries = [work / "kernels.so", work / "others.so"]
        for library, (target, *more) in zip(libraries, [targets[0] or [""], targets[1]]):
            compile_library(options, work / "model.mlir", library, numerics, target, *more)
        subprocess.run([CROSS + "gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1",
                        "-I", work, f"-DBYTES={70 * size}",
                        "-DWEIGHT=" + STORAGE.get(kind, "F32"), pathlib.Path(__file__).with_name("products.c"),
                        "-o", work / "products", "-pthread", "-ldl", "-lm"], check=True)
        if subprocess.run([*EMULATOR, work / "products", *libraries]).returncode:
            print(f"{kind} by {targets[1][0]} differs")
            failures += 1
    return failures


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
    failures = products_differ(options, root, numerics)
    for number, storage in enumerate(STORAGE):
        work, config = root / storage, random_sizes(shipped, number + 1)
        make_model(work, config)
        library = work / "kernels.so"
        compile_library(options, work, library, numerics, "", "--dtype", storage)
        for source in options.programs:
            program = work / pathlib.Path(source).stem
            compile_program([CROSS + "gcc"], source, program, work, config, storage, [])
            if subprocess.run([*EMULATOR, program, library]).returncode:
                print(f"{program} fails: {storage}, {sizes(config)}")
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
