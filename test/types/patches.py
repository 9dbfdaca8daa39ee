"""Patches that ctxc computes from an exported program, added to the weights of the model in transformers: without the
context it must then give the logits that it gives with it.

ctxc runs the program itself, in float64; transformers runs the model, in float64, from the same weights, and knows nothing of
the program. A model that is not told positions counts its tokens; here it is made to count the true ones."""
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.overrides import TorchFunctionMode

import numbers_of


def is_for_mask():
    """Whether transformers makes a mask now: there, numbers of tokens are places in the mask."""
    frame = sys._getframe(1)
    while frame and not frame.f_code.co_filename.endswith("masking_utils.py"):
        frame = frame.f_back
    return frame is not None


class Positions(TorchFunctionMode):
    """Where the model counts from 0 to the number of its tokens, it gets their positions."""

    def __init__(self, positions):
        super().__init__()
        self.positions = torch.tensor(positions)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        count = len(self.positions)
        if function is torch.arange and result.tolist() == list(range(count)) and not is_for_mask():
            return self.positions.to(result.dtype)
        return result


def logits(model, takes_positions, ids, positions):
    chosen = torch.tensor([[ids[position] for position in positions]])
    with torch.no_grad():
        if takes_positions:
            from ctxc.export import first_position
            own = torch.tensor([positions]) + first_position(model)
            return numbers_of.last_of(model(input_ids=chosen, position_ids=own, use_cache=False).logits, len(positions))
        with Positions(positions):
            return numbers_of.last_of(model(input_ids=chosen, use_cache=False).logits, len(positions))


def deltas(path):
    """The changes of parameters that a patch file has, by their names; an expert's is that of a part, "name[3]"."""
    tensors = load_file(path)
    for key, tensor in tensors.items():
        name, _, form = key.rpartition(".")
        if form == "delta":
            yield name, tensor.double()
        elif form == "u":
            yield name, tensor.double() @ tensors[f"{name}.v"].double().transpose(-1, -2)


def add(model, path):
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, change in deltas(path):
        whole, _, part = name.partition("[")
        with torch.no_grad():
            parameter = parameters[whole].data
            parameter = parameter[int(part[:-1])] if part else parameter
            parameter.add_(change.reshape(parameter.shape))  # a number has an axis in a patch


def judge(binary, program, model, takes_positions, sites):
    """The largest differences of the logits of the last token without the context from those with it: of the model with
    its patch, and of the model as it is. Changes the model."""
    ids = numbers_of.token_ids()[0].tolist()
    last = len(ids) - 1
    full = logits(model, takes_positions, ids, list(range(len(ids))))
    control = logits(model, takes_positions, ids, [last])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "patch.safetensors"
        command = [binary, "patch", str(program), "--tokens", ",".join(map(str, ids)), "-o", str(file), *sites]
        run = subprocess.run(command, capture_output=True, text=True)
        if "--backend reference" in run.stderr:
            run = subprocess.run([*command, "--backend", "reference"], capture_output=True, text=True)
        if run.returncode:
            said = run.stderr.strip().splitlines() or ["crash"]
            return {"reason": said[-1].removeprefix("ctxc: error: ").replace(str(program), program.name)}
        add(model, file)
    patched = logits(model, takes_positions, ids, [last])
    return {"patched": float((patched - full).abs().max()), "control": float((control - full).abs().max())}
