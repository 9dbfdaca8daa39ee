"""The same program as another file: values have other names, ops that do not depend on each other stand in another
order, and weights have no memory; or PyTorch's own table of decompositions has left only the ops of its core. A verdict
must depend on none of these."""
import json
import random
from pathlib import Path


def rewrite(source, target, change, keeps=lambda entry: True):
    """A copy of a program's file: `change` is called with its program and its numbers, and of what it stores those are kept for whose
    entry `keeps` is true."""
    from ctxc import _program_file
    header, begin = _program_file.read_header(source)
    metadata = header.pop("__metadata__")
    program, numbers = json.loads(metadata["program"]), json.loads(metadata["numbers"])
    kept = {entry["name"] for entry in program["stored"] if keeps(entry)}
    change(program, numbers)
    content = Path(source).read_bytes()[begin:]
    tensors = {name: (each["dtype"], each["shape"], lambda each=each: content[slice(*each["data_offsets"])])
               for name, each in header.items() if name in kept}
    _program_file.write_safetensors(tensors, target, {**metadata, "program": json.dumps(program), "numbers": json.dumps(numbers)})


def _names(argument):
    """The names of tensors in an argument."""
    if "list" in argument:
        return {name for each in argument["list"] for name in _names(each)}
    return {argument["tensor"]} if "tensor" in argument else set()


def _renamed(argument, other):
    if "list" in argument:
        return {"list": [_renamed(each, other) for each in argument["list"]]}
    return {"tensor": other[argument["tensor"]]} if "tensor" in argument else argument


def _reordered(calls, chance):
    maker = {result["name"]: i for i, call in enumerate(calls) for result in call["results"]}
    waits = [{maker[name] for each in call["arguments"].values() for name in _names(each) if name in maker} for call in calls]
    readers = [[] for _ in calls]
    for i, needed in enumerate(waits):
        for other in needed:
            readers[other].append(i)
    ready, order = [i for i, needed in enumerate(waits) if not needed], []
    while ready:
        i = ready.pop(chance.randrange(len(ready)))
        order.append(calls[i])
        for reader in readers[i]:
            waits[reader].discard(i)
            if not waits[reader]:
                ready.append(reader)
    assert len(order) == len(calls)
    return order


def write_variant(source, target, seed):
    chance = random.Random(seed)

    def change(program, _):
        made = [result for call in program["calls"] for result in call["results"]]
        numbers = list(range(len(made)))
        chance.shuffle(numbers)
        other = {each["name"]: each["name"] for each in program["inputs"]}
        other |= {each["name"]: f"v{number}" for each, number in zip(made, numbers)}
        for call in program["calls"]:
            call["arguments"] = {name: _renamed(each, other) for name, each in call["arguments"].items()}
        for each in made:
            each["name"] = other[each["name"]]
        program["results"] = [_renamed(each, other) for each in program["results"]]
        program["calls"] = _reordered(program["calls"], chance)
    rewrite(source, target, change, keeps=lambda entry: entry["kind"] == "constant")


def write_decomposed(program, target, roles, shared, length):
    """What ctxc.export.write_program was called with, by PyTorch's decompositions."""
    import ctxc._recurrences  # noqa: F401, the ops that are ctxc's own
    import ctxc.export as exporter
    exporter.write_program(program.run_decompositions(), target, roles, shared, {}, length, {"framework": "torch"},
                           lambda digest: {"why": "PyTorch's decompositions were run"})
