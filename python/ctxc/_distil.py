"""Adapters that stand for a context: what `ctxc distil` and `ctxc evaluate` do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ctxc._errors import BadInput, Refused

if TYPE_CHECKING:
    import torch

Message = Mapping[str, Any]
# As the installed program (python/wheel/program.py): the compiled module alone, without the package.
_CHILD = """
import importlib.util, os, sys
from importlib.machinery import PathFinder
folder = sys.argv[1]
spec = PathFinder.find_spec("ctxc._core", [folder])
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
sys.exit(core.run_program(["ctxc", *sys.argv[2:]], os.path.join(folder, "_programs")))
"""


def run(words: Sequence[str]) -> None:
    """Runs the command in a process of its own, so that Ctrl-C ends it, and its memory is given back. Its warnings are
    printed."""
    done = subprocess.run([sys.executable, "-c", _CHILD, os.path.dirname(__file__), *words], capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    for line in done.stderr.splitlines():
        if done.returncode == 0:
            print(line, file=sys.stderr)
    if done.returncode == 0:
        return
    message = done.stderr.rpartition("ctxc: error: ")[2].strip()
    raise (Refused if done.returncode == 1 else BadInput)(message)


def checkpoint_of(model: Any, tokenizer: Any, folder: Path) -> str:
    """A directory or an exported program of the model: its own, or one that a live module is written to."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    name = getattr(model, "name", None)
    if isinstance(name, str) and os.path.exists(name):
        return name
    module = getattr(model, "_module", model)
    if not hasattr(module, "save_pretrained"):
        raise BadInput(f"model: found {type(model).__name__}, expected a checkpoint's directory, an exported program, "
                       "a ctxc.Model of one, or a live model of transformers")
    if tokenizer is None:
        raise BadInput("tokenizer: a live model has none; expected tokenizer=AutoTokenizer.from_pretrained(…)")
    import torch
    state = {key: value.detach().to("cpu", torch.float32) if value.is_floating_point() else value
             for key, value in module.state_dict().items()}
    module.save_pretrained(folder, state_dict=state)
    tokenizer.save_pretrained(folder)
    return str(folder)


def words_of_context(context: Union[str, Sequence[int]], folder: Path) -> list[str]:
    """A context as the command has it."""
    if not isinstance(context, str):
        return ["--context-tokens", ",".join(map(str, context))]
    (folder / "context.txt").write_text(context)
    return ["--context", str(folder / "context.txt")]


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options as the command has them: more_prompts=8 is --more-prompts 8, and keep_cache=True is --keep-cache."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


def write_lines(path: Path, values: Sequence[Any]) -> str:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return str(path)


class AdapterFiles:
    """An adapter's directory, for PEFT and for other commands of ctxc."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str]):
        self._folder = folder
        self._removes = weakref.finalize(self, folder.cleanup)

    @property
    def path(self) -> Path:
        """The adapter's directory, which is removed with this object; `save` keeps it.

        >>> (made.path / "adapter_config.json").exists()
        True
        """
        return Path(self._folder.name) / "adapter"

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the adapter's directory, which PEFT, `ctxc evaluate` and `ctxc apply` read.

        >>> made.save(folder + "/kings")
        """
        if os.path.exists(path):
            raise BadInput(f"{os.fspath(path)} already exists; name a directory that does not")
        shutil.copytree(self.path, path)

    def to_peft(self, module: torch.nn.Module, **options: Any) -> Any:
        """The live model with the adapter, as PEFT loads it.

        >>> made.to_peft(module)  # doctest: +SKIP
        """
        import peft
        return peft.PeftModel.from_pretrained(module, str(self.path), **options)


class Distilled(AdapterFiles):
    """An adapter, and its card. Made by `distil`.

    >>> made
    <ctxc.Distilled: ... % of ... tokens of context>
    """

    @property
    def card(self) -> dict[str, Any]:
        """card.json: what the adapter recovers, and of what.

        >>> made.card["format"], made.card["rank"]
        ('ctxc-card', 2)
        """
        card: dict[str, Any] = json.loads((self.path / "card.json").read_text())
        return card

    @property
    def share(self) -> float:
        """How much of the context's effect is recovered on text that was not fitted: 1 is all of it.

        >>> made.share == made.card["share_recovered"]
        True
        """
        return float(self.card["share_recovered"])

    @property
    def prefix(self) -> list[int]:
        """The tokens that stand in front of every text.

        >>> made.prefix
        [2]
        """
        return list(self.card["prefix"])

    def report(self) -> str:
        """The card as text.

        >>> made.report().splitlines()[0]
        'approximate: an adapter of rank 2 in the place of ... tokens of context'
        """
        return (self.path / "card.txt").read_text()

    def __repr__(self) -> str:
        return f"<ctxc.Distilled: {100 * self.share:.1f} % of {self.card['context_tokens']} tokens of context>"


def distil(model: Any, system: Optional[str] = None, questions: Optional[Sequence[str]] = None, *,
           messages: Optional[Sequence[Message]] = None, tools: Optional[Sequence[Mapping[str, Any]]] = None,
           context: Union[str, Sequence[int], None] = None, conversations: Optional[Sequence[Mapping[str, Any]]] = None,
           held_out: Optional[Sequence[Mapping[str, Any]]] = None, tokenizer: Any = None, **options: Any) -> Distilled:
    """Fits an adapter that stands for a system message (or for turns of an example and tools, in `messages` and `tools`),
    or for the text `context`, which may be token ids. `questions` are what users ask; the model answers them. `conversations` and `held_out`,
    lists of dictionaries with prompt and answer, or with messages, are fitted and judged by in their place. `model` is a
    checkpoint's directory or an exported program, a ctxc.Model of one, or a live model of transformers, with its `tokenizer`. `options` are
    those of `ctxc distil`, with underscores.

    Raises Refused where the model is better off without the adapter (anyway=True: not), BadInput otherwise.

    >>> made = ctxc.distil("SmolLM2-135M-Instruct", system="Answer like a pirate.",
    ...                    questions=questions)  # doctest: +SKIP
    >>> print(made.report())  # doctest: +SKIP
    >>> made = ctxc.distil("examples/models/gemma3-kjv-1m", context="In the beginning God created the heaven.",
    ...                    tokens=120, length=12, entries=4, anyway=True)
    >>> made.card["entries"]
    4
    """
    if (context is None) == (system is None and messages is None):
        raise BadInput("expected system, messages or both, or else context")
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="ctxc-distil-")
    here = Path(folder.name)
    try:
        words = ["distil", checkpoint_of(model, tokenizer, here / "model"), "-o", str(here / "adapter")]
        words += ["--chat"] if context is None else words_of_context(context, here)
        if system is not None:
            (here / "system.txt").write_text(system)
            words += ["--system", str(here / "system.txt")]
        if messages is not None or tools is not None:
            opening: dict[str, Any] = {"messages": list(messages or [])}
            if tools is not None:
                opening["tools"] = list(tools)
            (here / "messages.json").write_text(json.dumps(opening))
            words += ["--messages", str(here / "messages.json")]
        if questions is not None:
            words += ["--prompts", write_lines(here / "questions.jsonl", [{"prompt": each} for each in questions])]
        for option, lines in (("--text", conversations), ("--held-out", held_out)):
            if lines is not None:
                words += [option, write_lines(here / f"{option[2:]}.jsonl", lines)]
        run(words + _words(options))
    except BaseException:
        folder.cleanup()
        raise
    shutil.rmtree(here / "model", ignore_errors=True)
    return Distilled(folder)
