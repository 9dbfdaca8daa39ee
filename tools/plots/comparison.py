"""Figures that `generation` and `scaling` share: distributions over all tokens."""

from plots import style
from plots.data import Figure, Table, matched, median, numbers, percent, short, worst
from plots.style import plt

MAIN = [("linf", "L∞ of logits"), ("totalVariation", "total variation")]
FURTHER = [("hellinger", "Hellinger distance"), ("rankDistance", "1 − rank correlation"),
           ("top1Size", "|top-1 difference|")]
NORMS = [("matrixNorm", "matrices, Frobenius"), ("vectorNorm", "vectors, L2")]


def with_distances(data):
    """Adds measures of disagreement to every record; they are small where the two runs agree."""
    for record in data.records:
        if "rankCorrelation" in record:
            record["rankDistance"] = 1 - record["rankCorrelation"]
            record["top1Size"] = abs(record["top1Difference"])
    return data


def groups_of(data, way, records, control):
    """(name, colour, records) for each update and for the control."""
    groups = [(update, style.colour(update), [r for r in records if r["update"] == update])
              for update in data.updates]
    if control:
        groups.append(("no patch", style.COLOURS["control"], data.control(way[0])))
    return [group for group in groups if group[2]]


def distributions(data, members, control, match):
    """A grid: a column for each type and way, a row for each member, token match below."""
    ways = data.ways()
    rows = len(members) + (1 if match else 0)
    figure, grid = plt.subplots(
        rows, len(ways), figsize=(1.4 + 3.3 * len(ways), 0.9 + 2.1 * rows), squeeze=False,
        sharey="row", layout="constrained",
        height_ratios=[1] * len(members) + ([0.6] if match else []))
    for column, (way, records) in enumerate(ways):
        groups = groups_of(data, way, records, control)
        names = [group[0] for group in groups]
        for row, (member, label) in enumerate(members):
            axes = grid[row][column]
            style.boxes(axes, [numbers(group[2], member) for group in groups],
                        [group[1] for group in groups])
            style.name_boxes(axes, names, shown=row == rows - 1)
            if column == 0:
                axes.set_ylabel(label)
        grid[0][column].set_title(style.way_name(way))
        if match:
            bars(grid[-1][column], groups, column == 0)
    return figure


def bars(axes, groups, first):
    for place, (_, shade, records) in enumerate(groups):
        share = matched(records)
        axes.bar(place, 100 * share, color=shade, width=0.66)
        axes.text(place, 100 * share + 3, percent(share).replace(" %", ""), ha="center",
                  va="bottom", fontsize=8.5)
    axes.set_ylim(0, 125)
    axes.set_yticks([0, 50, 100])
    axes.grid(axis="x", visible=False)
    style.name_boxes(axes, [group[0] for group in groups])
    if first:
        axes.set_ylabel("tokens that\nmatch, %")


def summary(data):
    return Figure(
        "summary", distributions(data, MAIN, control=True, match=True),
        "How close the patched run comes to the run with context",
        "Distance of the patched run's next-token distribution from that of the run with context, "
        "and how many tokens are the same. Boxes: quartiles and median; whiskers: to the extremes. "
        "Exact zeros stand at 10⁻⁹.")


def further(data):
    return Figure(
        "metrics", distributions(data, FURTHER, control=True, match=False),
        "The same distance by further metrics", "Of the Hellinger distance, of the order of all tokens, and of "
        "the probability of the token that the run with context predicts.")


def norms(data):
    return Figure(
        "norms", distributions(data, NORMS, control=False, match=False), "How large the patches are",
        "Of all layers' patches together, over all tokens of all prompts.")


def table(data):
    result = Table("Summary", ["weights, patch", "update", "tokens that match", "worst L∞",
                               "median L∞", "worst total variation", "norm of matrices, median",
                               "norm of vectors, median"])
    for way, records in data.ways():
        for name, _, group in groups_of(data, way, records, control=True):
            norm = [short(median(numbers(group, m))) if m in group[0] else "—"
                    for m, _ in NORMS]
            result.rows.append([
                style.way_name(way), name,
                f"{sum(r['match'] for r in group)} of {len(group)} ({percent(matched(group))})",
                short(worst(numbers(group, "linf"))), short(median(numbers(group, "linf"))),
                short(worst(numbers(group, "totalVariation"))), *norm])
    return result
