"""Patches from every layer on: fidelity and norms, as the paper's ablation of the starting layer."""

from plots import style
from plots.data import Figure, Table, finite, matched, median, number, numbers, percent, short, worst
from plots.style import plt

NORMS = [("matrixNorm", "norm of matrices"), ("vectorNorm", "norm of vectors")]


def dtypes(data):
    """(dtype, name) for each type that was run."""
    return [(dtype, style.way_name((dtype, data.select(dtype=dtype)[0]["materialized"])))
            for dtype in data.settings["dtypes"]]


def curve(axes, data, dtype, update, member):
    """Median and band over the tokens; a red X where a token differs."""
    layers = range(data.settings["layers"])
    low, middle, high, missed = [], [], [], []
    for layer in layers:
        records = data.select(dtype=dtype, update=update, startLayer=layer)
        values = finite(style.above_floor(numbers(records, member))) or [float("nan")]
        low.append(min(values))
        middle.append(median(values))
        high.append(max(values))
        missed += [(layer, max(number(r[member]), style.FLOOR)) for r in records if not r["match"]]
    axes.fill_between(layers, low, high, color=style.colour(update), alpha=0.13, linewidth=0)
    axes.plot(layers, middle, color=style.colour(update), marker=style.marker(update),
              markersize=4, linewidth=1.3)
    return missed


def fidelity(data):
    columns = dtypes(data)
    figure, grid = plt.subplots(3, len(columns), figsize=(1 + 4.6 * len(columns), 7.6),
                                squeeze=False, sharey="row", layout="constrained",
                                height_ratios=[1, 1, 0.6])
    layers = data.settings["layers"]
    for column, (dtype, name) in enumerate(columns):
        for row, (member, label) in enumerate([("linf", "L∞ of logits"),
                                               ("totalVariation", "total variation")]):
            axes = grid[row][column]
            style.log_axis(axes)
            for update in data.updates:
                missed = curve(axes, data, dtype, update, member)
                style.cross_out(axes, [m[0] for m in missed], [m[1] for m in missed])
            control = numbers(data.control(dtype), member)
            axes.axhline(median(control), color=style.COLOURS["control"], linestyle=(0, (4, 3)),
                         linewidth=1.2)
            style.layer_axis(axes, layers, "")
            if column == 0:
                axes.set_ylabel(label)
        axes = grid[2][column]
        for place, update in enumerate(data.updates):
            shares = [100 * matched(data.select(dtype=dtype, update=update, startLayer=layer))
                      for layer in range(layers)]
            width = 0.8 / len(data.updates)
            axes.bar([layer + width * (place - (len(data.updates) - 1) / 2)
                      for layer in range(layers)], shares, width=width, color=style.colour(update))
        axes.set_ylim(0, 108)
        style.layer_axis(axes, layers, "first patched layer")
        if column == 0:
            axes.set_ylabel("tokens that\nmatch, %")
        grid[0][column].set_title(name)
    style.update_legend(figure, data.updates)
    return figure


def norms(data):
    columns = dtypes(data)
    figure, grid = plt.subplots(2, len(columns), figsize=(1 + 4.6 * len(columns), 5.6),
                                squeeze=False, sharey="row", layout="constrained")
    for column, (dtype, name) in enumerate(columns):
        for row, (member, label) in enumerate(NORMS):
            axes = grid[row][column]
            style.log_axis(axes)
            for update in data.updates:
                curve(axes, data, dtype, update, member)
            style.layer_axis(axes, data.settings["layers"], "first patched layer" if row else "")
            if column == 0:
                axes.set_ylabel(label)
        grid[0][column].set_title(name)
    style.update_legend(figure, data.updates, control=False, mismatch=False)
    return figure


def figures(data):
    yield Figure("fidelity", fidelity(data), "How close the patched run comes, by the first layer that is patched",
                 "Against the first layer that is patched: median over all tokens of all prompts, "
                 "the band from best to worst. Dashed: the median without any patch. A red X: a "
                 "token is another than that of the run with context.")
    yield Figure("norms", norms(data), "How large the patches are, by the first layer that is patched",
                 "Of all layers' patches together, median and range over the tokens.")


def tables(data):
    last = data.settings["layers"] - 1
    result = Table("From the first, a middle and the last layer on", [
        "weights", "update", "first patched layer", "tokens that match", "worst L∞",
        "norm of matrices, median", "norm of vectors, median"])
    for dtype, name in dtypes(data):
        for update in data.updates:
            for layer in dict.fromkeys([0, last // 2, last]):
                records = data.select(dtype=dtype, update=update, startLayer=layer)
                result.rows.append([name, update, str(layer), percent(matched(records)),
                                    short(worst(numbers(records, "linf"))),
                                    *[short(median(numbers(records, m))) for m, _ in NORMS]])
    yield result
