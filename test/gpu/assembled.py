"""Assembles the PTX of every kernel of some models with NVIDIA's ptxas, for sm_80 and sm_90, for weights of
float32 and bfloat16, and for a token and many rows: no kernel may spill registers. Validates their SPIR-V if
spirv-val is installed. A model `gguf:TYPE` is a layer of Llama 3.1 8B whose matrices are in blocks."""

import argparse
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench/gpu"))
SKIPPED = 77


def find_ptxas():
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        path = pathlib.Path(folder, "cuda_nvcc/bin/ptxas")
        if path.exists():
            path.chmod(0o755)
            return str(path)
    return shutil.which("ptxas")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_registers(report, what):
    """The registers of each kernel, from the output of ptxas -v."""
    kernels = re.findall(
        r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads.*?Used (\d+) registers",
        report,
        re.DOTALL,
    )
    if not kernels:
        sys.exit(f"{what}: ptxas speaks of no kernel:\n{report}")
    for name, stack, stores, loads, _ in kernels:
        if int(stack) or int(stores) or int(loads):
            sys.exit(f"{what}: {name} spills: {stack} bytes of stack, {stores} stored, {loads} loaded")
    return {name: int(registers) for name, *_, registers in kernels}


def assemble(ptxas, ctxc, model, ptx, what, *options):
    """Compiles the model to `ptx`, whose name ends with the architecture, and assembles it."""
    architecture = ptx.stem.split("-")[-1]
    run(ctxc, "compile", model, "--emit=ptx", f"--target=cuda:{architecture}", *options, "-o", ptx)
    if ".extern .func" in ptx.read_text():
        sys.exit(f"{ptx}: a kernel calls a library of the toolkit")
    registers = check_registers(
        run(ptxas, "-v", f"-arch={architecture}", ptx, "-o", ptx.with_suffix(".cubin")), what)
    counts = sorted(registers.values())
    most = max(registers, key=registers.get)
    print(f"{what}: {len(counts)} kernels, no spills, registers {counts[0]} to "
          f"{counts[-1]} ({most}), half at most {counts[len(counts) // 2]}")


def assemble_blocks(ptxas, ctxc, kind, work):
    import models
    import sparse_gguf
    path = work / f"llama-{kind}.gguf"
    sparse_gguf.write(models.LLAMA_8B | dict(num_hidden_layers=1, vocab_size=1024), kind, path)
    for architecture in ("sm_80", "sm_90"):
        assemble(ptxas, ctxc, path, work / f"llama-{kind}-{architecture}.ptx", f"llama {kind} {architecture}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ctxc", required=True)
    parser.add_argument("--goldens", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    ptxas = find_ptxas()
    if not ptxas:
        print("skipped: there is no ptxas; tools/setup.sh --judges installs one")
        sys.exit(SKIPPED)
    validator = shutil.which("spirv-val")
    for model in arguments.models:
        if model.startswith("gguf:"):
            assemble_blocks(ptxas, arguments.ctxc, model.split(":")[1], arguments.work)
            continue
        for dtype, rows in (("f32", 1), ("bf16", 1), ("bf16", 24)):
            for architecture in ("sm_80", "sm_90") if rows == 1 else ("sm_90",):
                assemble(ptxas, arguments.ctxc, arguments.goldens / model,
                         arguments.work / f"{model}-{dtype}-{rows}-{architecture}.ptx",
                         f"{model} {dtype} {architecture}, {rows} rows", "--dtype", dtype, "--rows", str(rows))
            if validator:
                binary = arguments.work / f"{model}-{dtype}.spv"
                run(arguments.ctxc, "compile", arguments.goldens / model, "--emit=spirv",
                    "--target=vulkan", "--dtype", dtype, "--rows", str(rows), "-o", binary)
                run(validator, "--target-env", "vulkan1.1", binary)
                print(f"{model} {dtype}, {rows} rows: SPIR-V is valid")


if __name__ == "__main__":
    main()
