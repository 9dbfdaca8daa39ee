"""Stores tables of complex numbers, such as those of a rotation, as pairs of real ones, which a .ctxc file's readers know."""
from __future__ import annotations

import torch


def without_complex_tables(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Replaces each stored complex tensor of `program` by its pairs and a call that makes it of them; in place."""
    graph = program.graph
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target is not None}
    for node in list(graph.nodes):
        target = targets.get(node.name)
        held = next((store for store in (program.state_dict, program.constants) if target in store), None)
        if node.op != "placeholder" or held is None or target is None or not isinstance(held[target], torch.Tensor) or \
                not held[target].is_complex():
            continue
        stored, value = held[target], node.meta["val"]
        pairs = torch.view_as_real(stored.detach().resolve_conj()).clone().contiguous()
        held[target] = torch.nn.Parameter(pairs, stored.requires_grad) if isinstance(stored, torch.nn.Parameter) else pairs
        with graph.inserting_after(node):
            whole = graph.call_function(torch.ops.aten.view_as_complex.default, (node,))
        whole.meta = {**node.meta, "val": value}
        node.replace_all_uses_with(whole, delete_user_cb=lambda user: user is not whole)
        with value.fake_mode:
            node.meta["val"] = torch.empty((*value.shape, 2), dtype=value.real.dtype)
    program.graph_module.recompile()
    return program
