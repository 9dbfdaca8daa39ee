"""docs/judged-families.md: its rows, and the form of the figures in them (goldens.py)."""

import fcntl
import re
from dataclasses import dataclass, field
from pathlib import Path

TITLE = "# Judged families"
INTRO = """
The accuracy of every family, and its limits. `judge.goldens` runs each checkpoint under `test/goldens` that has weights
(transformers' own classes made them: tiny, random, of odd widths, with norms and biases that are neither 0
nor 1), fails where a figure is beyond the limit at its column's foot, and wrote this page
(`CTXC_WRITE_DOCS=1 ctest -R judge.goldens`). A figure is the largest difference of a logit. All arithmetic is
float32, by compiled kernels in ctxc and by eager attention in transformers. Last digits differ between processors.

| column | |
|---|---|
| plan | `default`, and that of `--objective fewest-parameters` where it differs ([plans](plans.md)) |
| patched | the parameters patched in each layer: F; G |
| full run | ctxc's run with the context, against transformers' own; three tokens, one for an encoder |
| same process | ctxc's patched run without the context, against its own full run (`ctxc verify`); the same number of tokens |
| predicted | the error of a layer's output in another program that ctxc predicts for its patch ([replay](updates.md)) |
| other program | the patch file, added to the weights in transformers, which runs the last token without the context, against its own full run; the worst case with no, contiguous and scattered kept tokens (none for an encoder), and for the default plan with both updates where a scale behind a norm is patched, and both splits where experts are |
| control | the same without the patch: the smallest figure |
| bf16, f16 | the same weights rounded to that type: full run / other program, transformers in float32 on the rounded weights |
"""
COLUMNS = ["family", "plan", "patched", "full run", "same process", "predicted", "other program",
           "control", "bf16", "f16"]
FULL, REPLAY, FACTOR, CONTROL = 1e-4, 1e-3, 100, 1.0
# The largest values allowed; in the column of a storage type, one for each figure of the pair.
LIMITS = {"full run": [FULL], "same process": [FULL], "other program": [REPLAY],
          "bf16": [FULL, REPLAY], "f16": [FULL, REPLAY]}


def figure(x):
    """A figure such as 2.1e-6; large numbers have no exponent."""
    text = f"{x:.3g}" if x == 0 or 0.1 <= x < 999 else f"{x:.1e}"
    return re.sub(r"e([-+])0*(\d)", lambda m: f"e{m[1].replace('+', '')}{m[2]}", text)


@dataclass
class Row:
    """A row of the table: the text of every column."""
    family: str
    plan: str
    cells: dict = field(default_factory=dict)

    @property
    def key(self):
        return self.family, self.plan

    def line(self):
        cells = {"family": self.family, "plan": self.plan} | self.cells
        return "| " + " | ".join(cells[column] for column in COLUMNS) + " |"

    def figures(self, column):
        """The numbers of a cell; none where it gives a reason instead."""
        return [float(part) for part in re.findall(r"(?<!\w)\d[\d.]*(?:e-?\d+)?(?!\w)",
                                                   self.cells[column])]


def row_of(line):
    cells = dict(zip(COLUMNS, (cell.strip() for cell in line.strip().strip("|").split(" | "))))
    return Row(cells.pop("family"), cells.pop("plan"), cells)


def read_rows(page):
    """The rows of the page by their keys, without the row of limits."""
    lines = page.read_text().splitlines() if page.exists() else []
    start = next((i for i, line in enumerate(lines) if line.startswith("| family")), len(lines))
    rows = [row_of(line) for line in lines[start + 2:] if line.startswith("| ")]
    return {row.key: row for row in rows if not row.family.startswith("**")}


def worst(rows, column):
    """The largest of a column's figures, at each place in a cell; for the control the smallest."""
    every = [row.figures(column) for row in rows]
    places = max(map(len, every), default=0)
    choose = min if column == "control" else max
    return [choose(figures[i] for figures in every if len(figures) > i) for i in range(places)]


def footer(rows):
    """The worst figures, and the limits."""
    limits = Row("**limit**", "", {column: " / ".join(map(figure, LIMITS.get(column, [])))
                                   for column in COLUMNS[2:]})
    limits.cells["control"] = f"> {FACTOR} × other program, and > {figure(CONTROL)}"
    worsts = Row("**worst**", "", {column: " / ".join(map(figure, worst(rows, column)))
                                   for column in COLUMNS[3:]} | {"patched": ""})
    return [worsts, limits]


def text_of(rows):
    rows = [rows[key] for key in sorted(rows)]
    table = [Row("", "").line() if not rows else row.line() for row in rows + footer(rows)]
    head = ["| " + " | ".join(COLUMNS) + " |", "|---|---|---|" + "---:|" * (len(COLUMNS) - 3)]
    return "\n".join([TITLE, INTRO, *head, *table]) + "\n"


def write(page, rows, families):
    """Replaces the rows of the families of `rows`, and removes rows of families that no longer exist. Several
    processes may call it at the same time."""
    judged = {row.family for row in rows}
    with open(page.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = {key: row for key, row in read_rows(page).items()
                if row.family in families and row.family not in judged}
        page.write_text(text_of(kept | {row.key: row for row in rows}))
    Path(lock.name).unlink(missing_ok=True)


def faults(page, rows, families):
    """The errors of the page: missing rows, plans that have changed, figures beyond their limits."""
    found = []
    written = read_rows(page)
    judged = {row.family for row in rows}
    for key in sorted(key for key in written if key[0] in judged or key[0] not in families):
        if key not in {row.key for row in rows}:
            found.append(f"has a row {' '.join(key)}, of which there is nothing to judge")
    for row in rows:
        there = written.get(row.key)
        if not there:
            found.append(f"has no row {' '.join(row.key)}")
        elif there.cells["patched"] != row.cells["patched"]:
            found.append(f"{' '.join(row.key)}: patched is {there.cells['patched']}, expected "
                         f"{row.cells['patched']}")
        else:
            found += [f"{' '.join(row.key)}: {problem}" for problem in beyond_limits(there)]
    if page.exists() and page.read_text() != text_of(written):
        found.append("is not what its rows make it")
    return found


def beyond_limits(row):
    """The figures of a row that are beyond their limits."""
    found = []
    for column, limits in LIMITS.items():
        figures = row.figures(column)
        if len(figures) not in (0, len(limits)) or (not figures and column not in ("bf16", "f16")):
            found.append(f"{column}: found {row.cells[column]!r}, expected {len(limits)} figures")
        for value, limit in zip(figures, limits):
            if not value <= limit:
                found.append(f"{column}: {figure(value)}, expected at most {figure(limit)}")
    return found
