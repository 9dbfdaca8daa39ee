"""A library for a processor with more features than this one refuses to run, and its kernels do nothing.

Exits with 77 if this machine has all features that any of the processors needs.
"""
import argparse
import ctypes
import json
import pathlib
import subprocess
import sys

NEWER = ["sapphirerapids", "znver4", "skylake-avx512", "haswell"]


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "model", "work"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    for target in NEWER:
        path = work / f"{target}.so"
        subprocess.run([options.ctxc, "compile", options.model, "--emit=shared", "--target", target,
                        "-o", path], check=True)
        library = ctypes.CDLL(str(path))
        library.ctxc_refusal.restype = ctypes.c_char_p
        reason = library.ctxc_refusal(2)
        if not reason:
            continue
        manifest = json.loads(path.with_suffix(".json").read_text())
        assert any(reason.decode().startswith(f"the kernels need {feature}, which this machine lacks")
                   for feature in manifest["target"]["needed_features"]), reason
        for kernel in manifest["kernels"]:
            # The kernel must return before it reads its call, which is null; also the second time.
            for _ in range(2):
                assert library[kernel["name"]](None) == -1, kernel["name"]
            assert library[kernel["workspace"]](1, 1, 1) > 0
        print(f"{target}: {reason.decode()}")
        return 0
    print("skipped: this machine lacks nothing that a kernel needs")
    return 77


if __name__ == "__main__":
    sys.exit(main())
