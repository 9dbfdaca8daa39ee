"""Writes a small .pt2 file of a block with a loop: pt2.py FILE. y = x + Σ W_i relu(x), where one line of a loop makes all terms."""
import json
import sys
import zipfile

COUNT = 8
TOKENS = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 13}}}
LINE = """File "/home/me/mine.py", line 9, in forward
            y = y + expert(x.relu())
"""


def tensor(*sizes):
    return {"dtype": 7, "sizes": [s if isinstance(s, dict) else {"as_int": s} for s in sizes]}


def node(name, target, expression, path, **inputs):
    at = LINE.splitlines()[1].index(expression)
    return {"target": f"torch.ops.aten.{target}", "outputs": [{"as_tensor": {"name": name}}],
            "inputs": [{"name": key, "arg": {"as_tensor": {"name": value}}, "kind": 1} for key, value in inputs.items()],
            "metadata": {"stack_trace": LINE + " " * at + "^" * len(expression), "nn_module_stack": f"a,,mine.Block;b,{path},mine.Expert"}}


nodes = []
for i in range(COUNT):
    nodes += [node(f"h{i}", "relu.default", "x.relu()", "", self="x"),
              node(f"m{i}", "linear.default", "expert(x.relu())", f"experts.{i}", input=f"h{i}", weight=f"w{i}"),
              node(f"y{i}", "add.Tensor", "y + expert(x.relu())", "", self=f"y{i - 1}" if i else "x", other=f"m{i}")]
values = {f"w{i}": tensor(4, 4) for i in range(COUNT)}
values |= {"x": tensor(1, TOKENS, 4)} | {each["outputs"][0]["as_tensor"]["name"]: tensor(1, TOKENS, 4) for each in nodes}
signature = {"input_specs": [{"parameter": {"arg": {"name": f"w{i}"}, "parameter_name": f"experts.{i}.weight"}} for i in range(COUNT)] +
             [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
             "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": f"y{COUNT - 1}"}}}}]}
graph = {"nodes": nodes, "tensor_values": values, "sym_int_values": {}}
model = {"graph_module": {"graph": graph, "signature": signature}, "schema_version": {"major": 8, "minor": 20}, "torch_version": "2.13.0"}
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_STORED) as archive:
    archive.writestr("model/models/model.json", json.dumps(model))
    archive.writestr("model/data/weights/model_weights_config.json", json.dumps({"config": {}}))
    archive.writestr("model/byteorder", "little")
