"""Checks the code objects of every kernel of some models with LLVM's readelf and objdump, for AMD's gfx90a, gfx942
and gfx1100 and for weights of float32 and bfloat16. Each kernel must have its function and descriptor, exactly the
arguments and the block size that the gpu dialect gave it, no spilled register, no private memory and no call.
Contractions whose rows are pieces of 16 bytes must read such pieces, several before they wait for the first. After a
barrier, the writes of one wavefront must be visible to others."""

import argparse
import concurrent.futures
import itertools
import math
import os
import pathlib
import re
import subprocess
import sys

import yaml

WAVEFRONT = {"gfx90a": 64, "gfx942": 64, "gfx1100": 32}
AHEAD = 4  # pieces that a lane reads before it uses the first, where it has as many


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def functions_of(text):
    """(name, argument types, threads of a block) of each kernel, from the gpu dialect's text."""
    found = re.findall(r"gpu\.func @(\w+)\((.*?)\)(?: workgroup\(.*?\))? kernel attributes "
                       r"\{known_block_size = array<i32: (\d+), 1, 1>", text)
    return {name: (re.findall(r"%arg\d+: ([^%]*?)(?:, (?=%)|$)", arguments), int(threads))
            for name, arguments, threads in found}


def metadata_of(readelf, path):
    notes = run(readelf, "--notes", path)
    text = notes[notes.index("---"):notes.rindex("...")]
    return {kernel[".name"]: kernel for kernel in yaml.safe_load(text)["amdhsa.kernels"]}


def symbols_of(readelf, path):
    """The kind of each dynamic symbol that the file defines, by name."""
    lines = re.findall(r"^\s*\d+: \w+\s+\d+ (\w+)\s+GLOBAL \w+\s+(\w+) (\S+)$",
                       run(readelf, "--dyn-syms", path), re.MULTILINE)
    undefined = [name for _, section, name in lines if section == "UND"]
    if undefined:
        sys.exit(f"{path}: names what it lacks: {', '.join(undefined)}")
    return {name: kind for kind, _, name in lines}


def code_of(objdump, path):
    """Each function's instructions: the text before their encodings, and an unconditional branch as
    "s_branch to N", the N-th of them."""
    code = {}
    for line in run(objdump, "-d", "--no-show-raw-insn", path).splitlines():
        if head := re.match(r"([0-9a-f]+) <(\w+)>:$", line):
            code[head[2]] = instructions = []
            numbers, start = {}, int(head[1], 16)
        elif line.startswith("\t"):
            text, comment = line.split("//")
            numbers[int(comment.split(":")[0], 16) - start] = len(instructions)
            target = re.search(r"<\w+\+0x([0-9a-f]+)>", comment)
            is_branch = text.split()[0] == "s_branch" and target
            instructions.append((int(target[1], 16), numbers) if is_branch else text.strip())
    for instructions in code.values():
        for i, instruction in enumerate(instructions):
            if isinstance(instruction, tuple):
                offset, numbers = instruction
                instructions[i] = f"s_branch to {numbers[offset]}"
    return code


def next_of_memory(instructions, start):
    """The first instruction after `start` that accesses memory or is a conditional branch."""
    i = start + 1
    while not re.match(r"buffer_|global_|ds_|s_load|s_cbranch", instructions[i]):
        branch = re.match(r"s_branch to (\d+)", instructions[i])
        i = int(branch[1]) if branch else i + 1
    return instructions[i].split()[0]


class Checked:
    def __init__(self, what):
        self.what = what

    def equal(self, kernel, name, found, expected):
        if found != expected:
            sys.exit(f"{self.what}: {kernel}: {name}: found {found}, expected {expected}")


def pieces_of_lane(arguments, dtype, architecture):
    """How many pieces of 16 bytes of a row each lane reads; 0 where it reads element by element."""
    if not all("xvector<4x" in argument for argument in arguments[:2]):
        return 0
    pieces, numbers, results = (int(re.match(r"memref<(\d+)x", argument)[1])
                                for argument in arguments[:3])  # of the first, where there are several
    # Of W[m, k], x[s, k] and y[s, m]: pieces = m k / size, 4 numbers = s k, results = s m.
    size = 8 if dtype == "bf16" else 4
    vectors = math.isqrt(4 * numbers * results // (size * pieces))
    return pieces * vectors // results // WAVEFRONT[architecture]


def most_under_way(instructions):
    """The longest sequence of loads of 16 bytes without a wait between them."""
    most = run = 0
    for line in instructions:
        if line.startswith(("global_load_dwordx4", "global_load_b128")):
            run += 1
            most = max(most, run)
        elif line.startswith("s_waitcnt"):
            run = 0
    return most


def check_code(check, name, instructions, is_contraction_of_pieces, architecture):
    words = [line.split()[0] for line in instructions]
    for word in words:
        if re.match(r"flat_|scratch_|s_swappc|s_call|s_setpc|buffer_(load|store)", word):
            sys.exit(f"{check.what}: {name}: has {word}: a call, or memory that is not the device's")
    pieces = [w for w in words if w in ("global_load_dwordx4", "global_load_b128")]
    if is_contraction_of_pieces:
        # Weights and vectors alike.
        loads = [w for w in words if w.startswith("global_load_")]
        if not pieces or any("dwordx4" not in w and "b128" not in w for w in loads):
            sys.exit(f"{check.what}: {name}: reads {sorted(set(loads))}, expected 16 bytes each")
    if architecture == "gfx1100":
        # Wavefronts of a block may be on two compute units there, each with a cache of its own.
        for i, word in enumerate(words):
            if word == "s_barrier":
                check.equal(name, "after a barrier", next_of_memory(instructions, i),
                            "buffer_gl0_inv")
    return len(pieces)


def check_object(check, functions, metadata, symbols, code, dtype, architecture):
    check.equal("all", "kernels", sorted(metadata), sorted(functions))
    pieces = 0
    for name, (arguments, threads) in functions.items():
        kernel = metadata[name]
        expected = {
            ".symbol": f"{name}.kd",
            ".kernarg_segment_size": 8 * len(arguments),
            ".max_flat_workgroup_size": threads,
            ".reqd_workgroup_size": [threads, 1, 1],
            ".wavefront_size": WAVEFRONT[architecture],
            ".private_segment_fixed_size": 0,
            ".uses_dynamic_stack": False,
            ".vgpr_spill_count": 0,
            ".sgpr_spill_count": 0,
        }
        for key, value in expected.items():
            check.equal(name, key, kernel[key], value)
        kinds = [argument[".value_kind"] for argument in kernel[".args"]]
        check.equal(name, "arguments", kinds, ["global_buffer"] * len(arguments))
        check.equal(name, "symbol", symbols.get(name), "FUNC")
        check.equal(name, "descriptor", symbols.get(f"{name}.kd"), "OBJECT")
        each = pieces_of_lane(arguments, dtype, architecture) if name.endswith("_contract") else 0
        is_pieces = name.endswith("_contract") and "xvector<4x" in arguments[0]
        pieces += check_code(check, name, code[name], is_pieces, architecture)
        if each >= AHEAD and most_under_way(code[name]) < AHEAD:
            sys.exit(f"{check.what}: {name}: waits for the memory after "
                     f"{most_under_way(code[name])} loads, expected {AHEAD} at least")
    return pieces


def check_model(arguments, model, dtype, architecture):
    """How many pieces the kernels read, and a line about them."""
    what = f"{model.name} {dtype} {architecture}"
    path = arguments.work / f"{what.replace(' ', '-')}.hsaco"
    command = [arguments.ctxc, "compile", model, f"--target=rocm:{architecture}", "--dtype", dtype]
    functions = functions_of(run(*command, "--emit=gpu", "-o", "-"))
    run(*command, "--emit=hsaco", "-o", path)
    readelf = arguments.llvm / "llvm-readelf"
    metadata = metadata_of(readelf, path)
    pieces = check_object(Checked(what), functions, metadata, symbols_of(readelf, path),
                          code_of(arguments.llvm / "llvm-objdump", path), dtype, architecture)
    counts = {name: kernel[".vgpr_count"] for name, kernel in metadata.items()}
    most = max(counts, key=counts.get)
    scalars = max(kernel[".sgpr_count"] for kernel in metadata.values())
    return pieces, (f"{what}: {len(counts)} kernels, no spills, vector registers up to "
                    f"{counts[most]} ({most}), scalar up to {scalars}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ctxc", required=True)
    parser.add_argument("--llvm", type=pathlib.Path, required=True, help="folder of LLVM's tools")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check_model, arguments, *job)
                for job in itertools.product(arguments.models, ("f32", "bf16"), WAVEFRONT)]
        total = 0
        for job in jobs:
            pieces, line = job.result()
            total += pieces
            print(line, flush=True)
    if not total:
        sys.exit("no kernel of any model reads pieces of 16 bytes")


if __name__ == "__main__":
    main()
