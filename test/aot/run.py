"""Compiles a model to a library, a C program against its header, and runs the program.

The program finds arguments by names that come from the manifest:
ARG_<KERNEL>_<KIND or parameter>[_<index>] is an argument's place.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys


def places(manifest):
    lines = []
    for kernel in manifest["kernels"]:
        prefix = "ARG_" + kernel["name"].removeprefix("ctxc_").upper()
        for i, argument in enumerate(kernel["arguments"]):
            name = re.sub(r"\W", "_", argument.get("name") or argument["kind"])
            index = f"_{argument['index']}" if argument["kind"] in ("input", "output", "state") else ""
            if argument["kind"] in ("store", "load"):
                index = f"_{argument['kind']}_{argument['index']}"
            stream = "_reduced" if argument["stream"] else ""
            lines.append(f"#define {prefix}_{name}{index}{stream} {i}")
        lines.append(f"#define {prefix}_count {len(kernel['arguments'])}")
    assert len(set(line.split()[1] for line in lines)) == len(lines), "two arguments have one name"
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "cc", "model", "program", "work"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    library = work / "kernels.so"
    subprocess.run([options.ctxc, "compile", options.model, "--emit=shared", "-o", library], check=True)
    manifest = json.loads((work / "kernels.json").read_text())
    assert manifest["abi_version"] == 1, manifest["abi_version"]
    (work / "arguments.h").write_text(places(manifest))
    program = work / "program"
    subprocess.run([options.cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I", work,
                    options.program, "-o", program, "-ldl", "-lm"], check=True)
    return subprocess.run([program, library]).returncode


if __name__ == "__main__":
    sys.exit(main())
