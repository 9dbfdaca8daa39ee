"""How modules are called and what they give: keywords alone, dictionaries, data classes, other values before the logits; and
heads that are computed for the last token alone."""
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import torch
from common import WIDTH, WORDS, Block, Model
from torch import nn

Pair = namedtuple("Pair", "hidden scores")


@dataclass
class Output:
    loss: Any
    logits: torch.Tensor


@dataclass
class Scores:
    hidden: torch.Tensor
    scores: torch.Tensor


class Gives(Model):
    def __init__(self, how):
        super().__init__(count=2)
        self.how = how

    def forward(self, input_ids):
        first = x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.how(first, x, self.head(x))


class Keywords(Model):
    def forward(self, *, input_ids, attention_mask=None):
        return super().forward(input_ids)


class KeywordsBehind(Model):
    def forward(self, input_ids, *, attention_mask=None, use_cache=False):
        return {"logits": super().forward(input_ids), "cache": None}


class WithPositions(Model):
    """Positions are an input."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(32, WIDTH)

    def forward(self, input_ids, *, position_ids):
        x = self.embed(input_ids) + self.rows(position_ids)
        return self.head(self.layers[0](x))


class Last(Model):
    def __init__(self, take):
        super().__init__()
        self.take = take

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.take(x))


ONE = r"takes some of the tokens.*head\(x\[:, -1\]\)"
RESULTS = {
    "a dictionary": lambda first, x, y: {"loss": None, "logits": y},
    "a data class": lambda first, x, y: Output(None, y),
    "logits of another name": lambda first, x, y: Scores(x, y),
    "a named tuple": lambda first, x, y: Pair(x, y),
    "nested": lambda first, x, y: {"outputs": (x, {"logits": y})},
    "the embeddings first": lambda first, x, y: (first, y),
    "the last hidden first": lambda first, x, y: (x, y),
    "the logits first": lambda first, x, y: (y, first),
    "a list": lambda first, x, y: [y],
    "three": lambda first, x, y: (first, x, y),
}
CASES = {name: ((lambda how: lambda: Gives(how))(how), None) for name, how in RESULTS.items()}
CASES["keywords alone"] = Keywords, None
CASES["keywords behind"] = KeywordsBehind, None
CASES["the embeddings alone"] = lambda: Gives(lambda first, x, y: first), "no layers were found"
CASES["the last by a list"] = lambda: Last(lambda x: x[:, [-1], :]), ONE
CASES["the last by a slice"] = lambda: Last(lambda x: x[:, -1:, :]), ONE
CASES["the last"] = lambda: Last(lambda x: x[:, -1, :]), ONE


def logits(made):
    """What the modules here give as logits: of as many entries as there are words."""
    if isinstance(made, torch.Tensor):
        return made if made.shape[-1] == WORDS else None
    if isinstance(made, (Output, Scores)):
        made = vars(made)
    parts = made.values() if isinstance(made, dict) else made if isinstance(made, (list, tuple)) else []
    return next((found for found in map(logits, parts) if found is not None), None)


def generated(choose):
    """Another module of the kind: values beside the logits, in a container."""
    names = choose([("hidden", "scores"), ("first", "y", "x"), ("logits", "aux"), ("aux", "logits", "more")])
    where = choose(range(len(names)))
    if "logits" in names:
        where = names.index("logits")
    container = choose(["dict", "tuple", "nested", "list"])

    def how(first, x, y):
        values = [y if i == where else (x if i % 2 else first) for i in range(len(names))]
        return {"dict": dict(zip(names, values)), "tuple": tuple(values), "list": values,
                "nested": {"all": dict(zip(names, values))}}[container]
    return f"{container} of {names}, logits {where}", Gives(how), None
