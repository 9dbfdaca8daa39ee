"""What a person's function builds, and again whenever her files change."""
from __future__ import annotations

import importlib
import importlib.util
import inspect
import linecache
import os
import sys
import time
from pathlib import Path
from typing import Callable, Iterator, Sequence

import torch

from ctxc._own_lines import whose

# In no size of a model, so that an axis of tokens is known by its length where the length is fixed.
LENGTHS = (13, 17, 19, 23, 29, 31, 37)


class Unbuilt(Exception):
    """Says what failed before there was a module; the cause is the error itself."""


def length_for(module: torch.nn.Module) -> int:
    """A number of tokens that divides no size of a parameter."""
    sizes = {size for tensor in [*module.parameters(), *module.buffers()] for size in tensor.shape}
    free = [length for length in LENGTHS if all(size % length for size in sizes if size)]
    return free[0] if free else LENGTHS[0]


def inputs_of(module: torch.nn.Module,
              given: torch.Tensor | Sequence[torch.Tensor] | None = None) -> list[torch.Tensor]:
    """The example inputs `given`, or ids for a module whose forward takes them: its first input, under whatever name,
    where no other one is needed and the module has an embedding."""
    if given is None:
        parameters = inspect.signature(module.forward).parameters
        needed = [name for name, each in parameters.items()
                  if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        names = list(parameters)
        embeds = any(isinstance(part, torch.nn.Embedding) for part in module.modules())
        if names[:1] != ["input_ids"] and not (embeds and names and needed in ([], names[:1])):
            raise ValueError(f"forward of {type(module).__name__} takes {', '.join(names) or 'nothing'}; expected tokens alone "
                             "and an embedding that reads them, or a module and its example inputs")
        return [torch.zeros(1, length_for(module), dtype=torch.long)]
    inputs = [given] if isinstance(given, torch.Tensor) else list(given)
    for tensor in inputs:
        if tensor.dim() < 2 or tensor.shape[0] != 1 or tensor.shape[1] != inputs[0].shape[1]:
            raise ValueError(f"an example input of {type(module).__name__} has the shape {tuple(tensor.shape)}; "
                             "expected (1, tokens, …), and as many tokens in each")
    return inputs


def is_function(source: str) -> bool:
    """Whether it names a function, as package.file:function or path/file.py:function."""
    return ":" in source and not os.path.exists(source)


def _module_name(file: str) -> str:
    """By which name the module of `file` is imported; its folder is then a place to import from."""
    folder, name = (os.path.split(file[:-3]) if file.endswith(".py") else ("", file))
    place = os.path.abspath(folder)
    if place not in sys.path:
        sys.path.insert(0, place)
    return name


def built_module(source: str) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """What the function of `package.file:function` or `path/file.py:function` gives, and its example inputs."""
    file, _, function = source.partition(":")
    name = _module_name(file)
    try:
        held = importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name is not None and \
                (name == error.name or name.startswith(f"{error.name}.")):
            raise SystemExit(f"ctxc.export: {source}: there is no module {error.name!r} in {os.getcwd()} or among the packages; "
                             "expected package.file:function, or path/file.py:function") from None
        raise Unbuilt("the file cannot be imported") from error
    if not callable(getattr(held, function, None)):
        named = ", ".join(key for key, each in vars(held).items() if inspect.isfunction(each) and each.__module__ == name)
        raise SystemExit(f"ctxc.export: {source}: {file} has no function {function!r}; expected one of: {named or 'none is there'}")
    try:
        made = getattr(held, function)()
    except Exception as error:
        raise Unbuilt(f"{function}() fails") from error
    module, given = made if isinstance(made, tuple) else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise SystemExit(f"ctxc.export: {source}: {function}() gives a {type(module).__name__}; expected a torch.nn.Module, or a module "
                         "and its example inputs")
    try:
        return module, inputs_of(module, given)
    except ValueError as error:
        raise SystemExit(f"ctxc.export: {source}: {error}") from None


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError:  # an editor is about to replace it
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _own_modules(others: set[str]) -> dict[str, str]:
    """The files of a person's own modules, by their names."""
    return {name: str(module.__file__) for name, module in list(sys.modules.items())
            if name not in others and getattr(module, "__file__", None) and whose(str(module.__file__)) == 0}


def saves(sources: Callable[[], Sequence[str] | None], pause: float = 0.05) -> Iterator[str]:
    """Yields each of `sources` at once, and again after each save of a file that its function's module imports; all of a person's
    files are then imported anew. Ends where there are no sources, and with the process that started this one."""
    sys.dont_write_bytecode = True  # its age is compared in seconds, within which a file may be saved twice
    others, places, parent = set(sys.modules), list(sys.path), os.getppid()
    known: dict[str, dict[str, tuple[int, int]]] = {}  # the files of each source
    while (wanted := sources()) is not None and os.getppid() == parent:
        known = {source: known[source] for source in wanted if source in known}
        source = next((each for each in wanted if each not in known or
                       any(_stamp(file) != stamp for file, stamp in known[each].items())), None)
        if source is None:
            time.sleep(pause)
            continue
        for name in _own_modules(others):
            del sys.modules[name]
        sys.path[:] = places
        importlib.invalidate_caches()
        linecache.checkcache()
        first = importlib.util.find_spec(_module_name(source.partition(":")[0]).partition(".")[0])
        files = {*known.get(source, ()), *({first.origin} if first is not None and first.origin is not None else ())}
        began, stamps = time.time_ns(), {file: _stamp(file) for file in files}
        yield source
        for file in set(_own_modules(others).values()) - files:
            stamp = _stamp(file)
            stamps[file] = stamp if stamp[0] <= began else (0, 0)  # it was saved meanwhile
        known[source] = stamps


def watch(source: str, output: str, write: Callable[[str, str], object]) -> None:
    """Calls `write` with `source` and a new file beside `output` for each save, and prints the file's name: an empty line where
    nothing was written. The last two files stay."""
    base = Path(output)
    for number, _ in enumerate(saves(lambda: [source])):
        file = base.with_name(f"{base.stem}-{number}{base.suffix}")
        try:
            write(source, str(file))
            print(file, flush=True)
        except SystemExit as error:
            print(error, file=sys.stderr, flush=True)
            print(flush=True)
        base.with_name(f"{base.stem}-{number - 2}{base.suffix}").unlink(missing_ok=True)
