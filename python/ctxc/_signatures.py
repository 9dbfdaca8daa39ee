"""How a module is called, and which of its results counts: forwards that take keywords alone, and give tuples, dictionaries
or data classes."""
from __future__ import annotations

import contextlib
import dataclasses
import inspect
from typing import Any, Callable, Iterator, Sequence

import torch


def tensors_in(made: Any, name: str = "") -> list[tuple[str, torch.Tensor]]:
    """The tensors in what a forward gives, in order, each with its name there."""
    if isinstance(made, torch.Tensor):
        return [(name, made)]
    if isinstance(made, dict):
        pairs: list[tuple[str, Any]] = [(str(key), each) for key, each in made.items()]
    elif dataclasses.is_dataclass(made) and not isinstance(made, type):
        pairs = [(field.name, getattr(made, field.name)) for field in dataclasses.fields(made)]
    elif isinstance(made, (list, tuple)):
        pairs = [(str(key), each) for key, each in zip(getattr(made, "_fields", range(len(made))), made)]
    else:
        return []
    return [found for key, each in pairs for found in tensors_in(each, f"{name}.{key}" if name else key)]


def words_of(module: torch.nn.Module, inputs: Sequence[torch.Tensor], call: Callable[[], Any]) -> tuple[Any, set[int]]:
    """What a call of the module gives, and how many rows the tables have of which it takes rows by the tokens' ids."""
    words: set[int] = set()

    def look(table: torch.nn.Module, given: tuple[Any, ...], _: Any) -> None:
        if given and given[0].shape == inputs[0].shape and given[0].dtype == inputs[0].dtype:
            words.add(int(table.num_embeddings))  # type: ignore
    hooks = [each.register_forward_hook(look) for each in module.modules() if isinstance(each, torch.nn.Embedding)]
    try:
        with torch.no_grad():
            return call(), words
    finally:
        for hook in hooks:
            hook.remove()


def choice_of(found: Sequence[tuple[str, torch.Tensor]], words: set[int]) -> int:
    """Which result has the logits: the one of that name, or of as many entries as there are words; else the first."""
    for index, (name, _) in enumerate(found):
        if name.rpartition(".")[2] == "logits":
            return index
    of_words = [index for index, (_, tensor) in enumerate(found) if tensor.dim() == 3 and tensor.shape[-1] in words]
    return of_words[0] if len(of_words) == 1 else 0


@contextlib.contextmanager
def called(module: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str], is_model: bool
           ) -> Iterator[str]:
    """Inside the `with` block, the module takes its inputs in order and, if it is a model of tokens, gives its logits alone; any
    other gives its tensors in a tuple. Yields what is to be said of a choice among several."""
    own = vars(module).get("forward")
    forward: Callable[..., Any] = module.forward
    kinds = [parameter.kind for name, parameter in inspect.signature(forward).parameters.items() if name in names]
    by_name = inspect.Parameter.KEYWORD_ONLY in kinds

    def call(*given: torch.Tensor) -> Any:
        return forward(**dict(zip(names, given))) if by_name else forward(*given)
    made, words = words_of(module, inputs, lambda: call(*inputs))
    found = tensors_in(made)
    chosen = choice_of(found, words) if is_model else 0

    def plain(*given: torch.Tensor) -> Any:
        results = [tensor for _, tensor in tensors_in(call(*given))]
        return results[chosen] if is_model or len(results) == 1 else tuple(results)
    plain.__signature__ = inspect.Signature(  # type: ignore
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    if by_name or (found and not isinstance(made, torch.Tensor)):
        module.forward = plain
    try:
        is_sure = len(found) < 2 or found[chosen][0].rpartition(".")[2] == "logits"
        yield "" if is_sure or not is_model else \
            f"of its {len(found)} results {found[chosen][0]!r}, of the shape {tuple(found[chosen][1].shape)}, is taken for the logits"
    finally:
        if own is None:
            vars(module).pop("forward", None)
        else:
            module.forward = own
