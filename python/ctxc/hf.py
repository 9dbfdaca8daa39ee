"""Live models of transformers: load one into ctxc as it is in memory, and patch it for a token.

>>> import ctxc, ctxc.hf
>>> model = ctxc.hf.from_module(hf_model)
>>> patch = ctxc.Context(model, ids).patch()
>>> with ctxc.hf.patched(hf_model, patch), torch.no_grad():
...     logits = hf_model(torch.tensor([ids[-1:]])).logits            # of the last token alone
"""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import torch
from transformers.pytorch_utils import Conv1D

from ctxc import _core
from ctxc._context import Context, Progress
from ctxc._errors import BadInput, Mismatch
from ctxc._model import Model, Prompt, _checked
from ctxc._patch import ParameterPatch, Patch

_log = logging.getLogger("ctxc")
_TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


class ModuleModel(Model):
    """A model whose weights are a live module's own.

    >>> ctxc.hf.from_module(hf_model).copied
    []
    """

    def __init__(self, core: _core.Model, module: torch.nn.Module, copied: list[str],
                 comparison: Optional[Callable[[], None]] = None):
        super().__init__(core)
        self._comparison = comparison
        self.copied = copied
        """The names of the tensors that had to be copied: those that are not contiguous on the CPU."""
        self._module = module
        self._seen = _seen(module)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The module's tensors by the names that patches use: on the module's device, and as they are now.

        >>> model.tensors["model.norm.weight"] is hf_model.model.norm.weight
        True
        """
        return _tensors(self._module)

    @property
    def is_stale(self) -> bool:
        """Whether a tensor of the module was replaced or written to since the model was made. Contexts of a stale model
        raise Mismatch, because its patches would fit no model.

        >>> ctxc.hf.from_module(hf_model).is_stale
        False
        """
        return _has_changed(self._seen)

    def _module_of_patches(self) -> Callable[[], Any]:
        return weakref.ref(self._module)

    def _check(self) -> None:
        if self.is_stale:
            raise Mismatch(f"{self.name}: a tensor of the module was replaced or written to since the model was made of it; "
                           "expected ctxc.hf.from_module(module) again")
        if self._comparison is not None:
            compare, self._comparison = self._comparison, None
            compare()


def from_module(module: torch.nn.Module, **options: Any) -> ModuleModel:
    """The model of a module of transformers, by its configuration and the memory of its parameters.

    Only tensors that are not contiguous on the CPU are copied (`copied` of the result names them, and the logger `ctxc`
    reports them). Parameters have the module's names, so that a patch fits the module. The options are those of
    `ctxc.load`. The model keeps a reference to the module.

    Before the first context is read, two sequences of tokens are run here and by the module, which must give the same
    logits: a module whose code is not what its configuration says raises Mismatch. self_check=False leaves this out.
    Raises BadInput for a module without a config of
    transformers, for a type other than float32, bfloat16 and float16, and for a family that ctxc cannot import.

    >>> ctxc.hf.from_module(torch.nn.Linear(2, 2))
    Traceback (most recent call last):
    ...
    ctxc._errors.BadInput: Linear: has no config; expected a model of transformers
    """
    if not hasattr(module, "config"):
        raise BadInput(f"{type(module).__name__}: has no config; expected a model of transformers")
    settings: Any = module.config
    config = json.loads(settings.to_json_string(use_diff=True))
    if type(module).__module__.startswith("transformers.") or not config.get("architectures"):
        config["architectures"] = [type(module).__name__]  # and not that of the checkpoint that it was loaded from
    name = str(settings.name_or_path or type(module).__name__)
    rows, copied = [], []
    for key, tensor in _tensors(module).items():
        if tensor.dtype not in _TYPES:
            raise BadInput(f"{name}: tensor {key}: found type {tensor.dtype}, expected float32, bfloat16 or float16")
        plain = tensor.detach().to("cpu").contiguous()
        if plain.data_ptr() != tensor.data_ptr():
            copied.append(key)
        rows.append((key, _TYPES[tensor.dtype], list(tensor.shape), plain.data_ptr(), plain))
    if copied:
        _log.info("%s: copied %d of %d tensors, which are not contiguous on the CPU: %s", name, len(copied), len(rows),
                  ", ".join(copied))
    core = _core.Model.from_tensors(name, json.dumps(config), rows, _checked(options))
    rounds = any(options.get(option) for option in ("dtype", "round_prompts", "integer_products", "round_cache"))
    compares = options.get("self_check", True)
    return ModuleModel(core, module, copied, (lambda: compare(name, core, module, rounds)) if compares else None)


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

    A call without position_ids gets the absolute position of the patch's token. A call with another token than the one
    that the patch was made for (kept tokens were run unpatched before, and are in a cache), or at another position,
    raises Mismatch, as does a patch that does not fit the module, or was made of another module with other weights;
    anyway=True allows them, but the patch is not exact for them. A patch that was read from a file names the checkpoint
    that it was made of, but a module no longer has the checkpoint's bytes: `ctxc.verify` compares the patch with it.

    factored=True leaves the weights of linear modules unchanged, and adds u (vᵀ z) to the output of each by hooks, so
    that the patch is not rounded to the type of the weights. Changes of vectors, and of matrices that are not the
    weight of a linear module (such as experts in a bank), are added to the weights in any case.

    >>> with ctxc.hf.patched(hf_model, patch):
    ...     hf_model(torch.tensor([[1, 2]]))
    Traceback (most recent call last):
    ...
    ctxc._errors.Mismatch: found tokens [[1, 2]], expected [[6]]: the patch is exact for this token at position 11 ...
    """
    if not anyway:
        _expect_weights_of(module, patch)
    parameters = {_plain(name): each for name, each in module.named_parameters(remove_duplicate=False)}
    changes: dict[str, torch.Tensor] = {}
    hooks: list[Any] = []
    for each in patch.values():
        name, index = _place(module, parameters, each)
        if factored and each.rank and index is None and (linear := _linear(module, name)) is not None:
            hooks.append((linear, each))
            continue
        target = parameters[name]
        changed = changes.get(name)
        if changed is None:
            changed = changes[name] = target.detach().clone()
        _add(changed if index is None else changed[index], each)
    originals = {name: parameters[name].data for name in changes}
    handles = [module.register_forward_pre_hook(_guard(module, patch, anyway), with_kwargs=True)]
    try:
        for linear, each in hooks:
            handles.append(linear.register_forward_hook(_beside(linear, each)))
        for name, changed in changes.items():
            parameters[name].data = changed
        yield module
    finally:
        for name, original in originals.items():
            parameters[name].data = original
        for handle in handles:
            handle.remove()


def generate(module: torch.nn.Module, tokenizer: Any, prompt: Prompt, tokens: int = 20, keep: Sequence[int] = (), *,
             progress: Progress = False, **options: Any) -> Iterator[tuple[int, Patch]]:
    """The paper's Algorithm 1 on a live model: yields, for each of `tokens` steps, the token that the patched module
    chooses without the context, and the patch. The context is read once, and patches stay factored (`patched`), so
    that no step copies a matrix. progress: shows the reading of the context, as for `ctxc.Context`. Options and errors
    are those of `from_module`.

    >>> [patch.origin.position for _, patch in ctxc.hf.generate(hf_model, None, [5, 17, 3], tokens=2)]
    [2, 3]
    """
    model = from_module(module, **options)
    ids = tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else [int(token) for token in prompt]
    context = Context(model, ids, keep, progress=progress)
    for _ in range(tokens):
        patch = context.patch()
        chosen = int(patched_logits(module, patch, factored=True).argmax())
        yield chosen, patch
        context.extend(chosen)


@torch.no_grad()
def patched_logits(module: torch.nn.Module, patch: Patch, factored: bool = False) -> torch.Tensor:
    """The patched module's logits for its token, (vocabulary,), in the module's type, or of a base model its last hidden
    state: kept tokens are run before it, unpatched. Raises Mismatch for a patch of another model.

    >>> full = hf_model(torch.tensor([ids])).logits[0, -1]
    >>> bool((ctxc.hf.patched_logits(hf_model, patch) - full).abs().max() < 1e-3)
    True
    """
    origin = patch.origin
    cache = None
    device = next(module.parameters()).device
    if origin.kept:
        kept = torch.tensor([[origin.tokens[at] for at in origin.kept]], device=device)
        cache = module(kept, position_ids=torch.tensor([list(origin.kept)], device=device), use_cache=True).past_key_values
    with patched(module, patch, factored=factored):
        last = torch.tensor([[origin.tokens[-1]]], device=device)
        given = {} if cache is None else {"past_key_values": cache}
        output = _of_tokens(module(last, **given))
        assert output is not None
        return output[0, -1]


def _add(weight: torch.Tensor, change: ParameterPatch) -> None:
    """Adds a change to a weight in float32 or wider, and rounds to the weight's type once."""
    total = weight.to(torch.promote_types(weight.dtype, torch.float32))  # itself, where that is its type
    if change.rank:
        u, v = (torch.tensor(each).to(total) for each in (change.u, change.v))
        total.addmm_(u, v.T)
    else:
        total.add_(torch.tensor(change.delta).to(total))
    weight.copy_(total)


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
    seen, found = _hashes.get(module, ([], ""))
    if not found or _has_changed(seen):
        seen, found = _seen(module), from_module(module).hash
        _hashes[module] = seen, found
    return found


_Seen = tuple[dict[str, Any], str, torch.Tensor, int, int]
_hashes: weakref.WeakKeyDictionary[torch.nn.Module, tuple[list[_Seen], str]] = weakref.WeakKeyDictionary()


def _seen(module: torch.nn.Module) -> list[_Seen]:
    """Each tensor of a checkpoint of the module: where it is kept, itself, its version, its address."""
    return [(owner, key, tensor, tensor._version, tensor.data_ptr()) for each in module.modules()
            for owner in (each._parameters, each._buffers) for key, tensor in owner.items()
            if tensor is not None and key not in each._non_persistent_buffers_set and torch.is_floating_point(tensor)]


def _has_changed(seen: list[_Seen]) -> bool:
    """Whether a tensor was replaced or written to since then."""
    return any(owner.get(key) is not tensor or tensor._version != version or tensor.data_ptr() != address
               for owner, key, tensor, version, address in seen)


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What a checkpoint of the module has: each tied tensor once, and its persistent buffers."""
    tied = {name for name, _ in module.named_parameters(remove_duplicate=False)} - \
        {name for name, _ in module.named_parameters()}
    return {_plain(name): tensor for name, tensor in module.state_dict(keep_vars=True).items()
            if name not in tied and torch.is_floating_point(tensor)}


def _plain(name: str) -> str:
    """The name that a parameter has without those that TransformerLens and torch.compile wrap modules in."""
    return ".".join(part for part in name.split(".") if part not in ("_original_component", "_orig_mod"))


def _place(module: torch.nn.Module, parameters: dict[str, torch.nn.Parameter],
           change: ParameterPatch) -> tuple[str, Optional[int]]:
    """The module's parameter, and the slice of it, that a patch's parameter names. Stored names may lack the
    module's prefix, or have one that it lacks."""
    found = re.fullmatch(r"(.+)\[(\d+)\]", change.name)
    stored, index = (found[1], int(found[2])) if found else (change.name, None)
    prefix = getattr(module, "base_model_prefix", "")
    names = [stored, f"{prefix}.{stored}", stored.removeprefix(f"{prefix}.")]
    for name in names:
        if name in parameters:
            shape = tuple(parameters[name].shape)
            part = shape if index is None else shape[1:]
            if part != tuple(change.shape):
                raise Mismatch(f"{change.name}: the patch has shape {change.shape}, the module {part}; the patch is "
                               "of another model")
            return name, index
    raise Mismatch(f"{change.name}: the module has no such parameter; make the patch with ctxc.hf.from_module(module), "
                   "which uses the module's own names")


def _linear(module: torch.nn.Module, name: str) -> Optional[torch.nn.Module]:
    """The linear module whose own weight is the parameter of that name."""
    owner, _, own = name.rpartition(".")
    if own != "weight":
        return None
    return next((each for path, each in module.named_modules(remove_duplicate=False)
                 if _plain(path) == owner and isinstance(each, (torch.nn.Linear, Conv1D))), None)


def _beside(linear: torch.nn.Module, change: ParameterPatch) -> Any:
    """Adds the product with a change of a linear module's weight to what it puts out."""
    into, out = (change.u, change.v) if isinstance(linear, Conv1D) else (change.v, change.u)
    factors: dict[tuple[torch.device, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}

    def after(_: torch.nn.Module, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
        dtype = torch.float64 if result.dtype == torch.float64 else torch.float32
        key = result.device, dtype
        if key not in factors:
            a, b = (torch.tensor(each).to(*key) for each in (into, out))
            factors[key] = a, b
        a, b = factors[key]
        changed: torch.Tensor = result.to(dtype) + (args[0].to(dtype) @ a) @ b.T
        return changed.to(result.dtype)

    return after


def _guard(module: torch.nn.Module, patch: Patch, anyway: bool) -> Any:
    """Checks a call's token, and gives it its position."""
    signature = inspect.signature(module.forward)
    origin = patch.origin

    def before(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        given = signature.bind_partial(*args, **kwargs).arguments
        ids, places = given.get("input_ids"), given.get("position_ids")
        if ids is None:
            return args, kwargs
        is_own = ids.shape[-1] == 1 and bool((ids == origin.tokens[-1]).all())
        exact = f"the patch is exact for this token at position {origin.position} alone; anyway=True runs others with it"
        if not is_own and not anyway:
            raise Mismatch(f"found tokens {ids.tolist()}, expected [[{origin.tokens[-1]}]]: {exact}")
        if places is not None and not anyway and bool((places != origin.position).any()):
            raise Mismatch(f"found positions {places.tolist()}, expected [[{origin.position}]]: {exact}")
        takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
        if is_own and places is None and ("position_ids" in signature.parameters or takes_any):
            kwargs = kwargs | {"position_ids": torch.full_like(ids, origin.position)}
        return args, kwargs

    return before
