"""Checks the kernels that contract many rows with NVIDIA's ptxas and LLVM's readelf, for shapes of models and odd
ones: no kernel spills registers, or uses more registers than its block size allows."""

import argparse
import pathlib
import subprocess
import sys

from assembled import check_registers, find_ptxas, run
from disassembled import WAVEFRONT, Checked, metadata_of

TENSOR_REGISTERS = 128  # of tensor-core kernels: two blocks of 256 threads share 65536


def code_of(arguments, target, dtype, shape, path, *words):
    path.write_bytes(subprocess.run([arguments.tile_code, target, dtype, *map(str, shape), *words],
                                    check=True, capture_output=True).stdout)
    return path


def assemble(arguments, ptxas, architecture, dtype, shape, *words):
    what = " ".join((architecture, dtype, " x ".join(map(str, shape)), *words))
    path = code_of(arguments, f"cuda:{architecture}", dtype, shape, arguments.work / "tiles.ptx",
                   *words)
    report = run(ptxas, "-v", f"-arch={architecture}", path, "-o", path.with_suffix(".cubin"))
    registers = max(check_registers(report, what).values())
    products = path.read_text().count("mma.sync")
    if bool(products) != (dtype == "bf16" and shape[2] % 8 == 0):
        sys.exit(f"{what}: {products} products of tensor cores")
    if products and registers > TENSOR_REGISTERS:
        sys.exit(f"{what}: {registers} registers, expected {TENSOR_REGISTERS} at most")
    print(f"{what}: no spills, {registers} registers" + (", tensor cores" if products else ""))


def disassemble(arguments, architecture, dtype, shape):
    what = f"{architecture} {dtype} {' x '.join(map(str, shape))}"
    path = code_of(arguments, f"rocm:{architecture}", dtype, shape, arguments.work / "tiles.hsaco")
    for name, kernel in metadata_of(arguments.llvm / "llvm-readelf", path).items():
        for key in ("vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size"):
            Checked(what).equal(name, key, kernel["." + key], 0)
        print(f"{what}: no spills, {kernel['.vgpr_count']} vector registers")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tile-code", required=True)
    parser.add_argument("--llvm", type=pathlib.Path, required=True, help="folder of LLVM's tools")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("shapes", nargs="+", metavar="ROWSxOUTPUTSxINPUTS")
    arguments = parser.parse_args()
    ptxas = find_ptxas()
    for dtype in ("f32", "bf16", "f16"):
        for shape in [tuple(map(int, shape.split("x"))) for shape in arguments.shapes]:
            for architecture in ("sm_80", "sm_90") if ptxas else ():
                for words in ((), ("rounded",)) if dtype == "bf16" else ((),):
                    assemble(arguments, ptxas, architecture, dtype, shape, *words)
            for architecture in WAVEFRONT:
                disassemble(arguments, architecture, dtype, shape)


if __name__ == "__main__":
    main()
