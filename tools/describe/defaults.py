"""What a config says by leaving keys out, and which keys a description says nothing about."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import fnmatch
import inspect
import re
from pathlib import Path
from typing import Any, Callable

import fits
import kinds
import published
import samples
import texts

REMOVED = object()
# What may have any value in the families of the importers, but may decide which program another type has.
RISKY = """max_window_layers decoder_sparse_step top_k top_p temperature max_position_embeddings max_sequence_length max_seq_len
    seq_length is_decoder max_length""".split()
RULES = Path(__file__).resolve().parents[2] / "lib/Import/HuggingFace/ConfigKeys.cpp"


def any_value() -> Callable[[str], bool]:
    """Whether a key may have any value, whatever the type is: those of ConfigKeys.cpp."""
    patterns = re.findall(r'^    \{"([^"]*)"(\}?)', RULES.read_text(), re.M)

    def allows(name: str) -> bool:
        for pattern, end in patterns:
            if fnmatch.fnmatchcase(name, pattern):
                return end == "}"
        return False
    return allows


def as_stored(value: Any) -> Any:
    """What a config.json has for it."""
    if isinstance(value, (list, tuple)):
        return [as_stored(entry) for entry in value]
    return {"__float__": "Infinity"} if value == float("inf") else value


def declared_default(kind: Any, name: str) -> Any:
    """The number that a config class gives to a key by itself; None where it has none."""
    found = None
    if dataclasses.is_dataclass(kind):
        found = next((field.default for field in dataclasses.fields(kind) if field.name == name), None)
    elif name in (taken := inspect.signature(kind.__init__).parameters):
        found = taken[name].default
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


class Defaults:
    """`used` are the keys of expressions, `lists` those with an entry for each layer, `read` what the model's code reads.
    Where programs are `is_partial`, nothing computes some of their parts, and no logits tell whether one head has the same ops."""

    def __init__(self, sampler: samples.Sampler, configs: list[dict[str, Any]], used: set[str], lists: set[str],
                 choices: set[str], read: set[str], fitter: fits.Fitter, is_idle: Callable[[str], bool], is_partial: bool):
        self.is_partial = is_partial
        self.sampler, self.configs, self.used, self.lists, self.read, self.fitter = sampler, configs, used, lists, read, fitter
        self.choices, self.is_idle = choices, is_idle
        self.default = sampler.default.to_dict()
        self.given: dict[str, list[Any]] = {}  # values of keys that the class replaces, before it does

    def built(self, settings: dict[str, Any], name: str, value: Any = REMOVED) -> Any:
        """What the config says of `name` where it is left out, or null."""
        settings = copy.deepcopy(settings)
        settings.pop(name, None)
        if value is not REMOVED:
            settings[name] = value
        try:
            return self.sampler.build(settings).to_dict().get(name)
        except Exception:
            return REMOVED

    def size(self, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        settings = [{**{k: v for k, v in config.items() if k in self.sampler.base or k == "rope_parameters"},
                     **{k: values[sample] for k, values in self.given.items()}} for sample, config in enumerate(self.configs)]
        for key, value in (("absent", REMOVED), ("null", None)):
            values = [self.built(one, name, value) for one in settings]
            declared = declared_default(self.sampler.kind, name)
            if key == "absent" and declared is not None:
                entry[key] = repr(declared)
                continue
            if any(v is REMOVED or isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
                continue
            is_integer = all(isinstance(v, int) for v in values)
            others = fits.Fitter({n: v for n, v in {**self.fitter.keys, **self.given}.items() if n != name and n not in samples.TOKENS})
            found = (others.integer if is_integer else others.number)(values)
            if found and set(re.findall(r"[A-Za-z_]\w*", found)) <= self.used | {"sqrt", "f32", "bf16", "floor"}:
                entry[key] = found
        heads = next((key for key in samples.ATTENTION_HEADS if key in self.used), None)
        # What models make of a key that their config class does not set.
        meant = f"hidden_size / {heads}" if name in self.sampler.undeclared else heads if name in samples.KV_NAMES else None
        if heads and meant and "hidden_size" in self.used:
            for key in ("absent", "null"):
                entry.setdefault(key, meant)
        least = min(config[name] for config in self.configs)
        if not all(isinstance(config[name], int) for config in self.configs):
            entry["positive"] = "eps" in name and least > 0
        elif name == self.sampler.layer_key or name in (*samples.ATTENTION_HEADS, *samples.KV_NAMES):
            must_be_several = name != self.sampler.layer_key and (self.is_partial or self.sampler.model_type in published.SEVERAL_HEADS)
            entry["least"] = 2 if must_be_several else 1
        else:  # 1 and 0 may be other programs
            entry["least"] = min(2, least)
        entry["integer"] = all(isinstance(config[name], int) for config in self.configs)
        return entry

    def is_bound(self, name: str, absent: str) -> bool:
        """Whether the class refuses every other value than what it takes from other keys."""
        settings = self.sampler.settings(1)
        return bool(re.search("[a-z]", absent)) and name in settings and \
            self.built(settings, name) == settings[name] and self.built(settings, name, settings[name] + 1) is REMOVED

    def is_replaced(self, name: str) -> bool:
        """Whether the class takes it from other keys, whatever it is."""
        settings = self.sampler.settings(1)
        value = settings.get(name, self.default.get(name))
        return samples.is_number(value) and self.built(settings, name) not in (value, REMOVED) and \
            self.built(settings, name) == self.built(settings, name, value) == self.built(settings, name, value + 1)

    def is_read(self, name: str) -> bool:
        """Whether the model's code reads it, or the config's other settings depend on it."""
        other = {v: k for k, v in (getattr(self.sampler.kind, "attribute_map", {}) or {}).items()}
        if name in self.read or other.get(name) in self.read:
            return True
        value = self.default[name]
        if isinstance(value, bool):
            changed: list[Any] = [not value]
        elif isinstance(value, (int, float)):
            changed = [value + 1, value * 2 + 3, 0]
        else:
            return True  # cannot be shown
        settings = {k: v for k, v in self.sampler.base.items() if k not in self.lists}

        def rest(config: Any) -> dict[str, Any]:
            return {k: v for k, v in config.to_dict().items() if k != name}
        try:
            before = rest(self.sampler.build({**settings, name: value}))
            return any(rest(self.sampler.build({**settings, name: one})) != before for one in changed)
        except Exception:
            return True

    def found(self) -> dict[str, Any]:
        sizes = {name: self.size(name) for name in sorted(self.used)}
        lists = {}
        for name in sorted(self.lists):
            lists[name] = kinds.Rules(self.sampler, name).entry()
        deciding = {key for entry in lists.values() for condition, _ in entry.get("absent", []) for key in re.findall(r"[A-Za-z_]\w*", condition)}
        for name in sorted(deciding & set(self.default) - set(sizes) - set(self.sampler.indices)):
            sizes[name] = {"absent": str(self.default[name]), "least": 1, "integer": True}
        fixed, unread, equal = {}, [], []
        rules = any_value()
        skipped = self.choices | {name for name in self.default if rules(name) and name not in RISKY} | {"model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "rope_parameters", *self.sampler.indices, *self.sampler.uniform}
        for name in sorted(set(self.default) - set(sizes) - self.lists - skipped):
            values = [config.get(name) for config in self.configs]
            if name in self.sampler.idle or not self.is_read(name):
                unread.append(name)
            elif behind := self.by_layers(name):
                equal.append([name, behind])
                sizes[name] = {"absent": behind, "least": 0, "integer": True}
            elif all(v == values[0] for v in values):
                fixed[name] = {"value": as_stored(values[0]), "absent": as_stored(self.default[name])}
            elif rules(name) or "chunk" in name or name in samples.STATE_RANGES or isinstance(values[0], float):  # varied, and without effect
                unread.append(name)
            elif (twin := self.twin_of(name, values)) or self.computed_of(name):
                sizes.update({name: self.size(name), **self.computed_of(name)})
                equal += [[name, twin]] if twin else []
            elif self.is_replaced(name) or self.is_idle(name):
                unread.append(name)
            else:
                raise texts.Unsupported(f"{name} is read, and gives no number of the program")
        equal += [[name, entry["absent"]] for name, entry in sizes.items() if self.is_bound(name, entry.get("absent", "0"))
                  or name == "head_dim" and self.sampler.model_type in samples.GRIFFIN]
        if self.default.get("is_decoder") is False or getattr(self.sampler.default, "is_decoder", None) is False:
            fixed["is_decoder"] = {"value": True, "absent": False}
        if self.sampler.part:  # a class may build a part of any type
            fixed["model_type"] = {"value": self.default["model_type"], "absent": self.default["model_type"]}
        known = published.KEYS.get(self.sampler.model_type, {})
        fixed.update({name: {"value": value, "absent": value} for name, value in known.items() if value is not None})
        for name, values in published.SAME.get(self.sampler.model_type, {}).items():
            fixed[name]["same"] = values
        unread += [name for name, value in known.items() if value is None]
        indices = {name: kinds.Rules(self.sampler, next(iter(lists))).unnamed(name) for name in self.sampler.indices}
        preferred = {name: other for name, other in self.preferred().items() if name in sizes or name in self.choices}
        return {"sizes": sizes, "lists": lists, **({"preferred": preferred} if preferred else {}), **({"indices": indices} if indices else {}), **({"uniform": self.sampler.uniform} if self.sampler.uniform else {}), "fixed": fixed, "unread": sorted(unread), "equal": equal}

    def preferred(self) -> dict[str, str]:
        """The keys in whose place the class takes another, where it is there."""
        pairs = re.findall(r'self\.(\w+) = kwargs\.pop\("(\w+)", self\.\1\)', inspect.getsource(self.sampler.kind))
        pairs += [(name, other) for other, name in (getattr(self.sampler.kind, "attribute_map", None) or {}).items()]
        found = {}
        for name, other in pairs:
            value = self.default.get(name)
            if isinstance(value, (int, float)) and other not in self.default:
                changed = not value if isinstance(value, bool) else value + 1
                with contextlib.suppress(Exception):
                    if self.sampler.build({**self.sampler.base, other: changed}).to_dict()[name] == changed:
                        found[name] = other
        return found

    def computed_of(self, name: str) -> dict[str, Any]:
        """A size that the class computes of this key, which it may replace then, if there is one."""
        values = [self.sampler.settings(index).get(name) for index in self.sampler.fitted]
        self.given = {name: values} if all(map(samples.is_number, values)) else {}
        others = sorted(self.used)
        self.used.add(name)
        sizes = {other: self.size(other) for other in others}
        found = [other for other in others if name in re.findall(r"[A-Za-z_]\w*", sizes[other].get("absent", ""))][:1]
        self.given = {}
        self.used -= set() if found else {name}
        return {other: sizes[other] for other in found}

    def by_layers(self, name: str) -> str | None:
        """The index of the last layer, or their number, where the class gives it to a key that is left out."""
        behind = set()
        for count in (3, 6):
            try:
                value = self.sampler.with_layers(count).to_dict()[name]
            except Exception:
                return None
            behind.add(value - count if isinstance(value, int) and not isinstance(value, bool) else None)
        found = behind.pop() if len(behind) == 1 and self.sampler.layer_key not in self.lists else None
        return None if found not in (0, -1) else f"{self.sampler.layer_key} - 1" if found else self.sampler.layer_key

    def twin_of(self, name: str, values: list[Any]) -> str | None:
        """A size that has the same values, so that the program does not tell which of both it has."""
        return next((other for other in sorted(self.used) if other != name and [c.get(other) for c in self.configs] == values), None)

    def may_scale(self) -> bool:
        """Whether the class takes a scaled rope as it is given, for which it needs the length that a model was made for."""
        given = self.default.get("rope_parameters") or {}
        if not hasattr(self.sampler.default, "max_position_embeddings") or "rope_type" not in given:
            return hasattr(self.sampler.default, "max_position_embeddings")
        scaled = {**given, "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32}
        found = self.built(self.sampler.settings(samples.FITTED[0]), "rope_parameters", scaled)
        return isinstance(found, dict) and found.get("rope_type") == "yarn"

    def ropes(self, ropes: dict[str, Any]) -> dict[str, Any]:
        result = {}
        given = self.default.get("rope_parameters") or {}
        for path in ropes:
            rope = given
            for part in path.split(".")[1:]:
                rope = rope[part]
            entry: dict[str, Any] = {"scales": self.may_scale(), "whole": rope.get("partial_rotary_factor", 1.0) == 1}
            if rope.get("rope_type") == "proportional":
                entry.update(scales=False, proportional=True)
            if rope.get("rope_type", "default") != "default":
                entry["required"] = True  # its default is of another kind
            if samples.POSITION_SCALE in rope:
                entry["numbers"] = list(samples.OF_POSITIONS)
            # What the class takes where only the rest of the parameters is given.
            bare = self.bare_rope(path)
            for name, key, default in (("theta", "rope_theta", self.default.get("rope_theta", 10000.0)),
                                       ("partial", "partial_rotary_factor", 1.0)):
                if bare.get(key, default) == rope.get(key, default):
                    entry[name] = rope.get(key, default)
            for name in published.AMBIGUOUS.get(self.sampler.model_type, ()):
                entry.pop(name, None)
            result[path] = entry
        return result

    def bare_rope(self, path: str) -> dict[str, Any]:
        inner = path.split(".")[1:]
        given: dict[str, Any] = {"rope_type": "default"}
        for part in inner:
            given = {part: given}
        try:
            found = self.sampler.build({**self.sampler.base, "rope_parameters": given}).to_dict()["rope_parameters"]
            for part in inner:
                found = found[part]
            return found
        except Exception:
            return {"rope_theta": None, "partial_rotary_factor": None}
