"""Prompts in the forms in which people have them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Union

from ctxc._errors import BadInput

Prompt = Union[str, Sequence[int], Sequence[Mapping[str, str]], Any]
"""A text, which needs the model's tokenizer; ids of tokens, as a list, an array, a tensor of shape (n,) or (1, n), or in
what a tokenizer returns; or a conversation, a list of {"role": …, "content": …}, which needs a chat template."""


def turns_of(prompt: Any) -> list[tuple[str, str]]:
    """The turns of a conversation; of another prompt none."""
    if not isinstance(prompt, (list, tuple)) or not prompt or not all(isinstance(each, Mapping) for each in prompt):
        return []
    turns = [(each.get("role"), each.get("content")) for each in prompt]
    if not all(isinstance(role, str) and isinstance(content, str) for role, content in turns):
        raise BadInput("messages: expected a list of {'role': TEXT, 'content': TEXT}")
    return turns


def ids_of(prompt: Any) -> list[int]:
    """The ids of a prompt that has ids. Raises BadInput for several texts, padding, and what is no id."""
    mask = None
    if isinstance(prompt, Mapping) or hasattr(prompt, "input_ids"):  # a tokenizer's BatchEncoding
        try:
            mask, prompt = prompt.get("attention_mask"), prompt["input_ids"]
        except (AttributeError, KeyError):
            raise BadInput(f"found a {type(prompt).__name__}, expected a text, ids of tokens, or what a tokenizer "
                           "returns") from None
    rows = _row_of(prompt)
    if mask is not None and not all(_row_of(mask)):
        raise BadInput("the ids are padded, and every token counts; expected padding=False")
    try:
        return [operator.index(each) for each in rows]
    except TypeError:
        raise BadInput(f"found {rows[:3]!r}…, expected a text, ids of tokens, or messages with role and content") from None


def _row_of(ids: Any) -> list[Any]:
    """A list of numbers, of which several rows are refused."""
    if hasattr(ids, "tolist"):  # an array or a tensor
        ids = ids.tolist()
    try:
        rows = [each.tolist() if hasattr(each, "tolist") else each for each in ids]
    except TypeError:
        raise BadInput(f"found {ids!r}, expected a text or ids of tokens") from None
    if not rows or not isinstance(rows[0], (list, tuple)):
        return rows
    if len(rows) != 1:
        raise BadInput(f"found a batch of {len(rows)} texts, expected one: a patch is made of one text")
    return list(rows[0])
