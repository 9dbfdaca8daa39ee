"""Reads damaged copies of a file of ctxc's own format: program_file.py CTXC FOLDER [KINDS]; `write` in the place of CTXC writes the
whole one alone. Every member of it is taken away, given so many other kinds of value (3), and joined by a member that nobody knows; ctxc
has to refuse each with the file's name and the place, or to read it where docs/program-file.md says that it may be so. Prints how many
were tried."""
import copy
import json
import subprocess
import sys
from pathlib import Path

CTXC, FOLDER = sys.argv[1], Path(sys.argv[2])
KINDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
FILE = FOLDER / "damaged.ctxc"


def tensor(name, *sizes, **more):
    return {"name": name, "type": "F32", "sizes": list(sizes), **more}


# y = where(mask, x + W relu(x), 0) of four-vectors, with every member that there is.
PROGRAM = {
    "source": {"framework": "none"},
    "taken": "of its results the first is taken",
    "inputs": [tensor("x", 1, "t", 4, role="activation")],
    "stored": [tensor("w.weight", 4, 4, kind="parameter", part={"of": "all", "offset": 2, "dims": [4, 4], "strides": [4, 1]}),
               tensor("b", 4, kind="buffer")],
    "traces": ['File "/home/me/mine.py", line 7, in forward\n    made()\n'],
    "calls": [
        {"op": "aten.relu.default", "arguments": {"self": {"tensor": "x"}}, "results": [tensor("h", 1, "t", 4)], "module": "mlp", "trace": 0,
         "visible": False},
        {"op": "aten.linear.default", "arguments": {"input": {"tensor": "h"}, "weight": {"stored": "w.weight"}},
         "results": [tensor("m", 1, "t", 4)]},
        {"op": "aten.layer_norm.default", "results": [tensor("n", 1, "t", 4)],
         "arguments": {"input": {"tensor": "m"}, "normalized_shape": {"list": [{"int": 4}]}, "weight": {"none": True}, "bias": {"stored": "b"},
                       "eps": {"float": 1e-5}, "cudnn_enable": {"flag": True}}},
        {"op": "aten._to_copy.default", "arguments": {"self": {"tensor": "n"}, "dtype": {"type": "F32"}}, "results": [tensor("c", 1, "t", 4)]},
        {"op": "aten.gelu.default", "arguments": {"self": {"tensor": "c"}, "approximate": {"text": "none"}}, "results": [tensor("g", 1, "t", 4)]},
        {"op": "aten.view.default", "arguments": {"self": {"tensor": "g"}, "size": {"list": [{"int": 1}, {"size": "t"}, {"int": 4}]}},
         "results": [tensor("v", 1, "t", 4)]},
        {"op": "aten.add.Tensor", "arguments": {"self": {"tensor": "x"}, "other": {"tensor": "v"}}, "results": [tensor("y", 1, "t", 4)]}],
    "results": [{"tensor": "y"}]}
NUMBERS = {"why": "it is no model of tokens"}
RUN = {"tokens": [1], "width": 1, "rounding": 0, "logits": "AAAAAA==", "layers": [{"path": "layers.0", "width": 1, "rows": "AAAAAA=="}]}
RUNS = {"weights": "0", "random": False, "runs": [RUN]}
OPTIONAL = ("part", "module", "trace", "visible", "taken")
# Places that take any text, or any number.
OTHERS = (None, True, -1, 1.5, 2 ** 70, "", "nonsense", [], {}, [[]], {"nonsense": {}})
FREE = ("op", "module", "of", "taken", "path", "text", "size", "weights")


def write(program=PROGRAM, numbers=NUMBERS, metadata=None, stored=None):
    said = {"format": "ctxc program", "version": "1", "program": json.dumps(program), "numbers": json.dumps(numbers), **(metadata or {})}
    said = {key: each for key, each in said.items() if each is not None}
    tensors = {"w.weight": ("F32", [4, 4]), "b": ("F32", [4])} if stored is None else stored
    header, place = {"__metadata__": said}, 0
    for name, (dtype, shape) in tensors.items():
        size = {"F32": 4, "F64": 8}[dtype]
        for each in shape:
            size *= each
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    FILE.write_bytes(len(text).to_bytes(8, "little") + text + bytes(place))


def places(value, path=()):
    """All members of objects and elements of lists, from the outside in."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key), each
        if key != "source":
            yield from places(each, (*path, key))


def changed(value, path, change):
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return made


tried = failures = 0


def expect(what, codes, *said):
    global tried, failures
    run = subprocess.run([CTXC, "import", FILE], capture_output=True, text=True)
    tried += 1
    is_located = run.returncode == 0 or (str(FILE) in run.stderr and all(text in run.stderr for text in said))
    if run.returncode not in codes or not is_located:
        failures += 1
        print(f"{what}: exit code {run.returncode}: {run.stderr.strip()[:400]}")


def damage(name, whole, write_one):
    for index, (path, value) in enumerate(places(whole)):
        key = next((each for each in reversed(path) if isinstance(each, str)), "")
        shown = f"{name} {'.'.join(map(str, path))}"
        may_lack = path[-1] in OPTIONAL or isinstance(path[-1], int) or (len(path) > 1 and path[-2] == "arguments")
        write_one(changed(whole, path, lambda inner, at: inner.pop(at)))
        expect(f"{shown} taken away", (0, 2) if may_lack else (2,))
        for other in (OTHERS[(3 * index + i) % len(OTHERS)] for i in range(KINDS)):
            if type(other) is type(value) and other == value:
                continue
            write_one(changed(whole, path, lambda inner, at: inner.__setitem__(at, other)))
            is_number = isinstance(other, (int, float)) and not isinstance(other, bool)
            may_be = (isinstance(other, type(value)) and (key in FREE or isinstance(value, (list, bool, int)) or path[0] == "traces")) or \
                key in ("sizes", "traces") or (key in ("source", "arguments") and isinstance(other, dict)) or (is_number and key in ("float", "int", "rounding"))
            expect(f"{shown} as {other!r}", (0, 2) if may_be else (2,))
        if isinstance(value, dict) and key not in ("source", "arguments"):
            write_one(changed(whole, path, lambda inner, at: inner[at].__setitem__("nonsense", 1)))
            expect(f"{shown} with a member that nobody knows", (2,), "nonsense" if len(value) != 1 or name == "numbers" else "")


def main():
    FOLDER.mkdir(exist_ok=True)
    write()
    expect("as it is", (0,))
    write({**PROGRAM, "nonsense": 1})
    expect("a member that nobody knows", (2,), "nonsense")
    damage("program", PROGRAM, lambda program: write(program))
    write(numbers=RUNS)
    expect("with numbers", (0,))
    damage("numbers", RUNS, lambda numbers: write(numbers=numbers))
    for version, said in (("0", "older"), ("2", "newer"), ("one", "older"), (None, "older")):
        write(metadata={"version": version})
        expect(f"version {version}", (2,), said, "expected 1")
    for key in ("format", "program", "numbers"):
        for text in (None, "", "[]", "{", "[" * 5000):
            write(metadata={key: text})
            expect(f"{key} as {text!r:.20}", (2,))
    write(metadata={"nonsense": ""})
    expect("metadata that nobody knows", (2,), "nonsense")
    for stored, said in (({"other": ("F32", [4])}, "'other'"), ({"b": ("F64", [4])}, "F64[4]"), ({"b": ("F32", [5])}, "F32[5]")):
        write(stored=stored)
        expect(f"stored {stored}", (2,), said)
    write(stored={})
    expect("without numbers", (0,))
    write(changed(PROGRAM, ("calls", 0, "arguments", "self", "tensor"), lambda inner, at: inner.__setitem__(at, "m")))
    expect("a cycle", (2,), "calls[0]: argument 'self'", "'m' is read before anything makes it")
    for data in (FILE.read_bytes()[:-40], b"", b"PK\3\4" + bytes(100)):
        FILE.write_bytes(data)
        expect("no such file", (2,))
    print(f"{tried} tried, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(write() if CTXC == "write" else main())
