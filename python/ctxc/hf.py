"""Live models of transformers: load one into ctxc as it is in memory, and patch it for a token.

>>> import ctxc, ctxc.hf
>>> model = ctxc.hf.from_module(hf_model)
>>> patch = ctxc.Context(model, ids).patch()
>>> with ctxc.hf.patched(hf_model, patch), torch.no_grad():
...     logits = hf_model(torch.tensor([ids[-1:]])).logits            # of the last token alone
"""

from __future__ import annotations

import contextlib
import json
import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

import numpy as np
import torch

from ctxc import _core
from ctxc._context import Context, Progress
from ctxc._errors import BadInput, Mismatch
from ctxc._growing import GrowingPatch, grow
from ctxc._heads import heads as _heads
from ctxc._live_patch import Patched
from ctxc._live_text import conversation, ends_of, front_of
from ctxc._live_weights import TYPES, Seen, inner_of, refuse, tensors
from ctxc._model import Keep, Model, _checked
from ctxc._patch import Patch
from ctxc._prompt import Prompt

_log = logging.getLogger("ctxc")


class ModuleModel(Model):
    """A model whose weights are a live module's own.

    >>> ctxc.hf.from_module(hf_model).copied
    []
    """

    def __init__(self, core: _core.Model, module: torch.nn.Module, copied: list[str],
                 comparison: Optional[Callable[[], None]] = None, tokenizer: Any = None):
        super().__init__(core)
        self._comparison = comparison
        self.copied = copied
        """The names of the tensors that had to be copied: those that are not contiguous on the CPU, and those that an
        adapter changes."""
        self._module, self._tokenizer = module, tokenizer
        self._seen = Seen(inner_of(module))
        self._fronts: Optional[tuple[list[int], list[int]]] = None

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The module's tensors by the names that patches use: on the module's device, and as they are now; with a LoRA the
        sums W + BA.

        >>> model.tensors["model.norm.weight"] is hf_model.model.norm.weight
        True
        """
        return tensors(inner_of(self._module))

    @property
    def is_stale(self) -> bool:
        """Whether a tensor of the module was replaced or written to since the model was made. Contexts of a stale model
        raise Mismatch, because its patches would fit no model.

        >>> ctxc.hf.from_module(hf_model).is_stale
        False
        """
        return self._seen.changed() is not None

    @property
    def has_tokenizer(self) -> bool:
        """Whether prompts can be texts: `from_module` was given the tokenizer.

        >>> ctxc.hf.from_module(hf_model).has_tokenizer
        False
        """
        return self._tokenizer is not None

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, by the tokenizer that `from_module` was given. Raises BadInput if there is none.

        >>> ctxc.hf.from_module(hf_model).tokenize("And David said")
        Traceback (most recent call last):
        ...
        ctxc._errors.BadInput: LlamaForCausalLM: a live module has no tokenizer; expected ids of tokens, or ...
        """
        return list(self._texts()(text)["input_ids"])

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens, by the same tokenizer.

        >>> ctxc.hf.from_module(hf_model, tokenizer=tokenizer).decode([5, 17])  # doctest: +SKIP
        'And David'
        """
        return str(self._texts().decode([int(token) for token in tokens]))

    def _texts(self) -> Any:
        if self._tokenizer is None:
            raise BadInput(f"{type(inner_of(self._module)).__name__}: a live module has no tokenizer; expected ids of tokens, or "
                           "ctxc.from_module(module, tokenizer=tokenizer)")
        return self._tokenizer

    def _chat(self, turns: list[tuple[str, str]]) -> list[int]:
        return conversation(self._texts(), turns)

    def _front(self) -> tuple[list[int], list[int]]:
        if self._fronts is None:
            self._fronts = ([], []) if self._tokenizer is None else front_of(self._tokenizer)
        return self._fronts

    def _module_of_patches(self) -> Callable[[], Any]:
        return weakref.ref(self._module)

    def _check(self) -> None:
        if self.is_stale:
            raise Mismatch(f"{self.name}: a tensor of the module was replaced or written to since the model was made of it; "
                           "expected ctxc.hf.from_module(module) again")
        if self._comparison is not None:
            compare, self._comparison = self._comparison, None
            compare()


def from_module(module: torch.nn.Module, tokenizer: Any = None, **options: Any) -> ModuleModel:
    """The model of a module of transformers, by its configuration and the memory of its parameters.

    Only tensors that are not contiguous on the CPU are copied (`copied` of the result names them, and the logger `ctxc`
    reports them). Parameters have the module's names, so that a patch fits the module. The options are those of
    `ctxc.load`. The model keeps a reference to the module. With its tokenizer, prompts can be texts and conversations.

    A module with a LoRA of PEFT (a PeftModel, or what its get_base_model() gives) is read with the adapter as it is: W + BA
    is the weight that a patch changes.

    Before the first context is read, two sequences of tokens are run here and by the module, which must give the same
    logits: a module whose code is not what its configuration says raises Mismatch. self_check=False leaves this out.
    Raises BadInput for a module without a config of transformers, that is quantised or not whole in memory, for a type
    other than float32, bfloat16 and float16, and for a family that ctxc cannot import.

    >>> ctxc.hf.from_module(torch.nn.Linear(2, 2))
    Traceback (most recent call last):
    ...
    ctxc._errors.BadInput: Linear: has no config; expected a model of transformers
    """
    refuse(module)
    inner = inner_of(module)
    if not hasattr(inner, "config"):
        raise BadInput(f"{type(module).__name__}: has no config; expected a model of transformers")
    settings: Any = inner.config
    config = json.loads(settings.to_json_string(use_diff=True))
    if type(inner).__module__.startswith("transformers.") or not config.get("architectures"):
        config["architectures"] = [type(inner).__name__]  # and not that of the checkpoint that it was loaded from
    name = str(settings.name_or_path or type(inner).__name__)
    own = {id(tensor) for tensor in inner.state_dict(keep_vars=True).values()}
    rows, copied = [], []
    for key, tensor in tensors(inner).items():
        if tensor.dtype not in TYPES:
            raise BadInput(f"{name}: tensor {key}: found type {tensor.dtype}, expected float32, bfloat16 or float16")
        plain = tensor.detach().to("cpu").contiguous()
        if plain.data_ptr() != tensor.data_ptr() or id(tensor) not in own:
            copied.append(key)
        rows.append((key, TYPES[tensor.dtype], list(tensor.shape), plain.data_ptr(), plain))
    if copied:
        _log.info("%s: copied %d of %d tensors, which are not contiguous on the CPU, or which an adapter changes: %s", name, len(copied), len(rows),
                  ", ".join(copied))
    core = _core.Model.from_tensors(name, json.dumps(config), rows, _checked(options))
    rounds = any(options.get(option) for option in ("dtype", "round_prompts", "integer_products", "round_cache"))
    compares = options.get("self_check", True)
    return ModuleModel(core, module, copied, (lambda: compare(name, core, inner, rounds)) if compares else None, tokenizer)


def compare(name: str, core: _core.Model, module: torch.nn.Module, rounds: bool = False) -> None:
    """Raises Mismatch where the logits of `core`, which was made of `module`, are not the module's own. `rounds`: it rounds
    more than the module.

    >>> ctxc.hf.compare("model", ctxc.hf.from_module(hf_model)._core, hf_model)
    """
    settings: Any = module.config
    words = int(getattr(settings.get_text_config(), "vocab_size", 0) or 0)
    draw = torch.Generator().manual_seed(0)
    for length in (7, 17):
        if length > int(getattr(settings, "max_position_embeddings", None) or length) or words < 2:
            continue
        tokens = torch.randint(min(3, words - 1), words, (length,), generator=draw)
        expected, tolerance = _own_output(module, tokens.unsqueeze(0), core.headless)
        if expected is None:
            continue
        found = torch.from_numpy(_core.Context.make(core, tokens.tolist(), []).logits().copy()).double()
        largest = float(expected.abs().max())
        difference = float((found - expected).abs().max()) if found.shape == expected.shape else float("inf")
        if not difference <= max(tolerance, 0.2 if rounds else 0.0) * largest:
            what = "number of the last hidden state" if core.headless else "logit"
            raise Mismatch(f"{name}: was not read rightly: of {length} tokens a {what} differs by {difference:.3g} from the "
                           f"module's own, of which the largest is {largest:.3g}: its code is not what its configuration says, "
                           "or ctxc has an error; expected the class that transformers has for the configuration "
                           "(self_check=False goes on all the same)")


@torch.no_grad()
def _own_output(module: torch.nn.Module, ids: torch.Tensor, headless: bool) -> tuple[Optional[torch.Tensor], float]:
    """The module's own logits after the last token, in float32 where it takes that; and by which share of the largest they may
    differ. Without a head that ctxc reads, its last hidden state. None where it gives neither."""
    if headless:
        module = getattr(module, "base_model", module)
    held = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    narrow = [tensor for tensor in held.values() if tensor.dtype in (torch.bfloat16, torch.float16)]
    training, ids = module.training, ids.to(next(iter(held.values())).device)
    module.eval()
    try:
        tolerance = 0.05 if narrow else 1e-3  # with the weights, tables of positions were rounded
        if narrow and sum(tensor.numel() for tensor in narrow) <= 1 << 30:
            wide = {key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in held.items()}
            try:
                made = torch.func.functional_call(module, wide, (ids,))
            except RuntimeError:  # its code has types of its own
                made, tolerance = module(ids), 0.2
        else:
            made, tolerance = module(ids), max(tolerance, 0.2 if narrow else 0)
        output = _of_tokens(made)
        return (None if output is None else output[0, -1].double().cpu()), tolerance
    finally:
        module.train(training)


def _of_tokens(made: Any) -> Optional[torch.Tensor]:
    """What a call of a module gives for each token: logits, or of a base model the last hidden state."""
    logits = getattr(made, "logits", None)
    return getattr(made, "last_hidden_state", None) if logits is None else logits


@contextlib.contextmanager
def patched(module: torch.nn.Module, patch: Patch, *, anyway: bool = False,
            factored: bool = False) -> Iterator[torch.nn.Module]:
    """The module with the patch added to its weights, inside the `with` block; afterwards every tensor is the original
    one again, also after an exception.

    A call without position_ids gets the absolute position of the patch's token, and one without a cache that of the kept
    tokens, which are run unpatched before. Mismatch is raised for whatever a patch is not exact for:

    - a patch that does not fit the module, or was made of another module with other weights (that of a file names the
      checkpoint, whose bytes a module no longer has: `ctxc.verify` compares the two);
    - another patch in the module, a weight that was changed since, or dropout in training mode;
    - a call with another token than the patch's, as ids or as embeddings, at another position, or with a cache of other
      length than the kept tokens.

    anyway=True allows them. A warning says where roundings of a module in 16 bits are predicted to change what it answers.

    factored=True leaves the weights of linear modules unchanged, and adds u (vᵀ z) to the output of each by hooks, so
    that the patch is not rounded to the type of the weights. Changes of vectors, and of matrices that are not the
    weight of a linear module (such as experts in a bank), are added to the weights in any case.

    >>> with ctxc.hf.patched(hf_model, patch):
    ...     hf_model(torch.tensor([[1, 2]]))
    Traceback (most recent call last):
    ...
    ctxc._errors.Mismatch: found tokens [[1, 2]], expected [[6]]: the patch is exact for this token at position 11 ...
    """
    refuse(module)
    state = Patched(module, patch, anyway, factored)
    if not anyway:
        _expect_weights_of(module, patch)
    changed = None
    try:
        state.put()
        yield module
    finally:
        changed = state.take_back()
    if changed is not None and not anyway:
        raise Mismatch(f"{changed} was replaced or written to while the module was patched; weights that the patch changes are "
                       "the original ones again, without that; expected the change outside of the `with`")


def generate(module: torch.nn.Module, tokenizer: Any, prompt: Prompt, tokens: int = 20, keep: Keep = None, *,
             factored: bool = True, joint: bool = False, progress: Progress = False,
             **options: Any) -> Iterator[tuple[int, Any]]:
    """The paper's Algorithm 1 on a live model: yields, for each of at most `tokens` steps, the token that the patched module
    chooses without the context, and the patch; a token that ends what the module writes is the last. The context is read
    once, and patches stay factored (`patched`), so that no step copies a matrix. A conversation is written by the
    tokenizer's chat template. keep and progress: as for `ctxc.Context`. Options and errors are those of `from_module`.

    joint=True: one patch for all tokens (`GrowingPatch`, the same object at each step), which grows by a rank with each of
    them, and with which the module reads the whole text again. Raises BadInput for more tokens than it can be exact for.

    >>> [patch.origin.position for _, patch in ctxc.hf.generate(hf_model, None, [5, 17, 3], tokens=2)]
    [2, 3]
    """
    model = from_module(module, tokenizer, **options)
    if joint:
        if not factored:
            raise BadInput("joint: found factored=False, and a patch that grows stays beside the weights; leave it out")
        ids = model.tokens(prompt)
        yield from grow(model, module, tokenizer, ids, model._kept(ids, keep)[0], tokens)
        return
    context = Context(model, prompt, keep, progress=progress)
    ends = ends_of(inner_of(module), tokenizer)
    for _ in range(tokens):
        patch = context.patch()
        chosen = int(patched_logits(module, patch, factored=factored).argmax())
        yield chosen, patch
        if chosen in ends:
            return
        context.extend(chosen)


def heads(module: torch.nn.Module, prompt: Prompt, tokenizer: Any = None, keep: Keep = None, **options: Any) -> dict[str, np.ndarray]:
    """Of what the context changes at the last token of a prompt, the part that each head carries, for each layer by the name of
    the matrix W behind its attention: an array with one share for each head.

    With z and z' what W reads of head h with the context and without it, both at the residual stream of the full run, head h adds
    d_h = W_h (z_h - z'_h) to the change d, the sum of all. Its share is ⟨d_h, d⟩ / ‖d‖²; the shares of a layer add up to 1,
    and a head that works against the others has a negative one. Options and errors are those of `from_module`; BadInput where the
    matrix that takes the change is not behind heads of equal width.

    >>> shares = ctxc.hf.heads(hf_model, ids)
    >>> bool(abs(shares["model.layers.0.self_attn.o_proj"].sum() - 1) < 1e-6)
    True
    """
    model = from_module(module, tokenizer, **options)
    ids = model.tokens(prompt)
    return _heads(model, module, tokenizer, ids, model._kept(ids, keep)[0])


@torch.no_grad()
def patched_logits(module: torch.nn.Module, patch: Patch, factored: bool = False) -> torch.Tensor:
    """The patched module's logits for its token, (vocabulary,), in the module's type, or of a base model its last hidden
    state: kept tokens are run before it, unpatched. Raises Mismatch for a patch of another model.

    >>> full = hf_model(torch.tensor([ids])).logits[0, -1]
    >>> bool((ctxc.hf.patched_logits(hf_model, patch) - full).abs().max() < 1e-3)
    True
    """
    device = next(module.parameters()).device
    with patched(module, patch, factored=factored):
        output = _of_tokens(module(torch.tensor([[patch.origin.tokens[-1]]], device=device)))
        assert output is not None
        return output[0, -1]


def _expect_weights_of(module: torch.nn.Module, patch: Patch) -> None:
    """Raises Mismatch where the patch was made of other weights than the module's."""
    made_on = None if patch._made_on is None else patch._made_on()
    # A copy in another type has other bytes, and may be the same model all the same; so may a file.
    if made_on is not None and made_on is not module and _types(made_on) == _types(module) and \
            _hash_of(module) != patch.origin.model_hash:
        raise Mismatch("the patch was made of another module, with other weights; anyway=True adds it all the same")


def _types(module: torch.nn.Module) -> set[torch.dtype]:
    return {tensor.dtype for tensor in module.parameters()}


def _hash_of(module: torch.nn.Module) -> str:
    """The hash of the module's model, which is kept as long as its tensors stay as they are."""
    seen, found = _hashes.get(module, (None, ""))
    if seen is None or seen.changed():
        seen, found = Seen(inner_of(module)), from_module(module).hash
        _hashes[module] = seen, found
    return found


_hashes: weakref.WeakKeyDictionary[torch.nn.Module, tuple[Seen, str]] = weakref.WeakKeyDictionary()
