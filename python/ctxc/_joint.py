"""One patch for a whole text: what `ctxc patch --joint` does."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from ctxc._distil import AdapterFiles, checkpoint_of, run, words_of_context, write_lines
from ctxc._errors import BadInput

Text = Union[str, Sequence[int]]


class JointPatch(AdapterFiles):
    """A patch that is exact for every token of some texts, as a LoRA adapter. Made by `joint_patch`.

    >>> joint
    <ctxc.JointPatch: exact for 5 tokens, to ...>
    """

    @property
    def figures(self) -> dict[str, Any]:
        """joint.json: how the patched model reads the texts, and how much each matrix changes.

        >>> joint.figures["same_token"] == joint.figures["tokens"]
        True
        >>> joint.figures["difference"] < 1e-3 < joint.figures["difference_unpatched"]
        True
        """
        figures: dict[str, Any] = json.loads((self.path / "joint.json").read_text())
        return figures

    def report(self) -> str:
        """The figures as text.

        >>> print(joint.report().splitlines()[-2])
          patched    largest difference of a logit ...; likeliest token the same at 5 of 5
        """
        return (self.path / "joint.txt").read_text()

    def __repr__(self) -> str:
        figures = self.figures
        return f"<ctxc.JointPatch: exact for {figures['tokens']} tokens, to {figures['difference']:.1g}>"


def _written(path: Path, texts: Sequence[Text]) -> str:
    return write_lines(path, [{"prompt": "" if isinstance(each, str) else [], "answer": each if isinstance(each, str) else list(each)}
                              for each in texts])


def joint_patch(model: Any, context: Text, texts: Sequence[Text], *, generate: int = 0, keep: Optional[str] = None,
                held_out: Optional[Sequence[Text]] = None, ridge: Union[float, str] = 0, tokenizer: Any = None) -> JointPatch:
    """One change of each layer with which the model, without `context`, reads every token of `texts` as it does behind the
    context. Texts are strings, or token ids; with `generate`, the model first continues each of them by so many tokens. `keep`
    has positions of the context that stay in front, such as "0", or "none"; without it these are what every text has in front, or else the
    token on which attention rests. With a `ridge` above 0 the change is smaller, not exact, and serves other text better; of
    `held_out` the figures say how well, and ridge="best" takes what serves it best. `model` is a checkpoint's directory or an exported program, a
    ctxc.Model of one, or a live model of transformers, with its `tokenizer`.

    Raises BadInput: among others for more tokens than one patch can serve, and for two tokens that no change serves.

    >>> joint = ctxc.joint_patch("examples/models/gemma3-kjv-1m", "In the beginning God created the heaven.", [[7, 8, 9, 10, 11]])
    >>> wider = ctxc.joint_patch("examples/models/gemma3-kjv-1m", "In the beginning God created the heaven.",
    ...                          [" And the earth was without form."], held_out=[" And God said, Let there be light."], ridge=0.01)
    >>> [row["ridge"] for row in wider.figures["ridges"]]
    [0, 0.0001, 0.001, 0.01, 0.1, 1, 10]
    """
    if not texts:
        raise BadInput("texts: found none, expected at least one")
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="ctxc-joint-")
    here = Path(folder.name)
    try:
        words = ["patch", checkpoint_of(model, tokenizer, here / "model"), "--joint", "-o", str(here / "adapter")]
        words += words_of_context(context, here)
        words += ["--text", _written(here / "texts.jsonl", texts), "--generate", str(generate), "--ridge", str(ridge)]
        if held_out is not None:
            words += ["--held-out", _written(here / "held-out.jsonl", held_out)]
        run(words + (["--keep", keep] if keep is not None else []))
    except BaseException:
        folder.cleanup()
        raise
    shutil.rmtree(here / "model", ignore_errors=True)
    return JointPatch(folder)
