"""What a tokenizer of transformers says about texts and conversations."""

from __future__ import annotations

from typing import Any

from ctxc._errors import BadInput


def front_of(tokenizer: Any) -> tuple[list[int], list[int]]:
    """What every text, and every conversation, begins with."""
    whole, inside = (tokenizer("a", add_special_tokens=each)["input_ids"] for each in (True, False))
    starts = [at for at in range(len(whole)) if whole[at:at + len(inside)] == inside]
    every = whole[:starts[0]] if starts else []
    conversations = None
    for turns in ([("user", "Why?")], [("user", "x")], [("system", "42"), ("user", "Tell me more.")]):
        try:
            found = conversation(tokenizer, turns)
        except Exception:  # there is no template, or one that refuses system messages
            continue
        same = 0
        while conversations is not None and same < min(len(found), len(conversations)) and found[same] == conversations[same]:
            same += 1
        conversations = found if conversations is None else conversations[:same]
    return list(every), list(conversations or [])


def conversation(tokenizer: Any, turns: list[tuple[str, str]]) -> list[int]:
    """The ids of a conversation, up to the beginning of the answer."""
    if not getattr(tokenizer, "chat_template", None):
        raise BadInput("the tokenizer has no chat template; expected a text or ids of tokens")
    text = tokenizer.apply_chat_template([{"role": role, "content": content} for role, content in turns], tokenize=False,
                                         add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def ends_of(module: Any, tokenizer: Any) -> set[int]:
    """The tokens that end what the module writes: those at which its own generate stops."""
    for place in (getattr(module, "generation_config", None), getattr(module, "config", None), tokenizer):
        found = getattr(place, "eos_token_id", None)
        if found is not None:
            return set(found) if isinstance(found, (list, tuple)) else {int(found)}
    return set()
