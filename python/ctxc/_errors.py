"""What ctxc raises. Each error has the diagnostics that led to it."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base class of all errors.

    diagnostics: a list of dicts with file, line, column, module, severity, message, rule (empty except for a verdict),
    source and notes, in the order in which they occurred; empty if the message says everything.

    >>> try:
    ...     ctxc.load("/nowhere")
    ... except ctxc.Error as error:
    ...     print(error)
    /nowhere: no such file or directory
    """

    def __init__(self, message: str, diagnostics: list[dict[str, Any]] | None = None):
        super().__init__(message)
        self.diagnostics = diagnostics or []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics)


class BadInput(Error, ValueError):
    """A file, an option or an argument that cannot be used. It is a ValueError as well.

    >>> ctxc.load("examples/models/gemma3-kjv-1m", sites="some")
    Traceback (most recent call last):
    ...
    ctxc._errors.BadInput: sites: found 'some', expected one of mlp, all
    """


class Refused(Error):
    """A layer that should be patched has no exact patch: ctxc has shown that none exists.

    >>> refused = ctxc.load("test/python/Inputs/refused.mlir", seed=1)
    >>> try:
    ...     ctxc.Context(refused, [1, 2, 3])
    ... except ctxc.Refused as error:
    ...     print(error.diagnostics[0]["line"] > 0)
    True
    """


class Undecided(Refused):
    """A layer that should be patched has no known exact patch, but ctxc has not shown that none exists.

    >>> issubclass(ctxc.Undecided, ctxc.Refused)
    True
    """


class Mismatch(Error, ValueError):
    """A patch that was made for another model or token. It is a ValueError as well.

    >>> import dataclasses
    >>> stranger = ctxc.Patch(dict(patch), dataclasses.replace(patch.origin, model_hash="0" * 64))
    >>> patch + stranger
    Traceback (most recent call last):
    ...
    ctxc._errors.Mismatch: the patches are of two models
    """


def raised_as(name: str, diagnostics: list[dict[str, Any]]) -> type[Error]:
    """The class that the extension raises."""
    if name != "Refused":
        return BadInput
    errors = [each["message"] for each in diagnostics if each["severity"] == "error"]
    undecided = bool(errors) and all("undecided" in message for message in errors)
    return Undecided if undecided else Refused
