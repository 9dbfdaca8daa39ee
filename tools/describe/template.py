"""The text that programs of several sizes share, its alternatives, and all that must hold of a config."""
from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, Callable

import defaults
import fits
import kinds
import samples
import texts
import transformers

TIE = "tie_word_embeddings"
BASE = 10000.0  # of a rope that no key says
SCORES = re.compile(r"(xf\.attention .* scale \$f\(f32\(1 / sqrt\([^()]*\))(?=\)\))")  # a factor that a scaled rope multiplies


@dataclass
class Sections:
    """The parts of a description that a setting may change."""
    layers: list[dict[str, Any]]  # with "when", the "block" as lines, and the "call"
    before: list[str]
    behind: list[str]
    entry: str
    used: set[str]
    ropes: dict[str, dict[str, Any]]
    configs: list[dict[str, Any]]
    fitter: fits.Fitter
    lists: list[str] = field(default_factory=list)


class Template:
    """The text that the programs share."""

    def __init__(self, sampler: samples.Sampler, programs: list[texts.Program], configs: list[dict[str, Any]],
                 known: dict[tuple[str, ...], str]):
        """`known` has the shared text of the samples' lines, and gets what is found."""
        self.sampler, self.programs, self.configs, self.known = sampler, programs, configs, known
        keys = varying(configs)
        self.ropes = self.ropes_of(configs)
        parts = [rope["partial"] for rope in self.ropes.values() if len(set(rope["partial"])) > 1]
        if parts:
            keys["partial_rotary_factor"] = parts[0]
        for path, numbers in self.position_scales(configs).items():
            keys[path] = numbers
        self.counts = [sampler.layer_key] if sampler.layer_key not in sampler.lists else []
        self.fitter = fits.Fitter({name: values for name, values in keys.items() if name not in self.counts})
        self.with_depth = fits.Fitter(keys)
        self.used: set[str] = set()

    @staticmethod
    def position_scales(configs: list[dict[str, Any]]) -> dict[str, list[float]]:
        """The numbers by which queries grow with the position, by the path of keys to them."""
        ropes = [config.get("rope_parameters") or {} for config in configs]
        return {f"rope_parameters.{name}": [rope[name] for rope in ropes] for name in samples.OF_POSITIONS
                if all(samples.POSITION_SCALE in rope for rope in ropes)}

    @staticmethod
    def ropes_of(configs: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
        """The ropes of the configs, by the path of keys to their parameters."""
        found: dict[str, dict[str, list[float]]] = {}
        for config in configs:
            given = config.get("rope_parameters") or {}
            nested = given and all(isinstance(value, dict) for value in given.values())
            for path, rope in (given.items() if nested else [("", given)] if given else []):
                at = found.setdefault(f"rope_parameters.{path}".rstrip("."), {"theta": [], "partial": [], "type": []})
                at["type"].append(rope.get("rope_type", "default"))
                at["theta"].append(rope.get("rope_theta", config.get("rope_theta")))
                at["partial"].append(rope.get("partial_rotary_factor", 1))
        return found

    def rope(self, lists: list[list[float]]) -> str | None:
        """A list of frequencies by rule; what is not rotated has zeros around them. A rotation backwards has a minus."""
        if all(max(values) <= 0 > min(values) for values in lists):
            backwards = self.rope([[-value for value in values] for values in lists])
            return backwards and backwards.replace("rope(", "rope(-", 1)
        turning = [[value for value in values if value] for values in lists]
        if not all(turning):
            return None
        first = [next(index for index, value in enumerate(values) if value) for values in lists]
        if any(values[at:at + len(some)] != some for values, some, at in zip(lists, turning, first)):
            return None
        known = {"theta": [BASE] * len(lists), "type": ["default"]}
        for path, rope in {**self.ropes, f"{BASE:.0f}": known}.items():
            heads = lists if set(rope["type"]) == {"proportional"} else turning  # over which pairs are counted

            def is_rope(values: list[float], theta: float, pairs: int) -> bool:
                return fits.same(values, [theta ** (-at / pairs) for at in range(len(values))], 1e-5)
            if all(rope["theta"]) and all(is_rope(v, t, len(head)) for v, t, head in zip(turning, rope["theta"], heads)):
                counts = [[2 * len(values) for values in turning], [2 * len(values) for values in lists], [2 * at for at in first]]
                dims, whole, before = (self.fitter.integer(count) for count in counts)
                if dims and whole and before:
                    more = f", {whole}, {before}" if any(first) else f", {whole}" if dims != whole else ""
                    return self.noted(f"rope({path}, {dims}{more})")
        return None

    def slopes(self, lists: list[list[float]]) -> str | None:
        """ALiBi's slope of each head, times a factor."""
        ones = [alibi(len(values)) for values in lists]
        factors = [values[0] / one[0] for values, one in zip(lists, ones)]
        if not all(fits.same(values, [factor * x for x in one], 1e-5) for values, one, factor in zip(lists, ones, factors)):
            return None
        heads, factor = self.fitter.integer([len(values) for values in lists]), self.fitter.number(factors)
        return self.noted(f"slopes({heads}, {factor})") if heads and factor else None

    def noted(self, text: str) -> str:
        self.used |= {name for name in re.findall(r"[A-Za-z_]\w*", text)}
        return text

    def place(self, values: list[texts.Place], line: str) -> str:
        kind, given = values[0].kind, [place.value for place in values]
        if kind == "word":
            if len(set(given)) == 1:
                return given[0]
            for name in self.sampler.activations:
                if given == [samples.ACTIVATIONS[config[name]] for config in self.configs]:
                    return "$a(" + self.noted(name) + ")"
            raise texts.Unsupported(f"a word depends on sizes: {given}")
        if kind == "list":
            if all(v == given[0] for v in given):
                return "dense<[" + ", ".join(f"{v:.9e}" for v in given[0]) + "]>"
            found = self.rope(given) or self.slopes(given)
            if found:
                return f"$({found})"
            raise texts.Unsupported(f"a list of numbers has no rule: {line.strip()[:80]}")
        if kind == "run":
            inner, count = self.fitted([text for _, text in given]), self.fitter.integer([often for often, _ in given])
            if count is None:
                raise texts.Unsupported(f"no expression says how often {inner} stands in {line.strip()[:80]}")
            return f"$r({self.noted(count)}; {inner})"
        found = self.fitter.integer(given) if kind == "int" else self.fitter.number(given) or self.with_depth.number(given)
        if found is None:
            raise texts.Unsupported(f"no expression gives {given} in {line.strip()[:120]}")
        if len(set(given)) == 1:
            return found if kind == "int" else f"{given[0]:.17e}" if f"{float(f'{given[0]:.6e}')!r}" != repr(given[0]) else f"{given[0]:.6e}"
        return ("$(" if kind == "int" else "$f(") + self.noted(found) + ")"

    def line(self, lines: list[str]) -> str:
        key = tuple(lines)
        if key not in self.known:
            self.known[key] = self.fitted(lines)
        self.noted(" ".join(re.findall(r"\$\w?\(([^$]*)[;)]", self.known[key])))
        return self.known[key]

    def fitted(self, lines: list[str]) -> str:
        split = [texts.pieces(line) for line in lines]
        if len({len(p) for p in split}) > 1:
            split = [texts.with_runs(line) for line in lines]
        if len({len(p) for p in split}) > 1:
            raise texts.Unsupported(f"programs differ: {lines[0].strip()[:90]} | {lines[1].strip()[:90]}")
        result = ""
        for parts in zip(*split):
            if all(isinstance(part, str) for part in parts):
                if len(set(parts)) > 1:
                    raise texts.Unsupported(f"programs differ: {lines[0].strip()[:90]} | {next(l for l in lines if l != lines[0]).strip()[:90]}")
                result += parts[0]
            elif all(isinstance(part, texts.Place) and part.kind == parts[0].kind for part in parts):
                result += self.place(list(parts), lines[0])
            else:
                raise texts.Unsupported(f"programs differ: {lines[0].strip()[:90]}")
        return result

    def text(self, versions: list[list[str]]) -> list[str]:
        if len({len(lines) for lines in versions}) > 1:
            raise texts.OtherOps("programs of different sizes have different ops")
        return [self.line(list(lines)) for lines in zip(*versions)]

    def kind_of(self, sample: int, layer: int) -> tuple[str, ...]:
        return tuple(str(self.configs[sample][name][layer]) for name in self.lists)

    def sections(self) -> Sections:
        self.lists = [*self.sampler.lists, *([kinds.MIXED] if self.sampler.stack.is_mixed else [])]
        if any(program.entry != self.programs[0].entry for program in self.programs):
            raise texts.Unsupported("the layers' input differs")
        forms: dict[tuple[str, ...], list[texts.Layer | None]] = {}
        for sample, program in enumerate(self.programs):
            for index, layer in enumerate(program.layers):
                known = forms.setdefault(self.kind_of(sample, index), [None] * len(self.programs))
                if known[sample] is not None and known[sample] != layer:
                    raise texts.Unsupported("layers differ by what is not in a list of the config")
                known[sample] = layer
        layers = []
        for kind, versions in forms.items():
            if any(version is None for version in versions):
                raise texts.Unsupported(f"no layer of kind {kind} in a sample")
            layers.append({"when": dict(zip(self.lists, kind)), "block": self.text([v.block.splitlines() for v in versions]),
                           "call": self.line([v.line for v in versions])})
        return Sections(layers, self.text([p.before for p in self.programs]), self.text([p.behind for p in self.programs]),
                        self.programs[0].entry, {name for name in self.used if name in self.configs[0]} | set(self.counts),
                        self.ropes, self.configs, self.fitter, self.lists)


def alibi(heads: int) -> list[float]:
    """The slopes of a power of two of heads, and behind them every second one of twice as many."""
    power = 2 ** (heads.bit_length() - 1)
    return [2 ** (-8 * (at + 1) / power if at < power else -4 * (2 * (at - power) + 1) / power) for at in range(heads)]


def tied(base: Sections) -> Sections | None:
    """The template where the head is the embedding; None where it is so already, or where they have different sizes."""
    stored = next(line for line in base.before if "xf.param" in line)
    table = re.match(r"(%\w+) = xf.param ", stored)
    head = next((index for index, line in enumerate(base.behind) if '"lm_head.weight"' in line), None)
    if head is None or table is None or stored.split(" : ")[1:] != base.behind[head].split(" : ")[1:]:
        return None
    behind = list(base.behind)
    name = behind.pop(head).split(" = ")[0]
    return dataclasses.replace(base, behind=[re.sub(re.escape(name) + r"\b", table.group(1), line) for line in behind])


def varying(configs: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The numbers that differ between configs, by key."""
    found = {}
    for name in configs[0]:
        values = [config.get(name) for config in configs]
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values) and len(set(values)) > 1:
            found[name] = values
    return found


def alternatives(base: Any, flips: dict[str, tuple[Any, Any]], default: dict[str, Any],
                 together: dict[frozenset[str], Any]) -> list[tuple[dict[str, Any], Any]]:
    """A section as the flipped settings make it, each with the condition under which it holds."""
    changing = {name: (other, section) for name, (other, section) in flips.items() if section != base}
    plain = {name: default[name] if other is not None or default[name] is None else samples.NUMBER for name, (other, _) in changing.items()}
    return [(plain, base)] + [({**plain, name: other}, section) for name, (other, section) in changing.items()] + \
        [({**plain, **{name: changing[name][0] for name in sorted(names)}}, section) for names, section in together.items()
         if names <= set(changing)]


def joined(sampler: samples.Sampler, base: Sections, flips: dict[str, tuple[Any, Sections]], read: set[str],
           together: dict[frozenset[str], Sections], is_idle: Callable[[str], bool]) -> dict[str, Any]:
    """The description. `is_idle` says whether a key that is read has no effect."""
    default = sampler.default.to_dict()
    flips = {name: (other, s) for name, (other, s) in flips.items() if s.entry == base.entry and s.lists == base.lists}
    together = {names: s for names, s in together.items() if names <= set(flips) and s.entry == base.entry and s.lists == base.lists}
    sections = [base, *(s for _, s in flips.values()), *together.values()]
    used = set().union(*(s.used for s in sections))
    widest = max(sections, key=lambda s: len(s.used))
    blocks: list[list[str]] = []

    def number_of(block: list[str]) -> int:
        if block not in blocks:
            blocks.append(block)
        return blocks.index(block)
    layers = []
    for when, section in alternatives(base.layers, {n: (o, s.layers) for n, (o, s) in flips.items()}, default,
                                      {names: s.layers for names, s in together.items()}):
        layers += [{"when": {**when, **layer["when"]}, "block": number_of(layer["block"]), "call": layer["call"]} for layer in section]
    ends = {}
    for name in ("before", "behind"):
        found = alternatives(getattr(base, name), {n: (o, getattr(s, name)) for n, (o, s) in flips.items()}, default,
                             {names: getattr(s, name) for names, s in together.items()})
        ends[name] = [{"when": when, "lines": lines} for when, lines in found]
    choices = {name: {"absent": default[name]} for name in flips}
    is_partial = texts.lacks_numbers(str([blocks, ends]))
    info = defaults.Defaults(sampler, widest.configs, used - set(sampler.activations) - {"rope_parameters"}, set(base.lists),
                             set(choices) | set(sampler.activations), read, widest.fitter, is_idle, is_partial)
    result: dict[str, Any] = {"model_type": sampler.model_type, "transformers": transformers.__version__,
                              "layer_count": sampler.layer_key}
    if sampler.sizes:
        result["made_with"] = sampler.sizes
    result.update(info.found())
    for name, (other, _) in flips.items():
        if name in samples.OPTIONAL and name in result["sizes"]:
            given = result["sizes"][name]
            absent = {"absent": given["absent"]} if other is None and "absent" in given else {}
            result["sizes"][name] = {**absent, "optional": True, "integer": given["integer"], "least": 1}
    if sampler.activations:
        result["activations"] = {name: default[name] for name in sampler.activations}
    if choices:
        result["choices"] = choices
    if "hidden_size" in default and sampler.sizes == "heads as width":
        heads = next(name for name in samples.ATTENTION_HEADS if name in default)
        parts = f" / {sampler.base['expand']}" if "expand" in sampler.base else ""  # a wider state has the heads
        result["equal"].append(["hidden_size", f"{heads} * head_dim{parts}"])
    if not result["equal"]:
        del result["equal"]
    if base.ropes:
        result["ropes"] = info.ropes(base.ropes)
        if len(base.ropes) == 1 and info.may_scale() and "mscale_all_dim" in samples.code_of_models(sampler.kind):
            path, rope = next(iter(result["ropes"].items()))
            grown = [[SCORES.sub(rf"\1 * {path}.scores", line) for line in block] for block in blocks]
            if grown != blocks:
                rope["scores"] = True
            blocks[:] = grown
        # A rotation's factor is that of the one rope. Where a part of a head is not rotated, a factor gives other ops.
        if len(base.ropes) == 1 and info.may_scale() and not any(re.search(r"rope\([^()]*,[^()]*,", layer["call"]) for layer in layers):
            path, rope = next(iter(result["ropes"].items()))
            rope["grows"] = True
            if not is_partial:  # no exported program has one that is long
                rope["long"] = True
            blocks[:] = [[re.sub(r"(xf\.rotary \w+ %\w+ by %\w+)", rf"\1$m({path})", line) for line in block] for block in blocks]
    result.update({"blocks": blocks, "layers": layers, "before": ends["before"], "entry": base.entry, "behind": ends["behind"]})
    return result
