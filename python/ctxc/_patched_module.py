"""A patch of an exported program in the live module itself, also where the program's parameters are parts of the module's."""
from __future__ import annotations

import contextlib
import inspect
from typing import Any, Iterator

import torch

from ctxc._errors import Mismatch
from ctxc._parameter_views import apply_patch
from ctxc._places import Program, file_of
from ctxc._program_file import read_header, read_program


def made_for(patch: Any) -> tuple[int, int, bool]:
    """The token of a ctxc.Patch or a patch file, its position, and whether its run keeps tokens before it; -1 for an adapter."""
    if hasattr(patch, "origin"):
        return patch.origin.tokens[-1], patch.origin.position, bool(patch.origin.kept)
    about = read_header(file_of(patch))[0].get("__metadata__") or {}
    token = about.get("tokens", "").rpartition(",")[2]
    return int(token) if token.isdigit() else -1, int(about.get("position", -1)), bool(about.get("kept"))


def expect_call(inputs: list[dict[str, Any]], token: int, position: int, signature: inspect.Signature, args: Any, kwargs: Any) -> None:
    given = signature.bind_partial(*args, **kwargs).arguments
    wanted = {"token": token, "position": position}
    for each in inputs:
        found, number = given.get(each["name"]), wanted.get(each["role"], -1)
        if number < 0 or not isinstance(found, torch.Tensor):
            continue
        if found.shape[:2] != (1, 1) or bool((found != number).any()):
            raise Mismatch(f"found {each['name']} {found.tolist()}, expected [[{number}]]: the patch is exact for this token at position "
                           f"{position} alone; anyway=True runs others with it")


@contextlib.contextmanager
def patched(module: torch.nn.Module, patch: Any, program: Program, *, anyway: bool = False) -> Iterator[torch.nn.Module]:
    """`module` with a patch of the program that was exported from it, inside the `with` block: a ctxc.Patch, a file that `ctxc patch`
    wrote, or an adapter of `ctxc distil`. Parameters are written to in place, so that what shares their memory is patched as well, and have their own bits again afterwards,
    also after an exception.

    Raises Mismatch, before anything is written, for a patch of another program, a module of other sizes, or a patch that keeps tokens before its own,
    which a module without a cache cannot see; and for a call with another token or position than the patch's. anyway=True allows the last
    two. Parameters that were written to inside the block are reported behind it.
    """
    token, position, keeps = made_for(patch)
    if keeps and not anyway:
        raise Mismatch("the patch's run keeps tokens before its own, which the module would not see; expected a patch that was made with "
                       "keep=(), or `ctxc patch --keep none`")
    try:
        changed = apply_patch(module, patch, program)
    except ValueError as error:
        raise Mismatch(str(error)) from None
    own = dict(module.named_parameters(remove_duplicate=False))
    originals = {name: own[name].detach().clone() for name in changed}
    inputs, signature = read_program(program)["inputs"], inspect.signature(module.forward)

    def before(_: torch.nn.Module, args: Any, kwargs: Any) -> None:
        expect_call(inputs, token, position, signature, args, kwargs)
    handles = [] if anyway else [module.register_forward_pre_hook(before, with_kwargs=True)]
    with torch.no_grad():
        for name, numbers in changed.items():
            own[name].copy_(numbers)
    versions = {name: own[name]._version for name in changed}
    try:
        yield module
    finally:
        written = [name for name, version in versions.items() if own[name]._version != version]
        for handle in handles:
            handle.remove()
        with torch.no_grad():
            for name, numbers in originals.items():
                own[name].copy_(numbers)
    if written and not anyway:
        raise Mismatch(f"{written[0]} was written to while the module was patched; it has its original numbers again, without that")
