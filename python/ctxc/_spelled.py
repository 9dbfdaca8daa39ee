"""Ops that say more than one thing, spelled out in the ops that they stand for: einsum in products, a length in squares, a repetition
as a new axis."""
from __future__ import annotations

from typing import Any, Sequence

import torch


def einsum(equation: str, operands: Sequence[torch.Tensor], path: Any = None) -> torch.Tensor:
    """The same products, one pair of operands after the other. NotImplemented for diagonals and for spelling by numbers."""
    equation = equation.replace(" ", "")
    given, arrow, made = equation.partition("->")
    inputs = given.split(",")
    letters = given.replace(",", "").replace("...", "")
    if len(inputs) != len(operands) or not letters.isalpha():
        return NotImplemented  # type: ignore
    free = [letter for letter in map(chr, range(0x3b1, 0x3ca))]  # of the axes that "..." stands for
    most = 0
    for at, (names, operand) in enumerate(zip(inputs, operands)):
        if "..." in names:
            rest = operand.dim() - len(names.replace("...", ""))
            most = max(most, rest)
            inputs[at] = names.replace("...", "".join(free[len(free) - rest:]))
        if len(set(inputs[at])) < len(inputs[at]):
            return NotImplemented  # type: ignore
    ellipsis = "".join(free[len(free) - most:])
    if not arrow:
        made = "..." + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    made = made.replace("...", ellipsis)
    left, names = operands[0], inputs[0]
    for at in range(1, len(operands)):
        needed = set(made).union(*inputs[at + 1:])
        left, names = product(left, names, operands[at], inputs[at], needed)
    return ordered(summed(left, names, set(made)), "".join(each for each in names if each in made), made)


def summed(x: torch.Tensor, names: str, needed: set[str]) -> torch.Tensor:
    axes = [at for at, name in enumerate(names) if name not in needed]
    return x.sum(axes) if axes else x


def ordered(x: torch.Tensor, names: str, made: str) -> torch.Tensor:
    order = [names.index(name) for name in made]
    return x if order == sorted(order) else x.permute(order)


def merged(x: torch.Tensor, first: int, count: int) -> torch.Tensor:
    """Axes `first` to `first` + `count` as one; a new one of size 1 where there are none."""
    return x.unsqueeze(first) if count == 0 else x.flatten(first, first + count - 1) if count > 1 else x


def is_bank(names: str, own: str, inner: str) -> bool:
    """Whether it has matrices that are chosen, as those of experts: own axes in front of the inner ones, and behind."""
    places = [names.index(name) for name in own]
    return any(at < names.index(inner[0]) for at in places) and any(at > names.index(inner[-1]) for at in places)


def counts(x: torch.Tensor, names: str, own: str) -> bool:
    """Whether the size of one of its own axes is no number, as that of tokens."""
    return any(isinstance(size, torch.SymInt) for name, size in zip(names, x.shape) if name in own)


def product(a: torch.Tensor, of_a: str, b: torch.Tensor, of_b: str, needed: set[str]) -> tuple[torch.Tensor, str]:
    """Σ a b over what is in both and not needed, and the names of its axes."""
    a, of_a = summed(a, of_a, needed | set(of_b)), "".join(name for name in of_a if name in needed or name in of_b)
    b, of_b = summed(b, of_b, needed | set(of_a)), "".join(name for name in of_b if name in needed or name in of_a)
    inner = "".join(name for name in of_a if name in of_b and name not in needed)
    both = "".join(name for name in of_a if name in of_b and name in needed)
    own_a, own_b = ("".join(name for name in names if name not in other) for names, other in ((of_a, of_b), (of_b, of_a)))
    # The operand with an axis of tokens is in front, where its axes are not merged.
    if not both and counts(b, of_b, own_b) and not counts(a, of_a, own_a):
        a, of_a, own_a, b, of_b, own_b = b, of_b, own_b, a, of_a, own_a
    if not inner:  # entry by entry
        names = both + own_a + own_b
        a, b = ordered(a, of_a, both + own_a), ordered(b, of_b, both + own_b)
        a = a[(...,) + (None,) * len(own_b)]
        return a * b.reshape([*b.shape[:len(both)], *[1] * len(own_a), *b.shape[len(both):]]), names
    # A vector is in front of a matrix whose rows it weighs, and behind one whose rows it is multiplied with: nothing is turned.
    turns = bool(own_a) == (of_a[-1] in own_a if own_a else of_b[-1] in own_b) if bool(own_a) != bool(own_b) else False
    if both and (turns or is_bank(of_a, own_a, inner)):
        a, of_a, own_a, b, of_b, own_b = b, of_b, own_b, a, of_a, own_a
    if both and is_bank(of_b, own_b, inner):  # axes of choices are then as those in both
        front = "".join(name for name in own_b if of_b.index(name) < of_b.index(inner[0]))
        a = ordered(a, of_a, both + own_a + inner)
        for _ in front:
            a = a.unsqueeze(len(both))
        of_a, both, own_b = both + front + own_a + inner, both + front, "".join(name for name in own_b if name not in front)
    a, b = ordered(a, of_a, both + own_a + inner), ordered(b, of_b, both + inner + own_b)
    sizes_a, sizes_b = a.shape[len(both):len(both) + len(own_a)], b.shape[len(both) + len(inner):]
    a = merged(a, len(both) + len(own_a), len(inner))
    b = merged(merged(b, len(both) + len(inner), len(own_b)), len(both), len(inner))
    if both:
        a = merged(a, len(both), len(own_a))
    y = a @ b
    if both and len(own_a) != 1:
        y = y.reshape([*y.shape[:len(both)], *sizes_a, y.shape[-1]])
    if len(own_b) != 1:
        y = y.reshape([*y.shape[:-1], *sizes_b])
    return y, both + own_a + own_b


def length(x: torch.Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A Euclidean length as the root of a sum of squares, and that of order 1 as a sum."""
    if ord not in (1, 2) or dtype is not None or not x.is_floating_point():
        return NotImplemented  # type: ignore
    axes = list(range(x.dim())) if dim is None else dim
    return x.abs().sum(axes, keepdim) if ord == 1 else (x * x).sum(axes, keepdim).sqrt()


def repeat_interleave(x: torch.Tensor, repeats: int, dim: int | None = None, *, output_size: int | None = None) -> torch.Tensor:
    """Each entry of an axis several times, as heads of keys are for a group of queries: a new axis, along which all are the same."""
    if dim is None:
        return NotImplemented  # type: ignore
    dim %= x.dim()
    sizes = [-1] * (x.dim() + 1)
    sizes[dim + 1] = repeats
    return x.unsqueeze(dim + 1).expand(sizes).flatten(dim, dim + 1)


def whole_length(x: torch.Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
                 ) -> torch.Tensor:
    """The same of linalg.norm, which is a matrix's of two axes where an order is given."""
    axes = x.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)
    return NotImplemented if ord is not None and axes != 1 else length(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


TABLE: dict[Any, Any] = {torch.ops.aten.einsum.default: einsum, torch.ops.aten.linalg_vector_norm.default: length,
                         torch.ops.aten.linalg_norm.default: whole_length,
                         torch.ops.aten.repeat_interleave.self_int: repeat_interleave}
