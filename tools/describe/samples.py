"""Small configs of one type at several sizes: every key that gives a size has a value of its own in each."""
from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import random
import zlib
from typing import Any

import kinds
from ctxc import small_configs
from sizes import (ATTENTION_HEADS, CHOSEN, EVEN, EVEN_KV_HEADS, EXPERTS, EXPERT_COUNTS, GRIFFIN, GROUPED, GROUPED_EXPERTS, GROUPS, HEADS,
                   HEADS_OF_FOUR, HEAD_DIM, KV_HEADS, KV_HEADS_OF_FOUR, KV_NAMES, MORE_LAYERS, MULTIPLES, OTHER_TABLES, RANGES,
                   STATE_RANGES, STATE_SIZES, STATE_SPACE, WIDTH_OF_A_HEAD)
from transformers.configuration_utils import ALLOWED_LAYER_TYPES
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

FITTED = (1, 2)  # of the samples; the judge has others, which would show a wrong expression
MORE_FITTED = {"nemotron_h": (1, 2, 4)}  # where sums of so many sizes fit two samples by chance
SCALES = ("eps", "epsilon", "scal", "multiplier", "softcap", "cap", "limit", "norm_alpha", "norm_beta")
# What transformers calls the nonlinearities that xf has, and xf's names; lib/Import/HuggingFace/Family.cpp has them too.
ACTIVATIONS = {"gelu": "gelu", "gelu_python": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh",
               "gelu_fast": "gelu_tanh", "silu": "silu", "swish": "silu", "relu": "relu", "relu2": "relu2",
               "sigmoid": "sigmoid", "tanh": "tanh", "quick_gelu": "quick_gelu"}
# What a rope's parameters have for queries that grow with the position.
POSITION_SCALE = "llama_4_scaling_beta"
OF_POSITIONS = (POSITION_SCALE, "original_max_position_embeddings")
# For types that have no models of the first sizes; "heads as width" for those whose heads must be as wide as the model.
OTHER_SIZES = ("heads as width", "no size of a head", "heads in fours", "even widths", "even heads", "as many heads of keys", "rotated heads")
TOKENS, SHARED = ("pad_token_id",), ("tie_word_embeddings",)  # shared: what a config and a part of it must say alike
# Keys whose null and whose number give different programs, with a number for each sample.
NUMBER = "number"
OPTIONAL = {"sliding_window": (5, 7, 11, 9, 6), "clip_qkv": (1.5, 2.25, 1.75, 3.5, 2.75)}
UNDECLARED = ("head_dim",)  # which no config class declares, and model code reads all the same
# Lists of these have an entry for each layer; their kinds are varied.
COUNT_KEYS = small_configs.LAYER_COUNTS


def primes(low: int, high: int) -> list[int]:
    return [n for n in range(low, high) if all(n % d for d in range(2, int(n ** 0.5) + 1))]


def config_class(model_type: str) -> Any:
    return CONFIG_MAPPING[model_type]


def chosen(flipped: dict[str, Any], index: int) -> dict[str, Any]:
    """The flipped settings, with the numbers of a sample."""
    return {name: OPTIONAL[name][index] if value == NUMBER else value for name, value in flipped.items()}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def code_of_models(kind: Any) -> str:
    return inspect.getsource(importlib.import_module(kind.__module__.replace(".configuration_", ".modeling_")))


def is_asked_for(kind: Any, name: str) -> bool:
    """Whether the code of a type's models reads a key by its name, so that a config may have it."""
    return f'getattr(config, "{name}"' in code_of_models(kind)


class Sampler:
    """Settings of a type, in samples some of which no fit sees."""

    def __init__(self, model_type: str):
        self.whole_kind = self.kind = config_class(model_type)
        self.model_type = model_type
        self.fitted = MORE_FITTED.get(model_type, FITTED)
        self.default = whole = self.kind()
        given = small_configs.settings_of(self.kind)
        self.parts = {name: value for name, value in given.items() if hasattr(value, "to_dict")}
        self.idle: set[str] = set()  # parts that are shown to have no effect
        # The part of a config whose keys are those of the program, where it is not the config itself.
        self.part = next((name for name in self.parts if getattr(whole, name) is whole.get_text_config(decoder=True)), None)
        if self.part:
            self.default = getattr(whole, self.part)
            self.kind = type(self.default)
            given = small_configs.settings_of(self.kind)
        self.base = {name: value for name, value in given.items() if not hasattr(value, "to_dict")}
        default = self.default.to_dict()
        self.base.update({name: value for name, value in default.items()
                          if isinstance(value, int) and (name.endswith("multiple_of") or self.table_of(name) and value > 8
                                                         and value != default.get("vocab_size"))})
        self.names = set(default)
        self.undeclared = [name for name in UNDECLARED if name not in self.names and is_asked_for(self.kind, name)]
        self.names |= set(self.undeclared)
        self.base.update({name: small_configs.SIZE_OF[name] for name in self.undeclared})
        count = self.layer_count(self.default)
        # The number of layers, or the list whose length it is.
        self.layer_key = next(name for name in (*COUNT_KEYS, *default) if name in self.names and
                              (name in COUNT_KEYS or isinstance(default[name], list) and len(default[name]) == count))
        self.lists = {name: value for name, value in default.items()
                      if isinstance(value, list) and len(value) == count > 1 and value != list(range(count))}
        # Those that a config must say, with an entry for each layer of the small models.
        small = self.base[self.layer_key]
        self.required = {name: value for name, value in self.base.items() if (default.get(name) is None or value is small)
                         and isinstance(value, list) and len(value) == (len(small) if isinstance(small, list) else small) > 1}
        self.lists.update(self.required)
        self.uniform = self.lists_of_one_number()
        self.stack = kinds.Stack()
        self.heads, self.kv_heads = HEADS, KV_HEADS
        self.kept: dict[str, int] = {}  # how many experts are chosen, where it may not differ
        self.sizes = ""
        self.has_groups = model_type in GROUPED
        self.heads_are_width = "head_dim" not in self.names or self.model_type in GRIFFIN  # whether heads together are as wide as the model
        self.activations = {name: value for name, value in self.default.to_dict().items()
                            if isinstance(value, str) and value in ACTIVATIONS and "act" in name}
        self.indices = self.keys_of_indices()
        self.add_kinds()
        self.mix()
        self.first = dict(self.base)

    def lists_of_one_number(self) -> dict[str, str]:
        """The lists that are no kinds of layers: where they are left out, each entry is the number of another key, or the base
        of the rope, which is returned. Other numbers are not described."""
        default, found = self.default.to_dict(), {}
        rope = default.get("rope_parameters") or {}
        others = [(key, value, {key: 2 * value}) for key, value in default.items() if is_number(value)]
        if theta := rope.get("rope_theta"):
            others.append(("rope_parameters", theta, {"rope_parameters": {**rope, "rope_theta": 2 * theta}}))
        for name, values in self.lists.items():
            for key, value, changed in others:
                with contextlib.suppress(Exception):
                    if values == [value] * len(values) and self.kind(**changed).to_dict()[name] == [2 * value] * len(values):
                        found[name] = key
        for name in found:
            del self.lists[name]
            self.base.pop(name, None)
        return found

    def keys_of_indices(self) -> list[str]:
        """The keys whose lists name the layers of a kind. The small models have one such layer."""
        found, fields = [], getattr(self.kind, "__dataclass_fields__", {})
        for name in sorted(name for name in self.names if "list[int]" in str(getattr(fields.get(name), "type", ""))):
            try:
                one, other = (self.kinds_in(self.with_layers(6, **{name: indices})) for indices in ([1, 4], [0, 2, 3, 5]))
            except Exception:
                continue
            if len(set(one)) == 2 and one[1] == one[4] == other[0] and one == [one[0], one[1], one[0], one[0], one[1], one[0]] \
                    and other == [one[1], one[0], one[1], one[1], one[0], one[1]]:
                found.append(name)
                self.base[name] = [1]
        if found:
            said = self.with_layers(6).to_dict()
            self.lists = {name: said[name] for name in self.lists}
        return found

    def add_kinds(self) -> None:
        """Where the default has layers of one kind, kinds with other parameters or a window that the model's code names, too."""
        for name, values in self.lists.items():
            for kind in ALLOWED_LAYER_TYPES if len(set(map(str, values))) == 1 and values[0] in ALLOWED_LAYER_TYPES else ():
                with contextlib.suppress(Exception):
                    is_window = (values[0], kind) == ("full_attention", "sliding_attention") and isinstance(self.base.get("sliding_window"), int)
                    if f'"{kind}"' in code_of_models(self.kind) and \
                            (len(set(self.kinds_in(self.with_layers(2, **{name: [values[0], kind]})))) == 2 or is_window):
                        self.lists[name] = [*self.lists[name], kind]

    def mix(self) -> None:
        """Looks for layers of several kinds that no list names, also where a number of first layers is 0 by default."""
        try:
            self.kinds_in(self.with_layers(8))
            for name in self.base:
                if not self.stack.is_mixed and self.base[name] == 0 and small_configs.SIZE_OF.get(name) == 1:
                    self.kinds_in(self.with_layers(8, **{name: 1}))
                    if self.stack.is_mixed:
                        self.base[name] = 1
            if self.stack.is_mixed and self.lists:  # the lists may say all, or something
                config = self.with_layers(12)
                said = config.to_dict()
                self.stack.leave_out([str([said[name][layer] for name in self.lists]) for layer in range(12)], self.whole(config))
        except Exception:  # then the class has lists of another length only
            self.stack.is_mixed = False

    @staticmethod
    def table_of(name: str) -> tuple[int, int] | None:
        """The range of a size that no list names."""
        return None if name in small_configs.SIZE_OF else next((span for end, span in OTHER_TABLES.items() if name.endswith(end)), None)

    @staticmethod
    def layer_count(config: Any) -> int:
        return next((v for v in (getattr(config, n, None) for n in COUNT_KEYS) if isinstance(v, int)), 0)

    def with_layers(self, count: int, **settings: Any) -> Any:
        """A config with that many layers, whose lists are those that the class gives."""
        chosen = {name: value for name, value in self.base.items() if name not in self.lists}
        chosen.update({name: [values[layer % len(values)] for layer in range(count)] for name, values in self.required.items()})
        chosen.update({name: count for name in COUNT_KEYS if name in self.names})
        return self.build({**chosen, **settings})

    def rows_of(self, config: Any) -> list[dict[str, Any]]:
        """What the lists and the stack say of each layer of `config`."""
        said = config.to_dict()
        found = {name: said[name] for name in self.lists}
        if self.stack.is_mixed:
            found[kinds.MIXED] = self.kinds_in(config)
        return [{name: values[layer] for name, values in found.items()} for layer in range(self.layer_count(config))]

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Layers among which every kind is, in the order that the class gives where kinds depend on it."""
        if not self.lists and not self.stack.is_mixed:
            return [{}]
        distinct: list[dict[str, Any]] = []
        if not self.stack.is_mixed:
            for layer in range(len(next(iter(self.lists.values())))):
                row = {name: values[layer % len(values)] for name, values in self.lists.items()}
                distinct += [row] if row not in distinct else []
            return distinct
        all_rows = self.rows_of(self.with_layers(12))
        for count in range(1, 12):
            found = self.rows_of(self.with_layers(count))
            if all(row in found for row in all_rows):
                return found
        return all_rows

    def choose(self, sizes: str) -> bool:
        """Takes one of OTHER_SIZES. Whether these are others than the first ones."""
        self.base, self.heads, self.kv_heads = dict(self.first), HEADS, KV_HEADS
        self.heads_are_width = "head_dim" not in self.names or self.model_type in GRIFFIN
        self.sizes = sizes
        if sizes in ("heads in fours", "even heads"):
            self.heads, self.kv_heads = HEADS_OF_FOUR, KV_HEADS_OF_FOUR if sizes == "heads in fours" else EVEN_KV_HEADS
        elif sizes == "as many heads of keys":
            self.kv_heads = self.heads
        elif sizes == "no size of a head":
            return any(self.base.pop(name, None) is not None for name in ("head_dim", "d_head"))
        elif sizes == "rotated heads":  # of which the class asks for the size of their rotated part
            return {"head_dim", "qk_rope_head_dim"} <= set(self.base)
        elif sizes == "heads as width":
            was, self.heads_are_width = self.heads_are_width, True
            return not was
        return True

    @staticmethod
    def is_of_experts(name: str) -> bool:
        return any(word in name for word in ("expert", "moe", "topk"))

    def with_experts_kept(self, all_of_them: bool = False) -> bool:
        """As many experts as the class chooses, whose ops may be one for each; or as many as it has."""
        default, was = self.default.to_dict(), self.kept
        self.kept = {name: default[name] for name in self.base if isinstance(default.get(name), int) and
                     (small_configs.SIZE_OF.get(name) == 2 and self.is_of_experts(name) or all_of_them and name in EXPERT_COUNTS)}
        return self.kept != was

    @staticmethod
    def prime(name: str, index: int, low: int, high: int) -> int:
        """Another one for each sample, and nearly always for each name."""
        among = primes(low, high)
        step = 7 if len(among) % 7 else 5
        return among[(zlib.crc32(name.encode()) + step * index) % len(among)]

    def size(self, name: str, index: int) -> int | None:
        if name == "head_dim" and self.sizes == "rotated heads":
            name = "qk_rope_head_dim"
        base = small_configs.SIZE_OF.get(name)
        if name in self.kept:
            return self.kept[name]
        if name in STATE_SIZES:
            return STATE_SIZES[name][index] if name in self.base and self.default.to_dict().get(name) != 1 else None
        if name in STATE_RANGES:
            return self.prime(name, index, *STATE_RANGES[name]) if name in self.base else None
        if any(word in name for word in STATE_SPACE):
            return None
        if name.endswith("multiple_of"):
            return MULTIPLES[index]
        if name in ATTENTION_HEADS:
            return self.heads[index]
        if self.has_groups and name in GROUPS:
            return GROUPS[name][index]
        if name in EXPERT_COUNTS:
            return (GROUPED_EXPERTS if self.has_groups else EXPERTS)[index] + max(self.kept.values(), default=0)
        if base == 64:
            width = self.heads[index] * (HEAD_DIM if self.heads_are_width else WIDTH_OF_A_HEAD)[index]
            return width // self.base["expand"] if {"num_heads", "expand"} <= set(self.base) and self.heads_are_width else width
        if name in KV_NAMES and "kv_lora_rank" in self.base:
            return self.heads[index]
        if base == 2:
            return CHOSEN[index] if self.is_of_experts(name) else 1 if self.model_type in GRIFFIN else self.kv_heads[index]
        if name in EVEN:
            span = EVEN[name]
            if len(span) > 2:
                return span[index]
            return 2 * self.prime(name, index, span[0] // 2, span[1] // 2 + 8)
        if base == 1:
            return (1, 1, 3, 2, 4)[index] if "shared" in name else None
        if span := RANGES.get(str(base)) or self.table_of(name):
            return self.prime(name, index, *span) * (2 if base == 96 and (self.sizes == "even widths" or self.model_type in GRIFFIN) else 1)
        return None

    def varied(self) -> list[str]:
        return sorted(name for name in self.base if self.size(name, 0) is not None)

    def settings(self, index: int, is_judge: bool = False, defaults: bool = True) -> dict[str, Any]:
        chosen = copy.deepcopy(self.base)
        default = self.default.to_dict()
        for name in self.varied():
            chosen[name] = self.size(name, index)
        count = len(self.rows) + MORE_LAYERS[index]
        rows = self.rows_of(self.with_layers(count)) if self.stack.is_mixed else (self.rows * 3)[:count]
        if not self.stack.is_mixed:
            random.Random(index).shuffle(rows)
        chosen[self.layer_key] = len(rows)
        for name in self.lists:
            chosen[name] = [row[name] for row in rows]
        for name, value in default.items():
            if name in self.lists:
                continue
            if name in TOKENS and isinstance(value, int):
                chosen[name] = (3, 1, 2, 4, 5)[index] if not is_judge else value if value < 200 else 0
            elif any(word in name for word in SCALES) and isinstance(value, (int, float)) and not isinstance(value, bool) \
                    and value > 0 and not (is_judge and defaults):
                # Keys of the same default differ, too.
                grown = value * (1 + 0.25 * (index + 1) + 0.01 * (zlib.crc32(name.encode()) % 23))
                chosen[name] = round(grown) if isinstance(value, int) else grown
        for at, (name, value) in enumerate(self.activations.items()):
            others = ("silu", "relu") if at else ("relu", "silu")  # so that a word tells its key
            judged = value if defaults or not at else "relu"
            chosen[name] = judged if is_judge else (value, *others, value, "relu")[index]
        if "rope_parameters" in default and default["rope_parameters"]:
            chosen["rope_parameters"] = self.ropes(default["rope_parameters"], index)
        return chosen

    def ropes(self, given: dict[str, Any], index: int) -> dict[str, Any]:
        def one(rope: dict[str, Any], by: int) -> dict[str, Any]:
            rope = dict(rope)
            if rope.get("rope_type", "default") not in ("default", "proportional"):
                more = {POSITION_SCALE: (index + 2) * rope[POSITION_SCALE], "original_max_position_embeddings": (64, 48, 80, 56, 72)[index]} if POSITION_SCALE in rope else {}
                rope = {"rope_type": "default", "rope_theta": rope["rope_theta"], **more}
            if "rope_theta" in rope:
                rope["rope_theta"] = (10000.0, 20000.0, 70000.0, 3000.0, 40000.0)[index] * by
            if rope.get("partial_rotary_factor", 1) != 1:
                rope["partial_rotary_factor"] = (0.5, 0.25, 0.75, 0.25, 0.5)[index]
            return rope
        if all(isinstance(value, dict) for value in given.values()):
            return {name: one(rope, 1 + at) for at, (name, rope) in enumerate(given.items())}
        return one(given, 1)

    def build(self, settings: dict[str, Any]) -> Any:
        inner = {} if self.part else copy.deepcopy(self.parts)
        config = self.kind(**{**inner, **copy.deepcopy(settings)})
        return self.run_eagerly(config)

    @staticmethod
    def run_eagerly(config: Any) -> Any:
        config._attn_implementation = "eager"
        config.use_cache = False
        if hasattr(config, "is_decoder"):
            config.is_decoder = True
        return config

    def other_parts(self) -> dict[str, Any]:
        """The parts with one more layer, and with other sizes inside of them."""
        found = {}
        for name, part in self.parts.items():
            if name == self.part:
                continue
            given = small_configs.settings_of(type(part))
            more = {key: value + 1 for key, value in given.items() if key in COUNT_KEYS and isinstance(value, int)}
            wider = {key: 2 * value for key, value in given.items() if small_configs.SIZE_OF.get(key) in (32, 96) and isinstance(value, int)}
            found[name] = type(part)(**{**given, **more, **wider})
        return found

    def whole(self, config: Any) -> Any:
        """The config of the type, whose part `config` may be."""
        if not self.part:
            return config
        said = config.to_dict()
        shared = {name: said[name] for name in SHARED if name in said and name in self.whole_kind().to_dict()}
        found = self.whole_kind(**{**copy.deepcopy(self.parts), **shared, self.part: said})
        self.run_eagerly(getattr(found, self.part))
        return self.run_eagerly(found)

    def kinds_in(self, config: Any) -> list[str]:
        return self.stack.kinds_of(self.whole(config), self.layer_count(config))

    def kinds_of_layers(self, settings: dict[str, Any]) -> dict[str, list[str]]:
        """The kinds of layers that no list says, as an entry of a config."""
        return {kinds.MIXED: self.kinds_in(self.build(settings))} if self.stack.is_mixed else {}
