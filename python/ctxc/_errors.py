"""What ctxc raises. Each error has the diagnostics that led to it."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base of all of them.

    diagnostics: a list of dicts with file, line, column, module, severity, message, source and notes, in the order
    in which they occurred; empty where the message says everything.
    """

    def __init__(self, message: str, diagnostics: list[dict[str, Any]] | None = None):
        super().__init__(message)
        self.diagnostics = diagnostics or []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics)


class BadInput(Error, ValueError):
    """A file, an option or an argument that cannot be used."""


class Refused(Error):
    """A layer that is to be patched has no exact patch: an impossibility is shown."""


class Undecided(Refused):
    """A layer that is to be patched has no known exact patch, and no impossibility is shown."""


class Mismatch(Error, ValueError):
    """A patch that was made for another model or token."""


def raised_as(name: str, diagnostics: list[dict[str, Any]]) -> type[Error]:
    """The class that the extension raises."""
    if name != "Refused":
        return BadInput
    errors = [each["message"] for each in diagnostics if each["severity"] == "error"]
    undecided = bool(errors) and all("undecided" in message for message in errors)
    return Undecided if undecided else Refused
