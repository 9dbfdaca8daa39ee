"""Rows that a mask chooses, as loops over experts choose the tokens of each, for torch.export: how many there are depends on
numbers, which a program cannot follow. Here all rows are computed, and what is written back of those that were not chosen is
zero. Each row is the same as before; a module for which this is not so (one that joins the chosen rows, or counts them) is
found by running it both ways."""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.overrides import TorchFunctionMode

SUMS = ("add", "__add__", "__radd__", "__iadd__", "add_")
PRODUCTS = ("mul", "__mul__", "__rmul__", "__imul__", "mul_", "multiply")
# What is zero stays zero.
KEEPS = ("unsqueeze", "squeeze", "view", "reshape", "to", "type", "type_as", "float", "half", "bfloat16", "double", "expand", "clone",
         "contiguous", "flatten")
SHAPES = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "clone", "contiguous")
COUNTS = ("any", "sum", "count_nonzero")
# Of a count of chosen rows, comparisons that ask whether there is one: what they are compared with, and what they then say.
FILLED = {"gt": (0, True), "ne": (0, True), "ge": (1, True), "eq": (0, False), "le": (0, False), "lt": (1, False)}


class Choice:
    """A mask with an axis of tokens, perhaps one of slots, of which a token has at most one that is true, and others of one entry."""

    def __init__(self, mask: torch.Tensor, kinds: list[str], equal: Any):
        self.kinds = kinds
        self.equal = equal  # the tensor and the number that are compared: others of the same tensor share no row
        mask = mask.bool()
        for axis in reversed([at for at, kind in enumerate(kinds) if kind == "one"]):
            mask = mask.squeeze(axis)
        left = [kind for kind in kinds if kind != "one"]
        self.slots = (mask if left[0] == "token" else mask.t()) if len(left) > 1 else None
        self.rows = mask if self.slots is None else self.slots.any(-1)

    def indices(self) -> tuple[torch.Tensor, ...]:
        count, device = self.rows.shape[0], self.rows.device
        made = {"token": torch.arange(count, device=device), "one": torch.zeros(count, dtype=torch.long, device=device)}
        if self.slots is not None:
            made["slot"] = self.slots.int().argmax(-1)
        return tuple(made[kind].clone() for kind in self.kinds)  # each a tensor of its own


class Counts(list[int]):
    """Numbers that a tensor would have."""

    def tolist(self) -> list[int]:
        return list(self)

    def cpu(self) -> Counts:
        return self

    numpy = cpu


class ChosenRows(TorchFunctionMode):
    """Computes all of `tokens` rows where some are chosen."""

    def __init__(self, tokens: Any):
        super().__init__()
        self.tokens = str(tokens)  # sizes are compared as texts, which asks nothing of a symbol
        self.known: dict[tuple[str, int], tuple[torch.Tensor, Any]] = {}  # the tensors are kept, for their ids
        self.used = False

    def learn(self, what: str, tensor: torch.Tensor, value: Any) -> torch.Tensor:
        self.known[what, id(tensor)] = (tensor, value)
        return tensor

    def asked(self, what: str, tensor: Any) -> Any:
        return self.known.get((what, id(tensor)), (None, None))[1] if isinstance(tensor, torch.Tensor) else None

    def choice_of(self, mask: Any) -> Choice | None:
        if not isinstance(mask, torch.Tensor) or mask.is_floating_point() or mask.dim() == 0:
            return None
        known = self.asked("choice", mask)
        if known is None:
            kinds = ["token" if str(size) == self.tokens else "one" if str(size) == "1" else "slot" for size in mask.shape]
            if kinds.count("token") != 1 or kinds.count("slot") > 1:
                return None
            known = Choice(mask, kinds, self.asked("equal", mask) if "slot" not in kinds else None)
            self.learn("choice", mask, known)
        return known  # type: ignore

    def indices_of(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
        choice = self.choice_of(mask)
        if choice is None:
            return None
        self.used = True
        return tuple(self.learn("index", index, (choice, kind)) for index, kind in zip(choice.indices(), choice.kinds))

    # Sequences of experts of which some have a token: all are taken.
    def counted(self, mask: torch.Tensor) -> torch.Tensor | None:
        if mask.dim() != 1 or not isinstance(mask.shape[0], int) or mask.is_floating_point():
            return None
        self.used = True
        numbers = torch.arange(mask.shape[0], device=mask.device).unsqueeze(-1)
        return self.learn("list", numbers, mask.shape[0])

    def listed(self, numbers: torch.Tensor) -> list[torch.Tensor]:
        return [self.learn("number", torch.tensor([e] if numbers.dim() > 1 else e), e) for e in range(self.asked("list", numbers))]

    def expanded(self, key: Any) -> list[Any] | None:
        """A key as a list with an entry for each axis that it names, masks as indices; None where no choice is in it."""
        parts: list[Any] = []
        chosen = False
        for part in key if isinstance(key, tuple) else (key,):
            index = self.asked("index", part)
            if isinstance(part, torch.Tensor) and part.dtype == torch.bool and self.choice_of(part) is not None:
                choice = self.choice_of(part)
                assert choice is not None
                if choice.slots is not None:
                    return None
                self.used = True
                parts += [(choice, kind) for kind in choice.kinds]
                chosen = True
            elif index is not None:
                parts.append(index)
                chosen = True
            elif part is None or isinstance(part, (int, slice, torch.SymInt)):
                parts.append(part)
            else:
                return None
        return parts if chosen else None

    def taken(self, x: torch.Tensor, parts: list[Any]) -> torch.Tensor:
        """x[parts], of all rows."""
        plain: list[Any] = [{"token": slice(None), "slot": slice(None), "one": 0}[part[1]] if isinstance(part, tuple) else part
                            for part in parts]
        choice = next(part[0] for part in parts if isinstance(part, tuple))
        z = x if all(basic == slice(None) for basic in plain) else x[tuple(plain)]
        place = {}
        at = 0
        for part, basic in zip(parts, plain):
            if isinstance(part, tuple) and part[1] != "one":
                place[part[1]] = at
            at += not isinstance(basic, (int, torch.SymInt))
        if "slot" not in place:
            made = z.clone()
            if len(parts) == len([part for part in parts if isinstance(part, tuple)]):
                self.learn("rows of", made, (choice, x))
            return made
        if place["slot"] != place["token"] + 1:
            z = z.movedim((place["token"], place["slot"]), (0, 1))
            place = {"token": 0, "slot": 1}
        flags = choice.slots.to(z.dtype)
        flags = flags.reshape(*[1] * place["token"], *flags.shape, *[1] * (z.dim() - place["slot"] - 1))
        return self.learn("zero", (z * flags).sum(place["slot"]), choice)

    def masked(self, added: torch.Tensor, choice: Choice, shape: Sequence[Any]) -> torch.Tensor:
        """`added`, zero where a row was not chosen, in another shape of as many rows."""
        if self.asked("zero", added) is not choice:
            added = added * choice.rows.to(added.dtype).reshape(-1, *[1] * (added.dim() - 1))
        return added if str(tuple(added.shape)) == str(tuple(shape)) else added.reshape(shape)

    def written(self, x: torch.Tensor, parts: list[Any], value: Any) -> bool:
        """x[parts] = value; whether that is known."""
        if not all(isinstance(part, tuple) and part[1] != "slot" for part in parts):
            return False
        choice = parts[0][0]
        total = self.asked("sum", value)
        if total is not None and total[0] is choice and total[1] is x:
            x.add_(self.masked(total[2], choice, x.shape))
            return True
        before = self.asked("zeros", x)
        if before is not None and choice.equal is not None and isinstance(value, torch.Tensor) and value.dim() and \
                all(each[0] is choice.equal[0] and each[1] != choice.equal[1] for each in before):
            x.add_(self.masked(value, choice, x.shape))
            before.append(choice.equal)
            return True
        rows = choice.rows.reshape(*[-1 if part[1] == "token" else 1 for part in parts], *[1] * (x.dim() - len(parts)))
        value = value.reshape(x.shape) if isinstance(value, torch.Tensor) and value.dim() else value
        x.copy_(torch.where(rows, value, x))
        return True

    def __torch_function__(self, function: Callable[..., Any], kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        first = args[0] if args else None
        if isinstance(first, torch.Tensor):
            handler = getattr(self, f"of_{name.strip('_')}", None)
            if name.startswith("__i") or (name.endswith("_") and not name.endswith("__")):
                self.known.pop(("zeros", id(first)), None)
            found = handler(name, *args, **kwargs) if handler is not None else None
            if found is not None:
                return found[0]
        args = tuple(self.asked("number", each) if self.asked("number", each) is not None and name == "__getitem__" else each
                     for each in args)
        result = function(*args, **kwargs)
        if isinstance(result, torch.Tensor) and args:
            self.follow(name, args, result)
        return result

    def follow(self, name: str, args: Any, result: torch.Tensor) -> None:
        """Learns what `result` is of `args`."""
        zeros = [choice for choice in (self.asked("zero", each) for each in args) if choice is not None]
        if zeros and (name in PRODUCTS or name in KEEPS or (name == "__getitem__" and args[1] is not None)):
            self.learn("zero", result, zeros[0])
        if name in ("zeros", "zeros_like", "new_zeros"):
            self.learn("zeros", result, [])
        if name in ("eq", "__eq__") and len(args) > 1 and isinstance(args[1], int):
            self.learn("equal", result, (args[0], args[1]))
        if name in SHAPES and self.asked("equal", args[0]) is not None:
            self.learn("equal", result, self.asked("equal", args[0]))
        index = self.asked("index", args[0])
        if index is not None and name in ("to", "long", "squeeze", "flatten", "view", "reshape", "contiguous", "clone"):
            self.learn("index", result, index)
        if name in SUMS and len(args) > 1:
            for base, added in ((args[0], args[1]), (args[1], args[0])):
                rows = self.asked("rows of", base)
                if rows is not None and isinstance(added, torch.Tensor):
                    self.learn("sum", result, (*rows, added))
        if result.dim() == 0 and name in COUNTS and not args[0].is_floating_point():
            self.learn("filled", result, True)
        asked = FILLED.get(name.strip("_"))
        if asked is not None and result.dim() == 0 and self.asked("filled", args[0]) and len(args) > 1 and args[1] is asked[0]:
            self.learn("filled", result, asked[1])

    # Handlers by the name of a function: a list of its result, or None where it is not one of these.
    def of_where(self, name: str, mask: torch.Tensor, *others: Any, **more: Any) -> Any:
        indices = None if others or more else self.indices_of(mask)
        return None if indices is None else [indices]

    def of_nonzero(self, name: str, mask: torch.Tensor, *, as_tuple: bool = False) -> Any:
        if as_tuple:
            return self.of_where(name, mask)
        indices = self.indices_of(mask) if mask.dim() == 1 else None
        if indices is not None:
            return [self.learn("index", indices[0].unsqueeze(-1), self.asked("index", indices[0]))]
        numbers = self.counted(mask)
        return None if numbers is None else [numbers]

    def of_iter(self, name: str, x: torch.Tensor) -> Any:
        return None if self.asked("list", x) is None else [iter(self.listed(x))]

    def of_unbind(self, name: str, x: torch.Tensor, *more: Any) -> Any:
        return None if self.asked("list", x) is None else [tuple(self.listed(x))]

    def of_squeeze(self, name: str, x: torch.Tensor, *more: Any) -> Any:
        count, number = self.asked("list", x), self.asked("number", x)
        if count is not None:
            return [self.learn("list", torch.arange(count, device=x.device), count)]
        return None if number is None else [self.learn("number", torch.tensor(number), number)]

    def of_index(self, name: str, x: torch.Tensor, *more: Any) -> Any:
        number = self.asked("number", x)
        return None if number is None or more else [number]

    of_int = of_item = of_index

    def of_bincount(self, name: str, x: torch.Tensor, weights: Any = None, minlength: int = 0) -> Any:
        """How many tokens each expert has: more than none, which is all that a loop over them asks."""
        if weights is not None or minlength == 0:
            return None
        self.used = True
        return [Counts([1] * minlength)]

    def of_tolist(self, name: str, x: torch.Tensor) -> Any:
        count = self.asked("list", x)
        return None if count is None else [[[e] for e in range(count)] if x.dim() > 1 else list(range(count))]

    def of_bool(self, name: str, x: torch.Tensor) -> Any:
        filled = self.asked("filled", x)
        if filled is not None:
            self.used = True
        return None if filled is None or name != "__bool__" else [filled]

    def of_eq(self, name: str, x: torch.Tensor, other: Any) -> Any:
        number = self.asked("number", x)
        return [number == other] if number is not None and isinstance(other, int) else None

    def of_getitem(self, name: str, x: torch.Tensor, key: Any) -> Any:
        number = self.asked("number", x)
        if number is not None and key == 0:
            return [self.learn("number", torch.tensor(number), number)]
        expert = self.asked("number", key)
        if expert is not None:
            return [x[expert].unsqueeze(0) if key.dim() else x[expert]]
        index = self.asked("index", x)
        if index is not None and key == (slice(None), 0) and x.dim() == 2:
            return [self.learn("index", x[:, 0], index)]
        parts = self.expanded(key)
        return None if parts is None else [self.taken(x, parts)]

    def of_setitem(self, name: str, x: torch.Tensor, key: Any, value: Any) -> Any:
        parts = self.expanded(key)
        return [None] if parts is not None and self.written(x, parts, value) else None

    def of_iadd(self, name: str, x: torch.Tensor, other: Any) -> Any:
        if self.asked("rows of", x) is None or not isinstance(other, torch.Tensor):
            return None
        made = x + other
        return [self.learn("sum", made, (*self.asked("rows of", x), other))]

    def of_index_select(self, name: str, x: torch.Tensor, dim: int, index: torch.Tensor) -> Any:
        known = self.asked("index", index)
        return [x.clone()] if known is not None and known[1] == "token" and str(x.shape[dim]) == self.tokens else None

    def of_index_add(self, name: str, x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: Any = 1) -> Any:
        known = self.asked("index", index)
        if known is None or known[1] != "token" or dim != 0 or alpha != 1:
            return None
        added = self.masked(source, known[0], x.shape)
        return [x.add_(added) if name.endswith("_") else x + added]

    def of_index_put(self, name: str, x: torch.Tensor, indices: Sequence[torch.Tensor], values: torch.Tensor,
                     accumulate: bool = False) -> Any:
        known = [self.asked("index", index) for index in indices]
        if len(known) != 1 or known[0] is None or known[0][1] != "token" or not accumulate:
            return None
        added = self.masked(values, known[0][0], x.shape)
        return [x.add_(added) if name.endswith("_") else x + added]


@contextlib.contextmanager
def all_rows(module: torch.nn.Module) -> Iterator[list[ChosenRows]]:
    """Inside the `with` block `module` computes all rows. The list gets the mode of each run."""
    own = vars(module).get("forward")
    forward: Callable[..., Any] = module.forward
    runs: list[ChosenRows] = []

    @functools.wraps(forward)
    def computed(*inputs: torch.Tensor, **named: Any) -> Any:
        given = next(each for each in (*inputs, *named.values()) if isinstance(each, torch.Tensor))
        runs.append(ChosenRows(given.shape[1]))
        with runs[-1]:
            return forward(*inputs, **named)
    module.forward = computed
    try:
        yield runs
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def chooses(program: torch.export.ExportedProgram) -> bool:
    """Whether a size of it depends on numbers."""
    values = (node.meta.get("val") for node in program.graph.nodes if node.op == "call_function")
    return any(isinstance(value, torch.Tensor) and free_unbacked_symbols(value) for value in values)


def various(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Inputs of the same shapes, in which tokens differ."""
    words = min((part.num_embeddings for part in module.modules() if isinstance(part, torch.nn.Embedding)), default=2)
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(tensor.shape, generator=draw).to(tensor.dtype) if tensor.is_floating_point()
            else torch.randint(words, tensor.shape, generator=draw) for tensor in inputs]


def is_alike(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether some rows are chosen, and `module` computes the same where all are computed."""
    if any(tensor.is_meta for tensor in (*module.parameters(), *module.buffers())):
        return False
    given = various(module, inputs)
    try:
        with torch.no_grad():
            state = [tensor.clone() for tensor in module.buffers()]
            wanted = torch.utils._pytree.tree_leaves(module(*given))
            with all_rows(module) as runs:
                found = torch.utils._pytree.tree_leaves(module(*given))
            for buffer, before in zip(module.buffers(), state):
                buffer.copy_(before)
    except Exception:  # the first error, of the module as it is, says more
        return False
    return any(run.used for run in runs) and len(wanted) == len(found) and all(
        not isinstance(one, torch.Tensor) or torch.allclose(one.double(), two.double(), rtol=1e-3, atol=1e-5)
        for one, two in zip(wanted, found))
