"""Contexts, and what is done with them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from ctxc import _core
from ctxc._errors import BadInput
from ctxc._model import Keep, Model
from ctxc._patch import Patch
from ctxc._prompt import Prompt
from ctxc._report import Inspection, Verification

Progress = Union[bool, Callable[[int], None]]


class Context:
    """The full run of some tokens, kept in memory: it is read once, and each further token costs only one token.

    keep: positions of the context that the reduced run keeps (ascending, before the last token); by default those that
    the model needs (`Model.kept_by_default`), with keep=() none. progress, for prompts
    long enough to be read in parts: True shows a bar if tqdm is installed; a function is called with the number of
    tokens that have been read. Raises BadInput for fewer than two tokens, ids that the model does not have, or
    positions that cannot be kept; Refused if a layer has no patch.

    >>> ctxc.Context(model, "And David said unto Saul", keep=[0])
    ctxc.Context of 6 tokens, 1 kept
    """

    def __init__(self, model: Model, prompt: Prompt, keep: Keep = None, *, progress: Progress = False):
        _expect_model(model)
        model._check()
        self._model = model
        tokens = model.tokens(prompt)
        kept, self.why_kept = model._kept(tokens, keep)
        """Why positions are kept that `keep` does not name; else empty."""
        with _reading(model, progress, len(tokens)):
            self._core = _core.Context.make(model._core, tokens, kept)
        model._tell()

    @property
    def model(self) -> Model:
        """The model that reads the context.

        >>> context.model is model
        True
        """
        return self._model

    @property
    def tokens(self) -> list[int]:
        """All tokens, at positions from 0 on. The last is the one that is patched.

        >>> context.tokens == model.tokenize("And David said unto Saul")
        True
        """
        return self._core.tokens

    @property
    def kept(self) -> list[int]:
        """The positions that the reduced run keeps.

        >>> context.kept
        []
        """
        return self._core.kept

    def __len__(self) -> int:
        return len(self._core.tokens)

    def __repr__(self) -> str:
        return f"ctxc.Context of {len(self)} tokens, {len(self.kept)} kept"

    def extend(self, more: Union[int, Sequence[int]], *, progress: Progress = False) -> Context:
        """Appends one or several tokens, and returns this context. A token costs one run of a token for a context of
        any length. progress: as for the context. Raises BadInput for a bidirectional model, whose tokens see later
        ones.

        >>> len(context.fork().extend([5, 6]))
        8
        """
        tokens = [int(more)] if isinstance(more, (int, np.integer)) else [int(token) for token in more]
        with _reading(self._model, progress, len(tokens)):
            self._core.extend(tokens)
        self._model._tell()
        return self

    def fork(self) -> Context:
        """An independent context of the same tokens; what was read is copied, not read again.

        >>> context.fork().tokens == context.tokens
        True
        """
        other = object.__new__(Context)
        other._model, other._core, other.why_kept = self._model, self._core.fork(), self.why_kept
        return other

    def patch(self) -> Patch:
        """The patch of the last token (Algorithm 1). The context does not change.

        >>> context.patch()
        ctxc.Patch of 24 parameters, norm 8.61, for token 961 at position 5
        """
        self._model._check()
        step = self._core.patch()
        patch = Patch._of_step(step)
        patch._replay = _replay_of(self._model, step, self.tokens, self.kept)
        patch._made_on = self._model._module_of_patches()
        return patch

    def logits(self, patch: Optional[Patch] = None) -> NDArray[Any]:
        """The logits after the last token, (vocabulary,), float32 (float64 by the reference): with the context; or,
        given a patch, of the patched model, which has seen only the kept tokens and the last one. Raises Mismatch for
        a patch of another model.

        >>> bool(abs(context.logits(patch) - context.logits()).max() < 1e-4)
        True
        """
        if patch is None:
            return self._core.logits()
        self._model._expect_own(patch)
        return self._core.patched_logits(patch._bound())


def verify(model: Model, prompt: Optional[Prompt] = None, *, patch: Optional[Patch] = None, generate: int = 1,
           keep: Keep = None, positions: Sequence[int] = (), materialize: bool = False,
           progress: Progress = False) -> Verification:
    """Compares the patched model without the context with the model that sees it.

    generate: how many tokens the full run adds, each with its own patch. keep: as for a context. positions: verifies the patches at these
    positions of the prompt instead. patch: verifies this patch, for the token that it was made for. materialize:
    patches are added to the weights, in their storage type. progress: True shows a bar if tqdm is installed; a function
    is called with the number of tokens that have been verified or, for a patch, read.

    The result is true if every token is the full run's, and the logits differ only by roundings. Raises BadInput for a
    prompt that cannot be read, Mismatch for a patch of other weights, Refused if a layer has no patch.

    >>> ctxc.verify(model, "And David said", generate=2).verified
    True
    >>> bool(ctxc.verify(model, patch=patch))
    True
    """
    _expect_model(model)
    if patch is not None:
        if prompt is not None:
            raise TypeError("a patch has the tokens that it was made for; leave the prompt out")
        model._check()
        model._expect_own(patch)
        with _reading(model, progress, len(patch.origin.tokens)):
            text = model._core.verify_patch_json(patch._bound())
        model._tell()
        return Verification(json.loads(text))
    if prompt is None:
        raise TypeError("expected a prompt, or patch=")
    model._check()
    tokens = model.tokens(prompt)
    kept, why = model._kept(tokens, keep)
    with _told(progress, len(positions) or generate) as tell:
        text = model._core.verify_json(tokens, kept, int(generate), bool(materialize), [int(at) for at in positions], tell)
    model._tell()
    report = json.loads(text)
    if why:
        report["settings"]["whyKept"] = why
    return Verification(report)


def positions(model: Model, prompt: Prompt, at: Optional[Sequence[int]] = None,
              keep: Keep = None, *, progress: Progress = False) -> list[Patch]:
    """The patches of several positions of a prompt (by default of all from 1 on), made in one pass. progress: as for
    `verify`. Raises BadInput for a position that the prompt does not have, or that has no token before it.

    >>> [each.origin.position for each in ctxc.positions(model, "And David said", at=[1, 3])]
    [1, 3]
    """
    _expect_model(model)
    tokens = model.tokens(prompt)
    wanted = list(range(1, len(tokens))) if at is None else [int(each) for each in at]
    patches: list[Patch] = []
    model._check()
    kept = model._kept(tokens, keep)[0]
    with _told(progress, len(wanted)) as tell:
        def take(made: _core.Patch) -> None:
            patch = Patch._of_core(made)
            patch._made_on = model._module_of_patches()
            patches.append(patch)
            if tell is not None:
                tell(len(patches))

        model._core.patch_positions(tokens, kept, wanted, take)
    model._tell()
    return patches


def inspect(model: Model, prompt: Prompt, *, generate: int = 0, token: Optional[int] = None, by: str = "token",
            top: int = 5, keep: Keep = None, progress: Progress = False) -> Inspection:
    """What the context did to the weights of a token (by default the last), layer by layer.

    by: "token" or "sentence", the parts of the context that are left out; top: how many tokens are named at each end of
    a direction; progress: as for a context, in each pass over the tokens. Raises BadInput as verify does.

    >>> found = ctxc.inspect(model, "And David said")
    >>> found.html.startswith("<!doctype html>"), found.json["format"]
    (True, 'ctxc-inspect')
    """
    if by not in ("token", "sentence"):
        raise BadInput(f"by: found {by!r}, expected 'token' or 'sentence'")
    _expect_model(model)
    model._check()
    tokens = model.tokens(prompt)
    kept = model._kept(tokens, keep)[0]
    with _reading(model, progress, len(tokens)):
        text, page = model._core.inspect(tokens, kept, int(generate), token, by, int(top))
    model._tell()
    return Inspection(json.loads(text), page)


def _replay_of(model: Model, step: _core.PatchStep, tokens: list[int], kept: list[int]) -> Callable[[str], tuple[float, str]]:
    """What Patch.replay_error asks. It does not keep the context alive."""

    def replay(activations: str) -> tuple[float, str]:
        # Where nothing is kept, the token may be a giant: one measurement of a model serves all its patches.
        giant = (0, 0.0) if kept else model._core.kept_by_default(tokens, *model._front(), None)[2:]
        return step.replay_in(activations, *giant)

    return replay


def _expect_model(model: Any) -> None:
    """Raises BadInput for what must become a model first."""
    if not isinstance(model, Model):
        raise BadInput(f"found a {type(model).__name__}, expected a model: ctxc.from_module(module) of a live module, or "
                       "ctxc.load(path)")


@contextlib.contextmanager
def _reading(model: Model, progress: Progress, total: int) -> Iterator[None]:
    """What is computed inside says how many of its tokens are done."""
    with _told(progress, total) as tell:
        if tell is None:
            yield
            return
        model._core.set_progress(lambda done, _: tell(done))
        try:
            yield
        finally:
            model._core.set_progress(None)


class _told:
    """A function that shows progress, or None."""

    def __init__(self, progress: Progress, total: Optional[int], unit: str = "token"):
        self.progress, self.total, self.unit = progress, total, unit
        self.bar: Any = None

    def __enter__(self) -> Optional[Callable[[int], None]]:
        if callable(self.progress):
            return self.progress
        if not self.progress:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        bar = self.bar = tqdm(total=self.total, unit=self.unit)

        def tell(done: int) -> None:
            bar.update(done - bar.n)

        return tell

    def __exit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.bar is not None:
            self.bar.close()
