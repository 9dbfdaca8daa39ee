"""Writes a small .pt2 file, damaged in one way: pt2.py FILE [DAMAGE]. Without a damage it is a block that torch could have
exported: y = x + W relu(x), and x is one sequence of four-vectors."""
import json
import sys
import zipfile

path, damage = sys.argv[1], (sys.argv + [""])[2]
TOKENS = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 13}}}


def tensor(*sizes):
    return {"dtype": 7, "sizes": [s if isinstance(s, dict) else {"as_int": s} for s in sizes]}


def node(name, target, **inputs):
    def argument(value):
        return {"as_tensor": {"name": value}} if isinstance(value, str) else {"as_int": value}
    trace = f'File "/home/me/mine.py", line 7, in forward\n    {name} = made()\n'
    return {"target": f"torch.ops.aten.{target}", "outputs": [{"as_tensor": {"name": name}}],
            "inputs": [{"name": key, "arg": argument(value), "kind": 1} for key, value in inputs.items()],
            "metadata": {"stack_trace": trace, "nn_module_stack": "L__self__,,mine.Block"}}


nodes = [node("h", "relu.default", self="x"), node("m", "linear.default", input="h", weight="w"),
         node("y", "add.Tensor", self="x", other="m")]
values = {"x": tensor(1, TOKENS, 4), "w": tensor(4, 4), "h": tensor(1, TOKENS, 4), "m": tensor(1, TOKENS, 4),
          "y": tensor(1, TOKENS, 4)}
signature = {"input_specs": [{"parameter": {"arg": {"name": "w"}, "parameter_name": "w.weight"}},
                             {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
             "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]}
graph = {"nodes": nodes, "tensor_values": values, "sym_int_values": {}}
model = {"graph_module": {"graph": graph, "signature": signature}, "schema_version": {"major": 8, "minor": 20},
         "torch_version": "2.13.0"}

strides = {"far": [2**62, 1], "negative-stride": [-4, 1]}.get(damage, [4, 1])
stored = {"dtype": 7, "sizes": [{"as_int": 4}, {"as_int": 4}], "strides": [{"as_int": s} for s in strides],
          "storage_offset": {"as_int": 13 if damage == "offset" else 0}, "device": {"type": "cpu"}}
weights = {"config": {"w.weight": {"path_name": "weight_0", "use_pickle": False, "tensor_meta": stored}}}

if damage == "schema":
    model["schema_version"]["major"], model["torch_version"] = 9, "3.1.4"
elif damage == "cycle":
    nodes[0]["inputs"][0]["arg"] = {"as_tensor": {"name": "m"}}
elif damage == "twice":
    nodes.append(nodes[0])
elif damage == "symbol":
    values["h"]["sizes"][1] = {"as_expr": {"expr_str": "Mul(" * 90 + "Integer(2)" + ")" * 90}}
elif damage == "negative":
    values["h"]["sizes"][2] = {"as_int": -4}
elif damage == "axes":
    values["h"]["sizes"] = [{"as_int": 1}] * 1000
elif damage == "dtype":
    values["h"]["dtype"] = 9
elif damage == "batch":
    values["x"]["sizes"][0] = {"as_int": 2}
elif damage == "huge":
    for name in ("x", "h", "m", "y"):
        values[name]["sizes"][2] = {"as_int": 2**62}
elif damage == "length":
    for name in ("x", "h", "m", "y"):
        values[name]["sizes"][1] = {"as_int": 4}
elif damage == "kept":
    signature["output_specs"].append({"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "cache"}})
elif damage == "graph":
    nodes[0]["inputs"][0]["arg"] = {"as_graph": {"name": "true_graph", "graph": {}}}
elif damage == "second-name":  # of an op of PyTorch, which is no damage
    nodes[2]["target"] = "torch.ops.aten.subtract.Tensor"
elif damage == "further-results":  # as run_decompositions() writes a LayerNorm, which is no damage either
    nodes[0] = node("h", "native_layer_norm.default", input="x")
    nodes[0]["inputs"] += [{"name": key, "arg": arg, "kind": 1} for key, arg in (
        ("normalized_shape", {"as_ints": [4]}), ("weight", {"as_none": True}), ("bias", {"as_none": True}),
        ("eps", {"as_float": 1e-3}))]
    for name in ("mean", "rstd"):
        nodes[0]["outputs"].append({"as_tensor": {"name": name}})
        values[name] = tensor(1, TOKENS, 1)
elif damage == "lines":  # with marks, which is no damage either
    nodes[1]["target"] = "torch.ops.mine.linear.default"
    for each in nodes:
        each["metadata"] = {"nn_module_stack": "L__self__,,mine.Block;L__self___0,0.mlp,mine.Mlp", "stack_trace": """\
File "/home/me/mine.py", line 7, in forward
        return x + joined(x, self.mlp)
                   ^^^^^^^^^^^^^^^^^^^
  File "/home/me/parts.py", line 3, in joined
        return mlp(x.relu())
               ^^^^^^^^^^^^^"""}
elif damage == "unknown":
    nodes[1]["target"] = "torch.ops.mine.linear.default"

with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
    text = json.dumps(model)
    if damage == "json":
        text = text[:-1]
    if damage == "compressed":
        archive.writestr("model/data/bomb", b"0" * 10_000_000, zipfile.ZIP_DEFLATED)
    if damage != "empty":
        archive.writestr("model/models/model.json", text)
    if damage == "roots":
        archive.writestr("other/models/model.json", text)
    if damage == "duplicate":
        archive.writestr("model/models/model.json", text)
    if damage == "early":  # as ctxc 0.1 wrote it
        archive.writestr("model/extra/ctxc.json", "{}")
    archive.writestr("model/data/weights/model_weights_config.json", json.dumps(weights))
    archive.writestr("model/data/weights/weight_0", b"\0" * 64)
    archive.writestr("model/byteorder", "big" if damage == "byteorder" else "little")

data = bytearray(open(path, "rb").read())
if damage == "sum":  # one byte of the content is another
    data[data.index(b"relu.default")] ^= 1
if damage == "cut":
    data = data[:-40]
if damage == "overlap":  # the second entry claims the first one's bytes
    first, second = data.index(b"PK\x01\x02"), data.rindex(b"PK\x01\x02")
    data[second + 42:second + 46] = data[first + 42:first + 46]
    data[second + 20:second + 28] = data[first + 20:first + 28]
open(path, "wb").write(data)
