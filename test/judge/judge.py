#!/usr/bin/env python3
"""Judges a patch file with another program: transformers, in float32, eager attention.

  judge.py CHECKPOINT PATCH             one patch file
  judge.py CHECKPOINT --batch LIST.json many, the model loaded once; LIST.json is a list of paths

Three runs give the logits of the last token:
  full      original weights, all tokens: transformers' own run and masks
  control   original weights, the last token alone (with the kept tokens, where there are some)
  patched   the same with the file's tensors added to the weights; kept tokens run before, unpatched

Every token keeps its absolute position. For each patch one line of JSON is printed. Exit code: 0
when every patch passes (patched within --tolerance of full, control far from it), 1 when one fails,
2 on bad input.

A patch file is safetensors. For a stored parameter NAME of shape (..., m, n) it has NAME.u
(..., m, r) and NAME.v (..., n, r), so that stored + u v^T is the patched one, or NAME.delta of the
stored shape; NAME may be T[i], slice i of tensor T's first dimension. Of a checkpoint without a head that gives logits
of tokens, the last hidden state stands in the place of the logits. Where the checkpoint stores a
parameter of the model in several tensors, as it does with the experts of a mixture, the model for the
patched run is loaded from copies of the files to which the tensors have been added.
"""

import argparse
import contextlib
import functools
import json
import math
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from masks import masks, place_local_masks, place_slopes


# Their tokens also see those behind them: nothing is kept, generated or cached.
ENCODERS = ("bert",)


class BadInput(Exception):
    """An error that the user must correct; its text is the whole message."""


@dataclass
class Patch:
    tokens: list      # the full context, the last token included
    kept: list        # ascending absolute positions, may be empty
    update: str
    deltas: dict      # parameter name: float32 tensor of the stored shape

    @property
    def position(self):
        return len(self.tokens) - 1


def load_checkpoint(directory, **options):
    """The model in float32, whatever its storage type; `options` of from_pretrained may be added."""
    if not (Path(directory) / "config.json").is_file():
        raise BadInput(f"{directory}: has no config.json; expected a Hugging Face directory")
    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(directory)
    # Falcon's eager attention adds the slopes of ALiBi twice, in the mask and to the scores.
    slopes_twice = config.model_type == "falcon" and config.alibi
    head = transformers.AutoModel if without_head(config.architectures) else \
        transformers.AutoModelForMaskedLM if config.model_type in ENCODERS else transformers.AutoModelForCausalLM
    model = head.from_pretrained(
        directory, attn_implementation="sdpa" if slopes_twice else "eager",
        experts_implementation="eager", dtype=torch.float32, **options)
    return states_as_logits(model) if head is transformers.AutoModel else model


def without_head(architectures):
    """Whether the class that a config names gives no logits of tokens."""
    name = (architectures or [""])[0]
    return (name.endswith("Model") and "LMHead" not in name) or name.endswith("Classification")


def states_as_logits(model):
    """A base model that gives its last hidden state as the logits."""
    plain = model.forward

    @functools.wraps(plain)
    def forward(*args, logits_to_keep=0, **arguments):
        made = plain(*args, **arguments)
        made.logits = made.last_hidden_state
        return made

    model.forward = forward
    return model


def is_encoder(directory):
    config = json.loads((Path(directory) / "config.json").read_text())
    return config.get("model_type") in ENCODERS


def weight_files(directory):
    return sorted(Path(directory).glob("model*.safetensors"))


def stored_shapes(directory):
    """The shape of every tensor in the checkpoint's files, by its name there."""
    shapes = {}
    for path in weight_files(directory):
        with safe_open(path, framework="pt") as file:
            shapes |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    return shapes


def load_patched(directory, deltas):
    """The model of the checkpoint's files with `deltas`, by names in the files, added to them."""
    with tempfile.TemporaryDirectory() as folder:
        for path in Path(directory).glob("*.json"):
            shutil.copy(path, folder)
        left = dict(deltas)
        for path in weight_files(directory):
            tensors = {name: tensor.float() + left.pop(name) if name in left else tensor
                       for name, tensor in load_file(path).items()}
            save_file(tensors, Path(folder) / path.name, metadata={"format": "pt"})
        if left:
            raise BadInput(f"{directory}: has no tensors {sorted(left)}")
        return load_checkpoint(folder)


def integers(text, what):
    try:
        return [int(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        raise BadInput(f"{what}: expected comma-separated integers, found {text!r}") from None


def read_patch(path, model):
    """Reads and checks `path` against the parameters of `model`."""
    try:
        with safe_open(path, framework="pt") as file:
            meta = file.metadata() or {}
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path}: {error}") from None
    for key in ("format_version", "model_hash", "tokens", "position", "kept", "update", "dtype"):
        if key not in meta:
            raise BadInput(f"{path}: __metadata__ has no {key!r}")
    tokens = integers(meta["tokens"], f"{path}: tokens")
    kept = integers(meta["kept"], f"{path}: kept")
    if not tokens or integers(meta["position"], f"{path}: position") != [len(tokens) - 1]:
        raise BadInput(f"{path}: position is {meta['position']!r}, expected that of the last of "
                       f"{len(tokens)} tokens")
    if min(tokens) < 0 or max(tokens) >= model.config.vocab_size:
        raise BadInput(f"{path}: a token is outside the vocabulary of {model.config.vocab_size}")
    if kept and model.config.model_type in ENCODERS:
        raise BadInput(f"{path}: an encoder's kept tokens would see the patched one")
    if kept != sorted(set(kept)) or any(p < 0 or p >= len(tokens) - 1 for p in kept):
        raise BadInput(f"{path}: kept positions {kept} are not ascending and before the last token")
    return Patch(tokens, kept, meta["update"], dense_deltas(path, tensors, model))


def slice_of(name):
    """("T", i) of "T[i]"; (name, None) of any other name."""
    found = re.fullmatch(r"(.+)\[(\d+)\]", name)
    return (found[1], int(found[2])) if found else (name, None)


def dense_deltas(path, tensors, model):
    shapes = {name: tuple(parameter.shape)
              for name, parameter in model.named_parameters(remove_duplicate=False)}
    stored, parameters = stored_shapes(model.name_or_path), set(shapes)
    deltas, seen = {}, set()
    for key, tensor in tensors.items():
        whole, _, form = key.rpartition(".")
        name, index = slice_of(whole)
        if name not in shapes and name in stored:
            shapes[name] = stored[name]
            # Stored without the model's prefix, as in the first files of GPT-2, or with that of a head's class.
            prefix = f"{model.base_model_prefix}."
            name = next((other for other in (prefix + name, name.removeprefix(prefix)) if other in parameters), name)
        if form not in ("u", "v", "delta") or name not in shapes:
            raise BadInput(f"{path}: {key} names no parameter of the checkpoint")
        if form == "v":
            if key[:-1] + "u" not in tensors:
                raise BadInput(f"{path}: {key} has no {name}.u beside it")
            continue
        if whole in seen:
            raise BadInput(f"{path}: {whole} is patched twice")
        seen.add(whole)
        if form == "u":
            other = tensors.get(key[:-1] + "v")
            if other is None:
                raise BadInput(f"{path}: {key} has no {name}.v beside it")
            if tensor.dim() < 2 or other.dim() < 2 or tensor.shape[-1] != other.shape[-1]:
                raise BadInput(f"{path}: {name}: shapes of u {list(tensor.shape)} and v "
                               f"{list(other.shape)} do not give a product")
            tensor = tensor @ other.transpose(-1, -2)
        shape = tuple(shapes[name])
        if index is not None and (len(shape) < 2 or index >= shape[0]):
            raise BadInput(f"{path}: {key} names no parameter of the checkpoint")
        expected = shape if index is None else shape[1:]
        if tensor.shape != expected:
            raise BadInput(f"{path}: {whole}: the patch has shape {list(tensor.shape)}, expected "
                           f"{list(expected)}")
        delta = deltas.setdefault(name, torch.zeros(shape))
        (delta if index is None else delta[index]).add_(tensor)
    return deltas


def run_tokens(model, tokens, positions, cache, cached):
    """Runs `tokens` at absolute `positions` after the tokens at positions `cached`, which `cache` holds."""
    if model.config.model_type in ENCODERS:
        return model(torch.tensor([tokens]), position_ids=torch.tensor([positions])).logits[0, -1]
    place_local_masks(model, positions, cached)
    place_slopes(model, cached + positions)
    return model(
        torch.tensor([tokens]), position_ids=torch.tensor([positions]), past_key_values=cache,
        use_cache=True, attention_mask=masks(model.config, positions, cached + positions),
        logits_to_keep=1).logits[0, -1]


@contextlib.contextmanager
def patched(model, deltas):
    """The model with `deltas` in its weights, inside the context."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    if not all(name in parameters for name in deltas):
        yield load_patched(model.name_or_path, deltas)
        return
    originals = {name: parameters[name].data for name in deltas}
    try:
        for name, delta in deltas.items():
            parameters[name].data = originals[name] + delta
        yield model
    finally:
        for name, original in originals.items():
            parameters[name].data = original


@contextlib.contextmanager
def routes(model, selected):
    """Sets `selected`: for each router of the model, by its name, the experts that it selects for
    the last token of the last run inside the context, ascending."""
    def hook(name):
        def record(module, inputs, output):
            selected[name] = sorted(output[2][-1].tolist())
        return record

    handles = [module.register_forward_hook(hook(name)) for name, module in model.named_modules()
               if type(module).__name__.lower().endswith("topkrouter")]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def routed_apart(one, other):
    """The number of mixtures in which two runs select different experts."""
    return sum(one[name] != other[name] for name in one)


@torch.no_grad()
def full_run(model, tokens):
    if model.config.model_type in ENCODERS:
        return model(torch.tensor([tokens])).logits[0, -1]
    place_local_masks(model, list(range(len(tokens))), [])
    place_slopes(model, list(range(len(tokens))))
    return model(torch.tensor([tokens]), use_cache=False, logits_to_keep=1).logits[0, -1]


def reduced_run(model, tokens, kept, deltas, selected=None):
    """Runs the last token after the kept ones, with `deltas` in the weights for the last token only. `selected`
    gets its routes."""
    cache = kept_cache(model, tokens, kept)
    with patched(model, deltas) as last:
        return last_token(last, tokens, kept, cache, {} if selected is None else selected)


@torch.no_grad()
def kept_cache(model, tokens, kept):
    # A plain cache: the windowed one drops slots by index, while the masks here go by position.
    cache = transformers.DynamicCache()
    if kept:
        run_tokens(model, [tokens[p] for p in kept], kept, cache, [])
    return cache


@torch.no_grad()
def last_token(model, tokens, kept, cache, selected):
    with routes(model, selected):
        return run_tokens(model, tokens[-1:], [len(tokens) - 1], cache, kept)


class Judge:
    """A loaded checkpoint. Runs that do not depend on the patch are computed once for each context."""

    def __init__(self, directory):
        self.model = load_checkpoint(directory)
        self.seen = {}

    def references(self, tokens, kept):
        key = (tuple(tokens), tuple(kept))
        if key not in self.seen:
            full_routes, control_routes = {}, {}
            with routes(self.model, full_routes):
                full = full_run(self.model, tokens)
            control = reduced_run(self.model, tokens, kept, {}, control_routes)
            self.seen[key] = full, control, full_routes, control_routes
        return self.seen[key]

    def measure(self, patch):
        full, control, full_routes, control_routes = self.references(patch.tokens, patch.kept)
        patched_routes = {}
        patched = reduced_run(self.model, patch.tokens, patch.kept, patch.deltas, patched_routes)
        mixtures = {} if not full_routes else {
            "mixtures": len(full_routes),
            "routed_apart_patched": routed_apart(full_routes, patched_routes),
            "routed_apart_control": routed_apart(full_routes, control_routes),
        }
        return mixtures | {
            "linf_patched": (patched - full).abs().max().item(),
            "linf_control": (control - full).abs().max().item(),
            "argmax_full": full.argmax().item(),
            "argmax_patched": patched.argmax().item(),
            "argmax_control": control.argmax().item(),
        }


def passes(measured, args):
    """Whether the patch passes; written such that NaN fails."""
    patched, control = measured["linf_patched"], measured["linf_control"]
    apart = measured.get("routed_apart_control", 0) > 0 or not args.routed_apart
    return (patched <= args.tolerance and control > args.control_above
            and control > args.control_factor * patched and apart)


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="Hugging Face directory")
    parser.add_argument("patch", metavar="PATCH", nargs="?", help="patch file (safetensors)")
    parser.add_argument("--batch", metavar="LIST.json", help="a JSON list of patch files")
    parser.add_argument("--tolerance", type=float, default=1e-3, metavar="X",
                        help="largest logit difference of the patched run (default 1e-3)")
    parser.add_argument("--control-above", type=float, default=1.0, metavar="X",
                        help="the control must differ by more than this (default 1)")
    parser.add_argument("--control-factor", type=float, default=100.0, metavar="X",
                        help="and by more than this many times the patched run's (default 100)")
    parser.add_argument("--routed-apart", action="store_true",
                        help="full run and control must select different experts somewhere")
    args = parser.parse_args(argv)
    if (args.patch is None) == (args.batch is None):
        parser.error("expected either PATCH or --batch LIST.json")
    return args


def patch_files(args):
    if args.patch:
        return [args.patch]
    try:
        files = json.loads(Path(args.batch).read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{args.batch}: {error}") from None
    if not isinstance(files, list) or not files or not all(isinstance(f, str) for f in files):
        raise BadInput(f"{args.batch}: expected a JSON list of paths")
    return files


def main(argv=None):
    args = parse(argv)
    try:
        files = patch_files(args)
        judge = Judge(args.checkpoint)
        good = True
        for file in files:
            patch = read_patch(file, judge.model)
            measured = judge.measure(patch)
            passed = passes(measured, args)
            good = good and passed
            shown = {key: None if isinstance(value, float) and not math.isfinite(value) else value
                     for key, value in measured.items()}
            print(json.dumps({"patch": str(file), "update": patch.update, "pass": passed} | shown),
                  flush=True)
        return 0 if good else 1
    except BadInput as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
