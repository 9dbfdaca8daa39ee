"""The same program as another file: values have other names, ops that do not depend on each other stand in another
order, and weights have no memory; or PyTorch's own table of decompositions has left only the ops of its core. A verdict
must depend on none of these."""
import json
import random
import zipfile


def _visit(value, at, rename):
    """Calls `rename` for every object that names a tensor; `at` is the key under which `value` stands."""
    if isinstance(value, list):
        for item in value:
            _visit(item, at, rename)
    elif isinstance(value, dict):
        if at in ("as_tensor", "as_tensors", "arg") and isinstance(value.get("name"), str):
            rename(value)
        for key, item in value.items():
            _visit(item, key, rename)


def _names(value, found):
    """All names of tensors and of sizes in an argument or a result."""
    if isinstance(value, list):
        for item in value:
            _names(item, found)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("name", "as_name") and isinstance(item, str):
                found.add(item)
            _names(item, found)
    return found


def _reordered(nodes, chance):
    makes = [_names(node["outputs"], set()) for node in nodes]
    reads = [_names([argument["arg"] for argument in node["inputs"]], set()) for node in nodes]
    maker = {name: i for i, names in enumerate(makes) for name in names}
    waits = [{maker[name] for name in names if name in maker} for names in reads]
    readers = [[] for _ in nodes]
    for i, needed in enumerate(waits):
        for other in needed:
            readers[other].append(i)
    ready, order = [i for i, needed in enumerate(waits) if not needed], []
    while ready:
        i = ready.pop(chance.randrange(len(ready)))
        order.append(nodes[i])
        for reader in readers[i]:
            waits[reader].discard(i)
            if not waits[reader]:
                ready.append(reader)
    assert len(order) == len(nodes)
    return order


def write_variant(source, target, seed):
    chance = random.Random(seed)
    with zipfile.ZipFile(source) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    program = next(name for name in entries if name.endswith("/models/model.json"))
    note = next(name for name in entries if name.endswith("/extra/ctxc.json"))
    model, said = json.loads(entries[program]), json.loads(entries[note])
    graph = model["graph_module"]["graph"]
    inputs = set()
    for spec in model["graph_module"]["signature"]["input_specs"]:
        if "user_input" in spec:
            _names(spec, inputs)
    names = [name for name in graph["tensor_values"] if name not in inputs]
    numbers = list(range(len(names)))
    chance.shuffle(numbers)
    other = {name: f"v{number}" for name, number in zip(names, numbers)}

    def rename(place):
        place["name"] = other.get(place["name"], place["name"])
    _visit(model["graph_module"], "", rename)
    graph["tensor_values"] = {other.get(name, name): value for name, value in graph["tensor_values"].items()}
    said["visible"] = {other.get(name, name): value for name, value in said["visible"].items()}
    graph["nodes"] = _reordered(graph["nodes"], chance)
    entries[program], entries[note] = json.dumps(model).encode(), json.dumps(said).encode()
    for config in [name for name in entries if name.endswith("/data/weights/model_weights_config.json")]:
        weights = json.loads(entries[config])
        for tensor in weights["config"].values():
            tensor["tensor_meta"]["device"] = {"type": "meta", "index": None}
            entries.pop(config.rpartition("/")[0] + "/" + tensor["path_name"], None)
        entries[config] = json.dumps(weights).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def write_decomposed(source, target):
    import torch
    import ctxc._recurrences  # noqa: F401, the ops that are ctxc's own
    import ctxc.export as exporter
    extra = {"ctxc.json": ""}
    program = torch.export.load(source, extra_files=extra).run_decompositions()
    exporter.write(program, target, json.loads(extra["ctxc.json"]))
