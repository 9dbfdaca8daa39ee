"""An experiment's records, and the figures and tables drawn from them."""

import json
import math
import statistics
from dataclasses import dataclass, field


class BadInput(Exception):
    """An error that the user must correct; its text is the whole message."""


@dataclass
class Figure:
    name: str      # name of the files, without suffix
    figure: object # a matplotlib figure
    title: str
    caption: str


@dataclass
class Table:
    title: str
    columns: list
    rows: list = field(default_factory=list)  # of strings


class Data:
    """The records of DIR/records.jsonl. Numbers that were not finite are NaN."""

    def __init__(self, directory):
        path = directory / "records.jsonl"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}; 'ctxc experiment' writes it") from None
        parsed = []
        for number, line in enumerate(lines, 1):
            try:
                parsed.append(json.loads(line))
            except ValueError as error:
                if number == len(lines):
                    break  # the last record is incomplete: the run was interrupted
                raise BadInput(f"{path}: line {number}: {error}") from None
        if not parsed or parsed[0].get("format") != "ctxc-experiment":
            raise BadInput(f"{path}: is not a file of an experiment's records")
        self.head, self.settings = parsed[0], parsed[0]["settings"]
        self.records = [r for r in parsed[1:] if "key" in r]
        self.runs = [r for r in parsed[1:] if "seconds" in r]
        if not self.records:
            raise BadInput(f"{path}: has no records yet")

    def select(self, **values):
        return [r for r in self.records if all(r.get(k) == v for k, v in values.items())]

    def values(self, name):
        """The different values of a member, in the order of the records."""
        return list(dict.fromkeys(r[name] for r in self.records if name in r))

    @property
    def updates(self):
        return self.values("update")

    def ways(self):
        """(dtype, materialised), and their records, of runs that may be materialised."""
        pairs = list(dict.fromkeys((r["dtype"], r["materialized"]) for r in self.records
                                   if r.get("run") == "patched"))
        return [(pair, self.select(dtype=pair[0], materialized=pair[1], run="patched"))
                for pair in pairs]

    def control(self, dtype):
        return self.select(dtype=dtype, run="control")


def number(value):
    return math.nan if value is None else value


def numbers(records, name):
    return [number(r[name]) for r in records]


def finite(values):
    return [v for v in values if math.isfinite(v)]


def median(values):
    known = finite(values)
    return statistics.median(known) if known else math.nan


def worst(values):
    """The largest value; NaN, the worst of all, if any value is not finite."""
    return math.nan if any(not math.isfinite(v) for v in values) else max(values)


def short(value):
    """The value with two digits, in as few characters as possible."""
    if not math.isfinite(value):
        return "not finite"
    if value == 0:
        return "0"
    text = (f"{value:.2g}" if 0.001 <= abs(value) < 100 else
            f"{value:.0f}" if 100 <= abs(value) < 1e5 else f"{value:.1e}")
    return text.replace("e-0", "e-").replace("e+0", "e")


def percent(share):
    return f"{100 * share:.0f} %" if share in (0, 1) or 0.01 < share < 0.99 else f"{100 * share:.1f} %"


def matched(records):
    return sum(r["match"] for r in records) / len(records)
