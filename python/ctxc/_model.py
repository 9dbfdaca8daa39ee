"""Models: how they are loaded and checked."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, cast

import numpy as np
from numpy.typing import NDArray

from ctxc import _core
from ctxc._errors import BadInput, Mismatch
from ctxc._prompt import Prompt, ids_of, turns_of
from ctxc._report import CheckReport

if TYPE_CHECKING:
    import torch
    from ctxc._patch import Patch
    from ctxc.hf import ModuleModel

Keep = Union[None, str, Sequence[int]]
"""The positions that a reduced run keeps. None: those that the model needs (`Model.kept_by_default`); "none" or (): none."""

_OPTIONS = dict(_core.load_options())
_log = logging.getLogger("ctxc")


class Model:
    """A model, ready to use. Made by `load` and `from_tensors`.

    Only one thread at a time may use a model; a call in another thread meanwhile raises BadInput. Calls release the
    GIL, and Ctrl-C ends them within a second.

    >>> model
    ctxc.Model('examples/models/gemma3-kjv-1m')
    """

    def __init__(self, core: _core.Model):
        self._core = core
        self._tell()

    def __repr__(self) -> str:
        return f"ctxc.Model({self.name!r})"

    @property
    def name(self) -> str:
        """The path that the model was loaded from.

        >>> model.name
        'examples/models/gemma3-kjv-1m'
        """
        return self._core.name

    @property
    def hash(self) -> str:
        """The identity of the weights: 64 hexadecimal digits, which every patch of this model contains. Raises BadInput
        if they cannot be read.

        >>> model.hash == patch.origin.model_hash, len(model.hash)
        (True, 64)
        """
        return self._core.hash()

    @property
    def layers(self) -> int:
        """How many layers there are. Raises Refused if a layer that should be patched has no patch.

        >>> model.layers
        6
        """
        return self._core.layers()

    @property
    def has_tokenizer(self) -> bool:
        """Whether prompts can be texts.

        >>> model.has_tokenizer
        True
        """
        return self._core.has_tokenizer

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, with those that the tokenizer adds around it. Raises BadInput if the model has no
        tokenizer.

        >>> len(model.tokenize("And David said"))
        4
        """
        return self._core.tokenize(text)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens.

        >>> model.decode(model.tokenize("And David said")[1:])
        'And David said'
        """
        return self._core.decode([int(token) for token in tokens])

    def text_of(self, token: int) -> str:
        """What one token adds behind other text, as UTF-8: bytes that are only a part of a character are \\xNN.

        >>> [model.text_of(token) for token in model.tokenize("And David said")[1:]]
        ['And', ' David', ' said']
        """
        return self._core.token_text(int(token))

    def piece(self, token: int) -> str:
        """The same token as the vocabulary spells it.

        >>> [model.piece(token) for token in model.tokenize("And David said")[1:]]
        ['And', '▁David', '▁said']
        """
        return self._core.piece(int(token))

    @property
    def headless(self) -> bool:
        """Whether it has no head that gives logits of tokens: its output is the last hidden state.

        >>> model.headless
        False
        """
        return self._core.headless

    def tokens(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt: a text; ids, as a list, an array, a tensor of shape (n,) or (1, n), or in what a tokenizer
        returns; or a conversation, a list of messages with role and content. Raises BadInput for a batch of texts.

        >>> model.tokens([2, 5]) == model.tokens(np.array([[2, 5]])) == model.tokens({"input_ids": [2, 5]}) == [2, 5]
        True
        """
        if isinstance(prompt, str):
            return self.tokenize(prompt)
        if turns := turns_of(prompt):
            return self._chat(turns)
        return ids_of(prompt)

    def kept_by_default(self, prompt: Prompt) -> tuple[list[int], str]:
        """The positions that a reduced run of the prompt keeps if `keep` is not given, and why: position 0, or the tokens
        with which the chat template begins every conversation, where no token is in front of every text, and attention
        rests on the first token of a run. None of them in a text that begins with a begin-of-sequence token.

        >>> model.kept_by_default("And David said unto Saul")
        ([], '')
        """
        self._check()
        return self._core.kept_by_default(self.tokens(prompt), *self._front(), None)[:2]

    def _kept(self, tokens: list[int], keep: Keep,
              measure: Optional[Callable[[list[int]], list[list[float]]]] = None) -> tuple[list[int], str]:
        """The positions that are kept, and why, where nobody asked for them. `measure` gives the lengths of layers' outputs, in
        the place of the kernels."""
        if isinstance(keep, str):
            if keep != "none":
                raise BadInput(f"keep: found {keep!r}, expected positions, or 'none'")
            return [], ""
        if keep is not None:
            return [int(at) for at in keep], ""
        self._check()
        positions, why, _, _ = self._core.kept_by_default(tokens, *self._front(), measure)
        if why:
            _log.info("%s: keeps positions %s in the reduced run, since %s; keep=() keeps none", self.name, positions, why)
        return positions, why

    def _front(self) -> tuple[list[int], list[int]]:
        """What texts and conversations begin with, where the library does not know it."""
        return [], []

    def _chat(self, turns: list[tuple[str, str]]) -> list[int]:
        return self._core.chat(turns)

    def _check(self) -> None:
        """Raises where what the model reads has changed; that of a file is the library's to notice."""

    def _expect_own(self, patch: Patch) -> None:
        """Raises Mismatch for a patch of another model."""
        if patch.origin.model_hash and patch.origin.model_hash != self.hash:
            raise Mismatch(f"{self.name}: found weights with hash {self.hash}, expected {patch.origin.model_hash}; the "
                           "patch was made for another model")

    def _module_of_patches(self) -> Optional[Callable[[], Any]]:
        """A weak reference to the live module whose weights these are; None for others."""
        return None

    def _tell(self) -> None:
        """Hands on what the library has to say beside errors: warnings as Python's, notes to the log."""
        for each in self._core.take_diagnostics():
            place = each["file"] or each["module"]
            text = f"{place}:{each['line']}: {each['message']}" if each["line"] else each["message"]
            if each["severity"] == "warning":
                warnings.warn(text, stacklevel=3)
            else:
                _log.info(text)


def load(path: Union[str, os.PathLike[str]], **options: Any) -> Model:
    """Loads a Hugging Face directory, a GGUF file or an .mlir file; or by its name on the hub ("google/gemma-3-270m") what
    huggingface_hub has in its cache. Nothing is downloaded.

    Options, all by name, with the command line's defaults:
OPTIONS

    Raises BadInput if the model cannot be read or imported, with all problems together.

    >>> ctxc.load("examples/models/gemma3-kjv-1m", update="balanced", threads=1)
    ctxc.Model('examples/models/gemma3-kjv-1m')
    """
    try:
        place = os.fspath(path)
    except TypeError:
        raise BadInput(f"found a {type(path).__name__}, expected a path; ctxc.from_module(module) takes a live "
                       "module") from None
    return Model(_core.Model.load(place, _checked(options)))


load.__doc__ = (load.__doc__ or "").replace(
    "OPTIONS", "\n".join(f"      {name:<16}  {meaning}" for name, meaning in _OPTIONS.items()))


def from_tensors(config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], name: str = "model",
                 **options: Any) -> Model:
    """A model whose tensors are in memory: they are used without a copy, and kept alive.

    config has the content of config.json; tensors have their names in a checkpoint, and are contiguous, in float32,
    float16 or (as ml_dtypes or uint16 views) bfloat16. The options are those of `load`. Raises BadInput for a tensor of
    another type or layout, or a config that cannot be imported.

    >>> ctxc.from_tensors({"model_type": "llama"}, {"model.norm.weight": np.zeros(8)})
    Traceback (most recent call last):
    ...
    ctxc._errors.BadInput: tensor model.norm.weight: found type float64, expected float32, float16 or bfloat16
    """
    rows = []
    for key, value in tensors.items():
        array = np.asarray(value)
        if not array.flags.c_contiguous:
            raise BadInput(f"{name}: tensor {key} is not contiguous; expected np.ascontiguousarray(tensor)")
        rows.append((key, _dtype_of(key, array), list(array.shape), array.ctypes.data, array))
    return Model(_core.Model.from_tensors(name, json.dumps(dict(config)), rows, _checked(options)))


def from_module(module: Any, tokenizer: Any = None, **options: Any) -> ModuleModel:
    """The model of a live module of transformers, whose memory is used without a copy: `ctxc.hf.from_module`, for which
    torch and transformers must be installed.

    >>> ctxc.from_module(hf_model).copied  # doctest: +SKIP
    []
    """
    from ctxc import hf

    return hf.from_module(module, tokenizer, **options)


def check(model: Union[Model, str, os.PathLike[str], torch.nn.Module],
          inputs: Union[torch.Tensor, Sequence[torch.Tensor], None] = None, *, plans: bool = False,
          **options: Any) -> CheckReport:
    """The verdict on every layer: which parameters an exact patch changes, and under which conditions; or why
    there is none. A path is enough: weights are not read. plans=True lists every plan with its cost. Raises BadInput
    for a model that cannot be read; a verdict is not an error.

    A PyTorch module is exported first, as `python -m ctxc.export` does; `inputs` are examples of its inputs,
    (1, tokens, …), and may be left out if its forward takes only input_ids.

    >>> ctxc.check("examples/models/gemma3-kjv-1m").patchable
    True
    """
    pytorch: Any = sys.modules.get("torch")  # who has a module has imported it
    if pytorch is not None and isinstance(model, pytorch.nn.Module):
        from ctxc import export
        try:
            examples = export.inputs_of(model, inputs)
        except ValueError as error:
            raise BadInput(str(error)) from None
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.ctxc")
            try:
                export.export(model, examples, file)
            except Exception as error:
                from ctxc._export_errors import summary_of
                raise BadInput(summary_of(error, type(model).__name__)) from None
            return check(file, plans=plans, **options)
    if inputs is not None:
        raise TypeError(f"example inputs belong to a module of PyTorch; found {type(model).__name__}")
    if not isinstance(model, Model):
        path = os.fspath(cast(Union[str, "os.PathLike[str]"], model))
        model = Model(_core.Model.load(path, _checked(options) | {"need_weights": False}))
    elif options:
        raise TypeError("a loaded model has its options; give a path, or give them to ctxc.load")
    found = json.loads(model._core.check_json(plans))
    model._tell()
    return CheckReport(found, model._core.check_text(plans), json.loads(model._core.check_sarif()))


def check_jax(f: Callable[..., Any], params: Any, example: Any, *, plans: bool = False, **options: Any) -> CheckReport:
    """The verdict on every layer of a function of JAX, f(params, input_ids) or f(params, input_ids, position_ids) → logits, as `check`
    gives it for a module of PyTorch. `params` is any tree of arrays; `example` are ids of shape (1, tokens), or activations
    (1, tokens, …). The function is exported first, as `python -m ctxc.jax` does. Raises BadInput for what ctxc does not read, with the
    primitive and your line.

    >>> ctxc.check_jax(f, params, np.array([[1, 2, 3]])).patchable  # doctest: +SKIP
    True
    """
    from ctxc import jax
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.ctxc")
        try:
            jax.export(f, params, example, file)
        except jax.Unsupported as refusal:
            raise BadInput(str(refusal)) from None
        return check(file, plans=plans, **options)


def _dtype_of(key: str, array: NDArray[Any]) -> str:
    names = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "uint16": "BF16"}
    try:
        return names[array.dtype.name]
    except KeyError:
        raise BadInput(f"tensor {key}: found type {array.dtype}, expected float32, float16 or bfloat16") from None


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(options.keys() - _OPTIONS.keys())
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; expected one of {', '.join(sorted(_OPTIONS))}")
    return dict(options)
