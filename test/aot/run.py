"""Compiles models to libraries, C programs against their headers, and runs the programs.

The models are Llamas of one layer: the one of a folder, and others of random sizes, in every storage
type, for this processor and for older ones. A library must need nothing but libc and libm, and must have no
writable memory other than the documented word.
"""
import argparse
import ctypes
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import sys

STORAGE = {"f32": "F32", "bf16": "BF16", "f16": "F16"}


def sizes(config):
    return {"D": config["hidden_size"], "HEADS": config["num_attention_heads"],
            "GROUPS": config["num_key_value_heads"], "E": config["head_dim"],
            "M": config["intermediate_size"], "VOCABULARY": config["vocab_size"]}


def random_sizes(config, seed):
    r = random.Random(seed)
    groups = r.randint(1, 3)
    smallest = seed == 0
    return config | {"hidden_size": 1 if smallest else r.randint(2, 150),
                     "num_key_value_heads": groups,
                     "num_attention_heads": groups * r.randint(1, 3),
                     "head_dim": 2 if smallest else 2 * r.randint(1, 20),
                     "intermediate_size": 1 if smallest else r.randint(2, 200),
                     "vocab_size": 1 if smallest else r.randint(2, 300)}


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def refusal(library):
    ask = ctypes.CDLL(str(library)).ctxc_refusal
    ask.restype = ctypes.c_char_p
    return ask(2)


def check_library(library):
    """The libraries that the library needs, and its writable symbols."""
    needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("llvm-readelf", "-d", library))
    assert set(needed) <= {"libm.so.6", "libc.so.6"}, needed
    undefined = output_of("llvm-nm", "-D", "--undefined-only", library)
    for name in ("malloc", "calloc", "realloc", "aligned_alloc", "free", "pthread", "__tls", "Zn",
                 "ctxc"):
        assert not re.search(rf"\b_?{name}", undefined), undefined
    for line in output_of("llvm-nm", library).splitlines():
        kind, name = line.split()[-2:]
        # Symbols of start-up files, and sections that are read-only after loading.
        if kind in "bBdDsS" and name not in ("ctxc_cpu", "__cpu_model", "__cpu_features2",
                                             "completed.0", "__dso_handle", "__TMC_END__",
                                             "_GLOBAL_OFFSET_TABLE_", "_DYNAMIC"):
            assert is_relocated_only(library, name), f"{name} of {library} can be written"


def is_relocated_only(library, name):
    sections = output_of("llvm-readelf", "-SW", library)
    index = next(line.split()[6] for line in output_of("llvm-readelf", "-sW", library).splitlines()
                 if line.split()[-1:] == [name])
    return re.search(rf"\[ *{index}\] \.(data\.rel\.ro|init_array|fini_array)", sections)


def compile_program(compiler, source, program, work, config, storage, flags):
    macros = [f"-D{name}={size}" for name, size in sizes(config).items()]
    subprocess.run([*compiler, "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1",
                    "-I", work, *macros, f"-DWEIGHT={STORAGE[storage]}", *flags, source,
                    "-o", program, "-pthread", "-ldl", "-lm"], check=True)


def make_model(work, config):
    work.mkdir(parents=True, exist_ok=True)
    (work / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "cc", "model", "work", "tools"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--programs", nargs="+", required=True)
    parser.add_argument("--flags", nargs="*", default=[],
                        help="more flags of the C compiler, each without its dash")
    parser.add_argument("--models", type=int, default=9, help="how many of the models")
    options = parser.parse_args()
    os.environ["PATH"] += os.pathsep + options.tools
    shipped = json.loads((pathlib.Path(options.model) / "config.json").read_text())
    models = [(shipped, "f32", "native")] + [
        (random_sizes(shipped, seed), list(STORAGE)[seed % 3], target)
        for seed, target in enumerate(["native", "x86-64-v3", "x86-64-v2", "x86-64-v4", "native",
                                       "x86-64-v2", "native", "x86-64-v3"])]
    if platform.machine() != "x86_64":
        models = [model for model in models if model[2] == "native"]
    failures = 0
    for number, (config, storage, target) in enumerate(models[:options.models]):
        work = pathlib.Path(options.work) / str(number)
        make_model(work, config)
        library = work / "kernels.so"
        subprocess.run([options.ctxc, "compile", work, "--emit=shared", "--dtype", storage,
                        "--target", target, "-o", library], check=True)
        assert json.loads((work / "kernels.json").read_text())["abi_version"] == 2
        check_library(library)
        if reason := refusal(library):
            print(f"{target}: {reason}")
            continue
        for source in options.programs:
            program = work / pathlib.Path(source).stem
            compile_program([options.cc], source, program, work, config, storage,
                            ["-" + flag for flag in options.flags])
            if subprocess.run([program, library]).returncode:
                print(f"{program} fails: {storage}, {target}, {sizes(config)}")
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
