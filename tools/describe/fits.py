"""Numbers as exact expressions of the keys of a config: what one expression gives for every sample."""
from __future__ import annotations

import itertools
import math
from typing import Iterable, Sequence

Values = tuple[float, ...]


def same(a: Sequence[float], b: Sequence[float], within: float = 1e-12) -> bool:
    return all(abs(x - y) <= within * max(abs(x), abs(y)) for x, y in zip(a, b))


def bf16(value: float) -> float:
    """The nearest number of 8 bits."""
    part, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(part, 8)), exponent - 8)


def key_of(values: Iterable[float]) -> tuple[str, ...]:
    return tuple(f"{value:.9g}" for value in values)


class Fitter:
    """Finds the simplest expression. `keys` has a value for each sample."""

    def __init__(self, keys: dict[str, Sequence[float]]):
        self.keys = {name: tuple(float(v) for v in values) for name, values in keys.items()}
        self.count = len(next(iter(keys.values()))) if keys else 0
        self.simple: dict[tuple[str, ...], str] = {}
        # A token is no factor of a size.
        self.ints = ints = {n: v for n, v in self.keys.items() if all(x == int(x) and x > 0 for x in v) and not n.endswith("token_id")}
        # Simpler ones first: the first expression of a value stays.
        for name, values in self.keys.items():
            self.add(name, values)
        for name, values in ints.items():
            for factor in (2, 3, 4):
                self.add(f"{factor} * {name}", [factor * v for v in values])
            for divisor in (2, 4):
                if all(v % divisor == 0 for v in values):
                    self.add(f"{name} / {divisor}", [v / divisor for v in values])
        self.plain = dict(self.simple)
        for (a, x), (b, y) in itertools.combinations(ints.items(), 2):
            self.plain.setdefault(key_of(p + q for p, q in zip(x, y)), f"{a} + {b}")
        self.products, doubled = [], []
        for a, b in itertools.combinations_with_replacement(ints, 2):
            self.products.append((f"{a} * {b}", [x * y for x, y in zip(ints[a], ints[b])]))
        for a, b in itertools.permutations(ints, 2):
            if all(x % y == 0 for x, y in zip(ints[a], ints[b])):
                self.products.append((f"{a} / {b}", [x / y for x, y in zip(ints[a], ints[b])]))
            elif all(2 * x % y == 0 for x, y in zip(ints[a], ints[b])):
                doubled.append((f"2 * {a} / {b}", [2 * x / y for x, y in zip(ints[a], ints[b])]))
        part = self.keys.get("partial_rotary_factor")
        quotients = [(n, v) for n, v in self.products if "/" in n] + list(ints.items())
        if part:
            for name, values in quotients:
                if all((x * y) == int(x * y) for x, y in zip(values, part)):
                    turned = [x * y for x, y in zip(values, part)]
                    self.products.append((f"floor({name} * partial_rotary_factor)", turned))
                    self.products.append((f"floor({name} * partial_rotary_factor) / 2", [x / 2 for x in turned]))
        for q, x in [(n, v) for n, v in self.products if "/" in n and "*" not in n and not n.endswith("/ 2")]:
            self.products.append((f"{q} / 2", [v / 2 for v in x]))
            self.products += [(f"{name} * ({q})", [v * w for v, w in zip(values, x)]) for name, values in ints.items() if name not in q]
        self.products += self.rounded(ints)
        for name, values in self.products + doubled:
            self.add(name, values)
        for name, values in self.products:
            for factor in (2, 3, 4):
                self.add(f"{factor} * {name}", [factor * v for v in values])
        self.terms = [(text, tuple(float(x) for x in key)) for key, text in self.simple.items()]
        self.sums: dict[tuple[str, ...], str] | None = None
        self.floats: dict[tuple[str, ...], str] | None = None

    def rounded(self, ints: dict[str, Values]) -> list[tuple[str, list[float]]]:
        """Sizes, or two thirds of them, times a factor, rounded up to a multiple of another key."""
        found = []
        for by in (name for name in ints if name.endswith("multiple_of")):
            for name, values in ints.items():
                for base, sizes in ((name, list(values)), (f"floor(2 * {name} / 3)", [2 * v // 3 for v in values])):
                    forms = [(base, sizes)] + [(f"floor({key} * {base})", [math.floor(x * v) for x, v in zip(factors, sizes)])
                                               for key, factors in self.keys.items() if key.endswith("multiplier")]
                    found += [(f"{by} * floor(({form} + {by} - 1) / {by})", [m * ((v + m - 1) // m) for v, m in zip(rounded, ints[by])])
                              for form, rounded in forms]
        return found

    def add(self, text: str, values: Sequence[float]) -> None:
        self.simple.setdefault(key_of(values), text)

    def integer(self, values: Sequence[float]) -> str | None:
        if len(set(values)) == 1:
            return str(int(values[0]))
        found = self.plain.get(key_of(values)) or self.simple.get(key_of(values))
        if found:
            return found
        for text, base in self.terms[:400]:
            offset = {v - b for v, b in zip(values, base)}
            if len(offset) == 1 and abs(next(iter(offset))) <= 8:
                by = int(next(iter(offset)))
                return f"{text} {'+' if by > 0 else '-'} {abs(by)}"
        if self.sums is None:
            self.sums = {}
            for (a, x), (b, y) in itertools.combinations_with_replacement(self.terms, 2):
                self.sums.setdefault(key_of(p + q for p, q in zip(x, y)), f"{a} + {b}")
        found = self.sums.get(key_of(values))
        if found:
            return found
        for text, base in self.terms:
            found = self.sums.get(key_of(v - b for v, b in zip(values, base)))
            if found:
                return f"{text} + {found}"
        return None

    def number(self, values: Sequence[float]) -> str | None:
        """A float; one that was rounded to float32 is f32(expression), and a root that was rounded to bfloat16 bf16(expression)."""
        if len(set(values)) == 1:
            return repr(values[0])
        if self.floats is None:
            self.floats = {}
            single = list(self.keys.items()) + [(f"({n})", v) for n, v in self.products]
            forms = []
            for name, values_of in single:
                if any(v <= 0 for v in values_of):
                    continue
                forms += [(name, values_of), (f"1 / {name}", [1 / v for v in values_of]),
                          (f"sqrt({name})", [math.sqrt(v) for v in values_of]),
                          (f"1 / sqrt({name})", [1 / math.sqrt(v) for v in values_of])]
            forms += list(self.keys.items())  # also those that are 0 or below
            for name, values_of in forms:
                self.floats.setdefault(key_of(values_of), name)
            singles = [f for f in forms if "*" not in f[0]]
            for (a, x), (b, y) in itertools.combinations(singles[:200], 2):
                self.floats.setdefault(key_of(p * q for p, q in zip(x, y)), f"{a} * {b}" if not b.startswith("1 / ") else f"{a} / {b[4:]}")
            for a, x in singles[:200]:
                self.floats.setdefault(key_of(p + 1 for p in x), f"{a} + 1")
            for (a, x), (b, y) in itertools.combinations(self.ints.items(), 2):
                self.floats.setdefault(key_of(1 / math.sqrt(p + q) for p, q in zip(x, y)), f"1 / sqrt({a} + {b})")
        found = self.floats.get(key_of(values))
        if found:
            return found
        for text_key, text in self.floats.items():
            if same([float(x) for x in text_key], values, 2e-7):
                return f"f32({text})"
        return next((f"bf16({text})" for key, text in self.floats.items() if text.startswith("sqrt(")
                     and [bf16(float(x)) for x in key] == list(values)), None)
