"""Writes a PyTorch module as a .ctxc file, for `ctxc check model.ctxc`:

    python -m ctxc.export my_package.my_file:build_model -o model.ctxc
    python -m ctxc.export MODEL -o model.ctxc          # a directory with config.json, or a model type of transformers
    python -m ctxc.export MODEL -o model.ctxc --weights   # with its weights, for `ctxc verify model.ctxc`

`build_model()` returns a module whose forward takes `input_ids`, or a module and its example inputs. An input is
(1, tokens) for ids and (1, tokens, …) for activations. A model of transformers needs no weights for a check: it is
built without memory for them, unless --weights is given. This needs torch, and nothing else of ctxc.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import gc
import inspect
import io
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

try:
    import torch
except ModuleNotFoundError as missing:
    if __name__ != "__main__" or missing.name != "torch":
        raise
    raise SystemExit(f"ctxc.export: torch is not installed for {sys.executable}; expected a Python with torch: pip install torch") from None

from ctxc._axes import Part
from ctxc._built import built_module, inputs_of as inputs_of, is_function, length_for, watch
from ctxc._parameter_views import apply_patch as apply_patch, with_views
from ctxc._patched_module import patched as patched
from ctxc._program_file import digest_of, read_in, write
from ctxc._torch_program import program_of, size_of

# Below it an entry of an additive mask hides a token.
HIDDEN = -1e4


def shared_parameters(module: torch.nn.Module) -> list[list[str]]:
    """The names of parameters and buffers that are one storage."""
    groups: dict[int, list[str]] = {}
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, tensor in named:
        groups.setdefault(tensor.untyped_storage()._cdata, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def role_of(name: str, tensor: torch.Tensor) -> str:
    if tensor.is_floating_point():
        return "activation"
    return "position" if "position" in name else "token"


def lets_through(mask: torch.Tensor) -> bool:
    """Whether the last token sees one before it: its own entry is of the same kind as another of its row."""
    row = mask.reshape(-1, mask.shape[-1])[-1]
    hidden = row < HIDDEN if row.is_floating_point() else row == 0
    return bool((hidden[:-1] == hidden[-1]).any())


def visible_masks(program: torch.export.ExportedProgram, length: int, roles: dict[str, str]) -> dict[str, bool]:
    """For each value of (…, tokens, tokens) that depends on positions alone: whether it lets a token see another."""
    stored = {**program.state_dict, **program.constants}
    known: dict[str, Any] = {}
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name
        if roles.get(name) == "position":
            known[name] = torch.arange(length).unsqueeze(0)
        elif spec.target in stored and isinstance(stored[spec.target], torch.Tensor) and \
                stored[spec.target].device.type != "meta" and spec.kind.name != "PARAMETER":
            known[name] = stored[spec.target]
    from ctxc._full_masks import computed
    masks = {}
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        value = node.meta.get("val")
        if isinstance(value, (int, torch.SymInt)):
            hint = value if isinstance(value, int) else value.node.hint
            if hint is not None:
                known[node.name] = hint
            continue
        result = None if "_assert" in str(node.target) else computed(node, known)
        if result is None:  # ctxc then claims less
            continue
        known[node.name] = result
        if isinstance(result, torch.Tensor) and result.dim() >= 2 and result.shape[-2:] == (length, length):
            masks[node.name] = lets_through(result)
    return masks


@contextlib.contextmanager
def followed(module: torch.nn.Module, names: Sequence[str]) -> Iterator[None]:
    """Inside the `with` block, `module` may ask masks of positions which tokens a token sees."""
    from ctxc._known import KnownValues
    own = vars(module).get("forward")
    forward: Callable[..., Any] = module.forward

    @functools.wraps(forward)
    def follow(*inputs: torch.Tensor) -> Any:
        positions = [tensor for name, tensor in zip(names, inputs) if role_of(name, tensor) == "position"]
        with KnownValues(positions[0] if positions else None):
            return forward(*inputs)
    module.forward = follow
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


@contextlib.contextmanager
def without_detours() -> Iterator[None]:
    """Inside the `with` block, torch does not look for garbage among the objects of an export, which nearly all stay, and
    compiles no graph that nothing runs."""
    lazy: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    with contextlib.suppress(ImportError):  # it is torch's own, which another release may have elsewhere
        from torch.fx._lazy_graph_module import _use_lazy_graph_module
        lazy = _use_lazy_graph_module(True)
    collects = gc.isenabled()
    gc.disable()
    try:
        with lazy:
            yield
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Torch prints graphs of what it could not follow, beside the error: what is printed where an error is raised is left out."""
    before, said = logging.root.manager.disable, (io.StringIO(), io.StringIO())
    logging.disable(max(before, logging.WARNING))
    try:
        with contextlib.redirect_stdout(said[0]), contextlib.redirect_stderr(said[1]):
            yield
        for stream, text in zip((sys.stdout, sys.stderr), said):
            stream.write(text.getvalue())
    finally:
        logging.disable(before)


def traced(module: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str]) -> torch.export.ExportedProgram:
    """The program of `module` as torch exports it."""
    for attempt in ("any length", "one length", "known masks"):
        axes = tuple({1: torch.export.Dim.AUTO} for _ in inputs) if attempt == "any length" else None
        context = followed(module, names) if attempt == "known masks" else contextlib.nullcontext()
        try:
            with context, quiet():
                return torch.export.export(module, tuple(inputs), dynamic_shapes=axes, strict=False)
        except Exception as error:
            unknown = type(error).__name__ in ("GuardOnDataDependentSymNode", "UserError")
            if attempt == "known masks" or (attempt == "one length" and not unknown):
                raise
    raise AssertionError


def traced_by_rows(module: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str]) -> torch.export.ExportedProgram:
    """The same; where rows are chosen by numbers, all are computed."""
    from ctxc._chosen_rows import all_rows, chooses, is_alike
    try:
        program = traced(module, inputs, names)
        if not chooses(program) or not is_alike(module, inputs):
            return program
    except Exception:
        if not is_alike(module, inputs):
            raise
    with all_rows(module):
        return traced(module, inputs, names)


def exported(module: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str]
             ) -> torch.export.ExportedProgram:
    """The program of `module` without ops in place: for any number of tokens where torch can follow that."""
    from ctxc._complex_tables import without_complex_tables
    from ctxc._flex import without_flex_attention
    from ctxc._full_masks import without_full_masks
    from ctxc._functional import without_ops_in_place
    from ctxc._merged_axes import without_merged_axes
    from ctxc._own_lines import kept
    with torch.no_grad(), kept(exported.__code__), without_flex_attention():
        program = traced_by_rows(module, inputs, names)
    with quiet():
        program = without_ops_in_place(program)
    taken = next(node for node in program.graph.nodes if node.op == "placeholder" and
                 node.name in program.graph_signature.user_inputs)
    return without_complex_tables(without_merged_axes(without_full_masks(program), taken.meta["val"].shape[1]))


@without_detours()
def export(module: torch.nn.Module, inputs: Sequence[torch.Tensor], path: str | os.PathLike[str],
           names: Sequence[str] | None = None, about: dict[str, Any] | None = None,
           buffers: dict[str, torch.Tensor] | None = None, taken: str = "") -> torch.export.ExportedProgram:
    """Writes `module` to `path`. The second dimension of every input is the tokens'; `names` are those of the inputs
    in forward, and `about` is kept in the file. `buffers` has the numbers of buffers without memory, and `taken` says which of several
    results the logits are."""
    module = module.eval()
    if names is None:
        from ctxc._signatures import called
        own = list(inspect.signature(module.forward).parameters)[: len(inputs)]
        with called(module, inputs, own, role_of(own[0], inputs[0]) == "token") as taken:
            return export(module, inputs, path, own, about, buffers, taken)
    names, length = list(names)[: len(inputs)], inputs[0].shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's, about itself
        program = exported(module, inputs, names)
    for held in (program.constants, program.state_dict):
        for name, tensor in (buffers or {}).items():
            if name in held and held[name].is_meta and held[name].shape == tensor.shape:
                held[name] = tensor.to(held[name].dtype)
    shared = shared_parameters(module)
    roles = {name: role_of(name, tensor) for name, tensor in zip(names, inputs)}
    parts = with_views(program, shared, roles, length)
    source = {"framework": "torch", "class": f"{type(module).__module__}.{type(module).__qualname__}", **(about or {})}
    from ctxc._source_numbers import numbers_of
    write_program(program, path, roles, shared, parts, length, source, functools.partial(numbers_of, module, program, inputs, roles, parts), taken)
    return program


def write_program(program: torch.export.ExportedProgram, path: str | os.PathLike[str], roles: dict[str, str], shared: list[list[str]],
                  parts: dict[str, Part], length: int, source: dict[str, Any], numbers_of: Callable[[str], dict[str, Any]], taken: str = "") -> None:
    """Writes `program`, whose inputs have these roles, with what the reader has to know beside it; `numbers_of` gives the source's own
    numbers, by what identifies the stored ones."""
    graph, results = program_of(program, roles, shared, parts, length)
    masks = visible_masks(program, length, roles)
    visible = {id(value): masks.get(value.name, False) for call in graph.calls for value in call.results}
    write(graph, results, path, size_of, visible, source, numbers_of(digest_of(read_in(graph))), taken)


def config_of(source: str, small: bool = False) -> Any:
    """The config of transformers in a directory, or the default one of a model type, or a small one of it."""
    from transformers import AutoConfig
    if Path(source).is_dir() and not small:
        return AutoConfig.from_pretrained(source, local_files_only=True)
    from ctxc import small_configs
    types = small_configs.causal_types()
    if source not in types:
        close = difflib.get_close_matches(source, types)
        said = f"did you mean {close[0]}?" if close else f"it has {len(types)}, such as llama"
        raise SystemExit(f"ctxc.export: {source!r} is neither a directory nor a causal model type of transformers; {said}")
    return small_configs.small_config(source) if small else AutoConfig.for_model(source)


def causal_model(config: Any, **options: Any) -> Any:
    """The causal model of a config of transformers. A class that takes only one part of its type's config gets this part:
    MusicGen's takes the decoder's."""
    from transformers import AutoModelForCausalLM
    kind: Any = AutoModelForCausalLM._model_mapping.get(type(config), None)
    taken = inspect.signature(kind.__init__).parameters.get("config") if kind is not None else None
    parts = [getattr(config, name, None) for name in getattr(config, "sub_configs", None) or {}]
    part = next((part for part in parts if taken is not None and type(part) is taken.annotation), None)
    build: Any = AutoModelForCausalLM.from_config
    return build(config, **options) if part is None else kind._from_config(part, **options)


@contextlib.contextmanager
def parameters_without_memory() -> Iterator[None]:
    """Modules that are built meanwhile have buffers with numbers, and parameters without memory."""
    register = torch.nn.Module.register_parameter

    def without(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        if parameter is not None:
            parameter = torch.nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)
        register(module, name, parameter)
    torch.nn.Module.register_parameter = without  # type: ignore
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register  # type: ignore


def buffers_of(config: Any) -> dict[str, torch.Tensor]:
    """The numbers of a model's buffers, such as tables of positions; none where it cannot be built so."""
    try:
        with parameters_without_memory():
            model = causal_model(config, attn_implementation="eager")
    except Exception:  # then a program can be checked, and not run without its weights
        return {}
    return {name: buffer for name, buffer in model.named_buffers(remove_duplicate=False) if not buffer.is_meta}


def export_config(config: Any, path: str | os.PathLike[str], weights: Any = None
                  ) -> tuple[torch.nn.Module, torch.export.ExportedProgram]:
    """Writes the causal model of a config of transformers. It is built without memory for its weights, or with memory
    where its code asks for that; `weights`, a directory or a model with them, gives them to the file."""
    if weights is not None:
        module, inputs, names, about = model_of(config, "cpu", weights)
        return module, export(module, inputs, path, names, about)
    for device in ("meta", "cpu"):
        module, inputs, names, about = model_of(config, device)
        try:
            return module, export(module, inputs, path, names, about, buffers_of(config))
        except Exception as error:
            if device == "cpu" or "meta" not in str(error):
                raise
    raise AssertionError


def first_position(model: Any) -> int:
    """What a model calls the first token's position: some count from behind the id of padding where they get no positions."""
    for module in model.modules():
        padding = getattr(module, "padding_idx", None)
        if hasattr(module, "create_position_ids_from_input_ids") and hasattr(module, "position_embeddings") and padding is not None:
            return int(padding) + 1
    return 0


def model_of(config: Any, device: str = "meta", weights: Any = None
             ) -> tuple[torch.nn.Module, list[torch.Tensor], list[str], dict[str, Any]]:
    """The causal model of a config of transformers, its inputs, their names, and what the file says about it. With
    `weights`, the model is that one, or is read from that directory."""
    from transformers import AutoModelForCausalLM, __version__
    read: Any = AutoModelForCausalLM.from_pretrained
    if isinstance(weights, torch.nn.Module):
        model: Any = weights.eval()
    elif weights is not None:
        model = read(weights, config=config, attn_implementation="eager", local_files_only=True).eval()
    else:
        with torch.device(device):
            model = causal_model(config, attn_implementation="eager").eval()
    from ctxc._experts import compute_by_token
    from ctxc._recurrences import in_one_op
    compute_by_token(model)
    whole: Callable[..., Any] = model.forward

    @functools.wraps(whole)
    def inner(**arguments: Any) -> Any:
        with in_one_op(model):
            return whole(**arguments)
    taken = inspect.signature(inner).parameters
    takes_positions = "position_ids" in taken
    ids = torch.zeros(1, length_for(model), dtype=torch.long, device=device)
    about = {"model_type": config.model_type, "config": json.loads(config.to_json_string()), "transformers": __version__}

    def told(input_ids: torch.Tensor) -> dict[str, Any]:
        """Tells a model that would count the tokens without padding that there is no padding."""
        return {"attention_mask": torch.ones_like(input_ids)} if {"lengths", "attention_mask"} <= set(taken) else {}

    # use_cache is set in the call as well, since some models read it from there alone.
    if takes_positions:
        first = first_position(model)

        def forward(input_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
            torch._check(input_ids.shape[1] == position_ids.shape[1])  # type: ignore
            own = position_ids + first if first else position_ids
            return inner(input_ids=input_ids, position_ids=own, use_cache=False,  # type: ignore
                         **told(input_ids)).logits
        model.forward = forward
        return model, [ids, ids.clone()], ["input_ids", "position_ids"], about

    def forward_ids(input_ids: torch.Tensor) -> torch.Tensor:
        return inner(input_ids=input_ids, use_cache=False, **told(input_ids)).logits  # type: ignore
    model.forward = forward_ids
    return model, [ids], ["input_ids"], about


def write_named(source: str, output: str, weights: bool = False, small: bool = False, traceback: bool = False) -> str:
    """Writes what a source of the command line names; what was written, as a line. SystemExit says in a few lines why it cannot be."""
    try:
        if is_function(source):
            module, inputs = built_module(source)
            program = export(module, inputs, output)
        else:
            if weights and not Path(source).is_dir():
                raise SystemExit(f"ctxc.export: --weights: found the model type {source!r}, expected a directory")
            module, program = export_config(config_of(source, small), output, source if weights else None)
    except Exception as error:
        if traceback:
            raise
        from ctxc._export_errors import summary_of
        raise SystemExit(f"ctxc.export: {summary_of(error, source)}\n  --traceback shows the whole of it") from None
    nodes = sum(node.op == "call_function" for node in program.graph.nodes)
    return f"{output}: {type(module).__name__}, {nodes} ops"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m ctxc.export", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", help="package.file:function, path/file.py:function, a directory with config.json, or a model type")
    parser.add_argument("-o", "--output", required=True, help="the file to write, model.ctxc")
    parser.add_argument("--weights", action="store_true",
                        help="with the weights in the directory; a function's module has its own in any case")
    parser.add_argument("--traceback", action="store_true", help="show the whole traceback of what cannot be exported")
    parser.add_argument("--small", action="store_true",
                        help="a small model of the type, with layers of each kind, for `ctxc check --transformers TYPE`")
    parser.add_argument("--watch", action="store_true",
                        help="write model-0.ctxc and, after each save of a function's files, the next, for `ctxc check --watch`")
    given = parser.parse_args(arguments)
    if given.watch:
        if not is_function(given.source):
            raise SystemExit(f"ctxc.export: --watch: found {given.source!r}, expected package.file:function or path/file.py:function")
        return watch(given.source, given.output, write_named)
    print(write_named(given.source, given.output, given.weights, given.small, given.traceback))
    gc.freeze()  # the end of a process looks for garbage once more


if __name__ == "__main__":
    main()
