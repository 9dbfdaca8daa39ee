"""The lines that a person wrote, of which each op of a program comes: torch alone keeps those of functions that are called forward."""
from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import sys
import sysconfig
from types import CodeType, FrameType
from typing import Any, Iterator

import torch

_MODULE_CALL = "_call_impl"  # torch's, through which a module's forward is called


@functools.cache
def whose(file: str) -> int:
    """0 for a person's own file, 1 for another package's, 2 for torch's, ctxc's, Python's, or none at all."""
    if file.startswith("<"):
        return 2
    file = os.path.realpath(file)
    libraries = (os.path.dirname(torch.__file__), os.path.dirname(__file__))
    if any(file.startswith(os.path.realpath(each) + os.sep) for each in libraries):
        return 2
    if {"site-packages", "dist-packages"} & set(file.split(os.sep)):
        return 1
    return 2 if file.startswith(os.path.realpath(sysconfig.get_path("stdlib")) + os.sep) else 0


@functools.lru_cache(maxsize=4096)
def _said(code: CodeType, instruction: int, number: int) -> str:
    """A frame as Python prints it: its line, as it stands in the file, and carets below the expression."""
    line = linecache.getline(code.co_filename, number).rstrip()
    text = f'  File "{code.co_filename}", line {number}, in {code.co_name}\n    {line}\n'
    if not hasattr(code, "co_positions"):  # Python 3.10
        return text
    first, last, start, end = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    if first != number or start is None or end is None or not line:
        return text
    start, end = (len(line.encode()[:at].decode(errors="ignore")) for at in (start, end if last == first else len(line.encode())))
    return f"{text}    {' ' * start}{'^' * (end - start)}\n" if end > start else text


class _Frames(list[str]):
    """What torch takes a summary of a stack for."""

    def format(self) -> list[str]:
        return list(self)


def own_frames(frame: FrameType | None, outermost: CodeType) -> _Frames:
    """The frames within the one of `outermost` that a person wrote, the innermost last, as far as they belong to one call of a
    module; those of another package, such as transformers, where none is a person's own."""
    owners: dict[int, list[str]] = {0: [], 1: []}
    ended: set[int] = set()
    while frame is not None and frame.f_code is not outermost:
        code = frame.f_code
        owner = whose(code.co_filename)
        if owner < 2 and owner not in ended:
            owners[owner].append(_said(code, frame.f_lasti, frame.f_lineno))
        elif owner == 2 and code.co_name == _MODULE_CALL:
            ended |= {each for each, found in owners.items() if found}
        frame = frame.f_back
    return _Frames(reversed(owners[0] or owners[1]))


@contextlib.contextmanager
def kept(outermost: CodeType) -> Iterator[None]:
    """Inside the `with` block, torch keeps for each op the lines that a person wrote, within the frame of `outermost`. A release of
    torch without this hook keeps the lines of forward."""
    from torch.fx.proxy import TracerBase
    hook = getattr(TracerBase, "_filter_traceback_frames", None)
    if hook is None:
        yield
        return

    def filtered(self: Any, frames: Any) -> Any:
        return own_frames(sys._getframe(1), outermost)
    TracerBase._filter_traceback_frames = filtered  # type: ignore
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = hook  # type: ignore
