"""How large patches are: by layer, by token, absolute and relative; and how spread out."""

import numpy
from matplotlib.colors import LogNorm
from plots import style
from plots.data import Figure, Table, median, number, numbers, short, worst
from plots.style import plt

KINDS = [("matrix", "norm of matrices"), ("vector", "norm of vectors")]
SHARES = [("shareU", "u: outputs of matrices"), ("shareV", "v: inputs of matrices"),
          ("shareVector", "vectors")]


def by_layer(records, member):
    """(tokens × layers); NaN where a layer has none of these."""
    return numpy.array([[number(v) for v in r["layers"][member]] for r in records], float)


def has(data, member):
    return any(v for r in data.records for v in r["layers"][member])


def curve(axes, values, update):
    """The median over the tokens, and the largest value as a dotted line."""
    if numpy.isnan(values).all():
        return
    layers = range(values.shape[1])
    axes.plot(layers, numpy.nanmax(values, 0), color=style.colour(update), linewidth=1,
              linestyle=(0, (1, 2)))
    axes.plot(layers, numpy.nanmedian(values, 0), color=style.colour(update),
              marker=style.marker(update), markersize=4, linewidth=1.3)


def layers_figure(data, dtype):
    kinds = [kind for kind in KINDS if has(data, kind[0])]
    figure, grid = plt.subplots(2, len(kinds), figsize=(1 + 4.6 * len(kinds), 5.8), squeeze=False,
                                layout="constrained")
    for column, (kind, title) in enumerate(kinds):
        for row, (suffix, label) in enumerate([
                ("", ""), ("Relative", ",\nrelative to the parameters")]):
            axes = grid[row][column]
            for update in data.updates:
                values = by_layer(data.select(dtype=dtype, update=update), kind + suffix)
                curve(axes, numpy.where(values > 0, values, numpy.nan), update)
            style.log_axis(axes)
            style.layer_axis(axes, data.settings["layers"])
            axes.set_ylabel(title + label)
            if suffix:
                axes.axhline(1, color=style.INK, linewidth=0.8, linestyle=(0, (4, 3)))
    style.update_legend(figure, data.updates, control=False, mismatch=False)
    return figure


def tokens_figure(data, dtype, update, prompt):
    """Layers × tokens of one prompt."""
    records = data.select(dtype=dtype, update=update, prompt=prompt)
    kinds = [kind for kind in KINDS if has(data, kind[0])]
    figure, grid = plt.subplots(1, len(kinds), figsize=(1 + 5.2 * len(kinds), 4.2), squeeze=False,
                                layout="constrained")
    for column, (kind, title) in enumerate(kinds):
        axes = grid[0][column]
        values = by_layer(records, kind).T
        values = numpy.where(values > 0, values, numpy.nan)
        image = axes.imshow(values, aspect="auto", origin="lower", cmap="viridis", norm=LogNorm())
        axes.grid(False)
        style.token_axis(axes, [r["nextText"] for r in records])
        axes.set_ylabel("layer")
        axes.set_title(f"{title}, {update}")
        bar = figure.colorbar(image, ax=axes, pad=0.02)
        style.log_ticks(bar.ax.yaxis)
        bar.outline.set_visible(False)
    return figure


def shares_figure(data, dtype):
    shares = [share for share in SHARES if has(data, share[0])]
    figure, grid = plt.subplots(1, len(shares), figsize=(0.8 + 3.6 * len(shares), 3.2),
                                squeeze=False, sharey=True, layout="constrained")
    for column, (member, title) in enumerate(shares):
        axes = grid[0][column]
        for update in data.updates:
            curve(axes, 100 * by_layer(data.select(dtype=dtype, update=update), member), update)
        axes.set_title(title)
        axes.set_ylim(0, 100)
        style.layer_axis(axes, data.settings["layers"])
    grid[0][0].set_ylabel("share of the entries, %")
    style.update_legend(figure, data.updates, control=False, mismatch=False)
    return figure


def figures(data):
    for dtype in data.settings["dtypes"]:
        name = style.DTYPES.get(dtype, dtype)
        suffix = f"-{dtype}" if dtype else ""
        yield Figure(f"layers{suffix}", layers_figure(data, dtype), f"How large each layer's patch is ({name})",
                     "Median over all tokens of all prompts; dotted: the largest. Below: relative "
                     "to the norm of the parameters that are patched; the dashed line is a change "
                     "as large as they are.")
    dtype = data.settings["dtypes"][0]
    yield Figure("tokens", tokens_figure(data, dtype, data.updates[0], 0),
                 f"Where the patches of prompt 1 are large, by layer and token ({data.updates[0]})",
                 "The colour is the norm of a layer's patch; below the axis, the token that the "
                 "run with context generates next.")
    yield Figure("shares", shares_figure(data, dtype), "How many entries a patch changes",
                 "The smallest share of a vector's entries that has 90 % of its squared norm: "
                 "near 0, a few entries are everything; equal entries would need 90 %, and those "
                 "of a normal distribution 46 %. A matrix's change is u vᵀ. Median over all tokens; "
                 "dotted: the largest.")


def tables(data):
    result = Table("Norms of all layers' patches together", [
        "weights", "update", "matrices, median", "largest", "relative, median",
        "vectors, median", "largest", "relative, median", "predicted replay error, worst layer"])
    for dtype in data.settings["dtypes"]:
        for update in data.updates:
            records = data.select(dtype=dtype, update=update)
            predicted = worst([number(v) for r in records for v in r["replayError"]])
            row = [style.DTYPES.get(dtype, dtype), update]
            for kind, _ in KINDS:
                row += [short(median(numbers(records, kind + "Norm"))),
                        short(worst(numbers(records, kind + "Norm"))),
                        short(median(numbers(records, kind + "Relative")))]
            result.rows.append(row + [short(predicted)])
    yield result
