"""The numbers that a file carries of its own module: what PyTorch computes for some tokens. ctxc computes the same from
the program that it has read, and refuses the file where the two differ."""
from __future__ import annotations

import base64
import contextlib
import math
from typing import Any, Iterator, Sequence

import torch

from ctxc._axes import Part
from ctxc._random_numbers import MOST, SEED, random_numbers

# The first two that the module takes, and that it was not traced with.
LENGTHS = (7, 17, 11, 5, 19, 3, 2)
MOST_LOGITS, MOST_OF_LAYER = 1024, 64  # numbers of a token
MOST_DOUBLES = 1 << 27  # parameters that are copied as doubles


def chosen(rows: torch.Tensor, most: int) -> torch.Tensor:
    """Of (1, tokens, …) the rows of tokens, and of each at most so many numbers, from the first to the last."""
    rows = rows.detach().reshape(rows.shape[1], -1)
    count = min(rows.shape[1], most)
    return rows[:, torch.arange(count) * rows.shape[1] // count]


def text_of(rows: torch.Tensor) -> str:
    return base64.b64encode(rows.float().cpu().contiguous().numpy().astype("<f4").tobytes()).decode()


def first_tensor(made: Any) -> torch.Tensor | None:
    """The result that counts: the first tensor of what a module gives."""
    if isinstance(made, torch.Tensor):
        return made
    leaves, _ = torch.utils._pytree.tree_flatten(made)
    return next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor)), None)


@contextlib.contextmanager
def heard(module: torch.nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Inside the `with` block, what elements of lists give is kept: the layers' outputs."""
    outputs: dict[str, torch.Tensor] = {}
    hooks = []
    for path, each in module.named_modules():
        parts = path.split(".")
        if len(parts) > 1 and parts[-1].isdigit() and not any(part.isdigit() for part in parts[:-1]):
            def keep(_: torch.nn.Module, __: Any, made: Any, path: str = path) -> None:
                output = first_tensor(made)
                if output is not None and output.is_floating_point() and output.dim() > 2 and output.shape[0] == 1:
                    outputs[path] = output
            hooks.append(each.register_forward_hook(keep))
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


def held_numbers(module: torch.nn.Module, program: torch.export.ExportedProgram, parts: dict[str, Part]
                 ) -> dict[str, torch.Tensor] | None:
    """All tensors of the module with numbers; None where some cannot have any. `parts` are what the program stores of parameters."""
    held = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    stored = {**program.state_dict, **program.constants}
    lacking = {name: tensor for name, tensor in held.items() if tensor.is_meta}
    few = [parameter.is_meta for parameter in module.parameters()]
    if sum(tensor.numel() for tensor in lacking.values()) > MOST or any(few) != all(few):
        return None
    for name, tensor in lacking.items():
        given = stored.get(name)
        if isinstance(given, torch.Tensor) and not given.is_meta:
            held[name] = given
        elif tensor.is_floating_point():
            held[name] = torch.from_numpy(random_numbers(name, tensor.shape)).to(tensor.dtype)
        else:
            return None
    for name, part in parts.items():
        if part.leaf.name in lacking:
            drawn = torch.from_numpy(random_numbers(name, stored[name].shape)).reshape(part.dims)
            held[part.leaf.name].as_strided(part.dims, part.strides, part.offset).copy_(drawn)
    return held


def inputs_for(inputs: Sequence[torch.Tensor], roles: dict[str, str], length: int, words: int, draw: torch.Generator
               ) -> list[torch.Tensor]:
    """Tokens in another order than that of their ids, of which few are the same, and their positions. The first ids are
    often of tokens that mean nothing."""
    first = 3 if words > 8 else 0
    tokens = first + (torch.randperm(words - first, generator=draw)[:length] if words - first >= length else
                      torch.randint(words - first, (length,), generator=draw))
    return [torch.arange(length).unsqueeze(0) if role == "position" else tokens.unsqueeze(0).to(given.dtype)
            for given, role in zip(inputs, roles.values())]


class Computed:
    """What the module gives for some tokens."""

    def __init__(self, module: torch.nn.Module, held: dict[str, torch.Tensor], inputs: Sequence[torch.Tensor],
                 dtype: torch.dtype):
        with heard(module) as outputs, torch.no_grad():
            numbers = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in held.items()}
            logits = first_tensor(torch.func.functional_call(module, numbers, tuple(inputs)))
        assert logits is not None and logits.dim() == 3 and logits.shape[:2] == inputs[0].shape
        self.width, self.widths = logits.shape[2], {path: output[0, 0].numel() for path, output in outputs.items()
                                                    if output.shape[1] == inputs[0].shape[1]}
        self.logits = chosen(logits, MOST_LOGITS)
        self.layers = {path: chosen(outputs[path], MOST_OF_LAYER) for path in self.widths}


def run_of(module: torch.nn.Module, held: dict[str, torch.Tensor], inputs: Sequence[torch.Tensor], in_doubles: bool
           ) -> dict[str, Any]:
    """The numbers for one sequence, and how much rounding changes them."""
    made, rounding = Computed(module, held, inputs, torch.float32), 0.0
    if in_doubles:
        with contextlib.suppress(Exception):  # a module may have types of its own
            exact = Computed(module, held, inputs, torch.float64)
            rounding = float((exact.logits - made.logits).abs().max())
            made = exact
    if not bool(made.logits.isfinite().all()) or not math.isfinite(rounding):
        raise ValueError("it gives numbers that are not finite")
    return {"tokens": inputs[0][0].tolist(), "width": made.width, "logits": text_of(made.logits), "rounding": rounding,
            "layers": [{"path": path, "width": made.widths[path], "rows": text_of(rows)} for path, rows in made.layers.items()]}


def numbers_of(module: torch.nn.Module, program: torch.export.ExportedProgram, inputs: Sequence[torch.Tensor],
               roles: dict[str, str], parts: dict[str, Part], digest: str) -> dict[str, Any]:
    """What the file says of them: runs of two lengths, or why there are none. `digest` is that of the stored numbers."""
    if list(roles.values())[:1] != ["token"] or "activation" in roles.values():
        return dict(why="it is no model of tokens")
    held = held_numbers(module, program, parts)
    if held is None:
        return dict(why="it was exported without weights, which are too many to be replaced by random ones, or are partly there")
    traced = inputs[0].shape[1]
    node = next(node for node in program.graph.nodes if node.op == "placeholder" and
                node.name in program.graph_signature.user_inputs)
    fixed = isinstance(node.meta["val"].shape[1], int)
    in_doubles = sum(tensor.numel() for tensor in held.values()) <= MOST_DOUBLES
    output = next(reversed(program.graph.nodes)).args[0]
    known = [each.meta["val"].shape[-1] for each in output if isinstance(each, torch.fx.Node)]
    most = next((size for size in known if isinstance(size, int)), 64)
    runs: list[dict[str, Any]] = []
    why = ""
    draw = torch.Generator().manual_seed(SEED)
    for length in (traced, traced) if fixed else LENGTHS:
        if not fixed and length == traced:
            continue
        for words in sorted({most, max(most // 2, 2), min(most, 64), 2}, reverse=True):  # a head may have more than there are
            try:
                runs.append(run_of(module, held, inputs_for(inputs, roles, length, words, draw), in_doubles))
                break
            except Exception as error:
                why = str(error).strip().partition("\n")[0] or type(error).__name__
        if len(runs) == 2:
            break
    if not runs:
        return dict(why=f"PyTorch gave none: {why}")
    lacks = any(tensor.is_meta for tensor in (*module.parameters(), *module.buffers()))
    return dict(weights=digest, random=lacks, runs=runs)
