"""A library that multiplies in AMX's tile registers asks the system for them, and refuses a process that gets none.

Exits with 77 where this machine has none.
"""
import argparse
import ctypes
import json
import pathlib
import subprocess
import sys

REFUSED = "the kernels need amx-tile, which this machine lacks or the system does not give this process"


class Stack(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]


def ask(path, has_small_stack):
    """Prints why the library cannot be used, in a process of its own. Linux gives tile registers to no process whose
    stack for signals is too small for them."""
    if has_small_stack:
        memory = ctypes.create_string_buffer(4096)
        stack = Stack(ctypes.addressof(memory), 0, len(memory))
        assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0
    library = ctypes.CDLL(str(path))
    library.ctxc_refusal.restype = ctypes.c_char_p
    reason = library.ctxc_refusal(2)
    if reason:  # then kernels return before they read their call, which is null
        for kernel in json.loads(path.with_suffix(".json").read_text())["kernels"]:
            assert library[kernel["name"]](None) == -1, kernel["name"]
    print(reason.decode() if reason else "")
    return 0


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "model", "work"):
        parser.add_argument("--" + option)
    parser.add_argument("--ask", type=pathlib.Path)
    parser.add_argument("--small-stack", action="store_true")
    options = parser.parse_args()
    if options.ask:
        return ask(options.ask, options.small_stack)
    path = pathlib.Path(options.work) / "tiles.so"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([options.ctxc, "compile", options.model, "--dtype", "bf16", "--round-prompts",
                    "--emit=shared", "--target=sapphirerapids", "-o", path], check=True)

    def reason(*more):
        return subprocess.run([sys.executable, __file__, "--ask", path, *more], check=True,
                              capture_output=True, text=True).stdout.strip()

    usual, small = reason(), reason("--small-stack")
    print(f"usual: {usual or 'runs'}\nwith a small stack for signals: {small or 'runs'}")
    assert small, "the system gave tile registers to a process without room for them"
    if usual:
        print(f"skipped: {usual}")
        return 77
    assert small == REFUSED, small
    return 0


if __name__ == "__main__":
    sys.exit(main())
