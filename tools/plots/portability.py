"""Patches that are run in other arithmetic than they were made in: measured and predicted errors."""

import math

from plots import style
from plots.data import Figure, Table, finite, matched, median, numbers, percent, short, worst
from plots.style import plt

NAMES = {"same": "the kernels that made it", "threads": "other number of threads",
         "materialised": "added to the weights", "reference": "float64",
         "transformers": "transformers"}


def scatter(data, dtype, member, label, diagonal):
    """A column for each replay."""
    replays = [r for r in NAMES if data.select(dtype=dtype, replay=r)]
    figure, grid = plt.subplots(1, len(replays), figsize=(1 + 2.7 * len(replays), 3.7),
                                squeeze=False, sharey=True, layout="constrained")
    for column, replay in enumerate(replays):
        axes = grid[0][column]
        for update in data.updates:
            records = data.select(dtype=dtype, replay=replay, update=update)
            ys = style.above_floor(numbers(records, "linf"))
            xs = numbers(records, member)
            for match in (True, False):  # a marker has a red edge where the token differs
                some = [i for i, r in enumerate(records) if r["match"] == match]
                axes.plot([xs[i] for i in some], [ys[i] for i in some], linestyle="none",
                          marker=style.marker(update), color=style.colour(update), alpha=0.8,
                          markersize=6, markeredgewidth=0 if match else 1.2,
                          markeredgecolor=style.RED)
        style.log_axis(axes, "x")
        style.log_axis(axes)
        if diagonal:
            known = finite(numbers(data.select(dtype=dtype), member))
            span = [min(known) / 2, max(known) * 2]
            axes.plot(span, span, color=style.QUIET, linewidth=0.9, linestyle=(0, (2, 2)),
                      zorder=0)
        axes.set_title(NAMES[replay])
        axes.set_xlabel(label)
    grid[0][0].set_ylabel("measured: L∞ of logits")
    wrong = plt.Line2D([], [], linestyle="none", marker="o", markersize=6, color="none",
                       markeredgecolor=style.RED, markeredgewidth=1.2, label="another token")
    style.update_legend(figure, data.updates, control=False, mismatch=False, more=[wrong])
    return figure


def figures(data):
    for dtype in data.settings["dtypes"]:
        name = style.DTYPES.get(dtype, dtype)
        suffix = f"-{dtype}" if len(data.settings["dtypes"]) > 1 else ""
        yield Figure(f"predicted{suffix}",
                     scatter(data, dtype, "predicted", "predicted: worst layer", True),
                     f"The error in another program, measured and predicted ({name})",
                     "A point a token. Predicted when the patch is made: the error of a layer's "
                     "output in another program, in units of that output, of the worst layer; "
                     "measured: the largest difference of a logit from the same arithmetic's own "
                     "run with context. The two have different units; the dotted line, where they "
                     "are the same number, is a guide for the eye. A red edge: another token.")
        yield Figure(f"norm{suffix}",
                     scatter(data, dtype, "vectorNorm", "norm of the vectors", False),
                     f"The error in another program, and the norm of the vectors ({name})",
                     "The same points over the norm of all layers' vector patches.")


def correlation(xs, ys):
    """Pearson's correlation of the logarithms."""
    pairs = [(math.log(x), math.log(max(y, style.FLOOR))) for x, y in zip(xs, ys)
             if math.isfinite(x) and math.isfinite(y) and x > 0]
    if len(pairs) < 3:
        return math.nan
    means = [sum(p[i] for p in pairs) / len(pairs) for i in (0, 1)]
    parts = [[p[i] - means[i] for p in pairs] for i in (0, 1)]
    size = math.sqrt(sum(a * a for a in parts[0]) * sum(b * b for b in parts[1]))
    return sum(a * b for a, b in zip(*parts)) / size if size else math.nan


def tables(data):
    result = Table("Measured and predicted", ["weights", "replayed in", "update",
                                              "tokens that match", "worst L∞", "median L∞",
                                              "predicted, worst", "norm of vectors, median"])
    foretold = Table("How well the prediction foretells the error", [
        "weights", "replayed in", "correlation with the prediction", "with the norm of vectors"])
    for dtype in data.settings["dtypes"]:
        for replay in NAMES:
            group = data.select(dtype=dtype, replay=replay)
            if not group:
                continue
            for update in data.updates:
                records = data.select(dtype=dtype, replay=replay, update=update)
                result.rows.append([
                    style.DTYPES.get(dtype, dtype), NAMES[replay], update,
                    percent(matched(records)), short(worst(numbers(records, "linf"))),
                    short(median(numbers(records, "linf"))),
                    short(worst(numbers(records, "predicted"))),
                    short(median(numbers(records, "vectorNorm")))])
            errors = numbers(group, "linf")
            foretold.rows.append([style.DTYPES.get(dtype, dtype), NAMES[replay],
                                  *[f"{correlation(numbers(group, m), errors):.2f}"
                                    for m in ("predicted", "vectorNorm")]])
    yield result
    yield foretold
