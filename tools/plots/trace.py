"""The gradient view: the path of the patch, the steps that make it, and their losses."""

import numpy
from matplotlib.colors import LogNorm
from plots import style
from plots.data import Figure, Table, finite, median, number, numbers, short, worst
from plots.style import plt


def steps(data, update, prompt, layer):
    return data.select(kind="step", update=update, prompt=prompt, layer=layer)


def layers_of(data):
    return sorted({r["layer"] for r in data.select(kind="step")})


def prompts_of(data):
    return data.values("prompt")


def by_token(data, update, prompt, member):
    """(layers × steps)."""
    return numpy.array([numbers(steps(data, update, prompt, layer), member)
                        for layer in layers_of(data)], float)


def thirds(layers):
    """The layers in up to three groups of neighbours, the first layers first."""
    count = min(3, len(layers))
    return [part.tolist() for part in numpy.array_split(layers, count)]


def path_figure(data, update):
    """The components along the last patch and orthogonal to it: each layer in grey, and in colour the medians of
    the layers below, in the middle and above."""
    prompts, layers = prompts_of(data), layers_of(data)
    columns = min(len(prompts), 3)
    rows = -(-len(prompts) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.3 * columns, 0.9 + 3.1 * rows),
                                squeeze=False, sharex=True, sharey=True, layout="constrained")
    colours = [plt.get_cmap("viridis")(share) for share in (0.05, 0.45, 0.8)]
    groups, lines = thirds(layers), []
    highest = 1.05 * max(numbers(data.select(kind="step", update=update), "aside")) + 0.05
    for place, axes in enumerate(grid.flat):
        if place >= len(prompts):
            axes.set_visible(False)
            continue
        for layer in layers:
            found = steps(data, update, prompts[place], layer)
            axes.plot([0] + numbers(found, "along"), [0] + numbers(found, "aside"), linewidth=0.6,
                      color=style.QUIET, alpha=0.35, zorder=2)
        lines = []
        for group, colour in zip(groups, colours):
            found = [steps(data, update, prompts[place], layer) for layer in group]
            middle = [[0] + [median(v) for v in zip(*(numbers(each, member) for each in found))]
                      for member in ("along", "aside")]
            lines += axes.plot(*middle, linewidth=2, color=colour, marker=".", markersize=6, zorder=4)
        axes.plot([0, 1], [0, 0], "o", color=style.INK, markersize=5, clip_on=False, zorder=5)
        for x, name in ((0, "no patch"), (1, "the patch")):
            axes.annotate(name, (x, 0), (0, -7), textcoords="offset points", fontsize=8,
                          ha="center", va="top")
        axes.set_ylim(-0.2, highest)
        axes.set_xlim(-0.2, 1.2)
        axes.set_title(f"prompt {prompts[place] + 1}")
        if place % columns == 0:
            axes.set_ylabel("aside of it")
        if place + columns >= len(prompts):
            axes.set_xlabel("along the last patch")
            axes.tick_params(labelbottom=True)
    names = [f"layers {g[0]} to {g[-1]}" if len(g) > 1 else f"layer {g[0]}" for g in groups]
    figure.legend(lines, names, loc="outside lower center", ncols=len(groups), frameon=False)
    return figure


def tokens_figure(data, update, prompt):
    """Layers × tokens: the size of each step, and how far the patch still is from the last."""
    found = steps(data, update, prompt, layers_of(data)[0])
    figure, grid = plt.subplots(2, 1, figsize=(max(6.5, 1.8 + 0.27 * len(found)), 6.4),
                                layout="constrained")
    last = numpy.array([number(steps(data, update, prompt, layer)[-1]["matrixNorm"])
                        for layer in layers_of(data)])[:, None]
    sizes = by_token(data, update, prompt, "matrixStep") / numpy.where(last > 0, last, numpy.nan)
    for axes, values, title, norm in (
            (grid[0], numpy.where(sizes > 0, sizes, numpy.nan),
             "size of the step, in units of the last patch's norm", LogNorm(vmin=1e-2)),
            (grid[1], by_token(data, update, prompt, "toEnd"),
             "distance of the patch to the last, after the step", None)):
        image = axes.imshow(values, aspect="auto", origin="lower", cmap="viridis", norm=norm,
                            interpolation="nearest")
        axes.grid(False)
        style.token_axis(axes, [r["text"] for r in found], shown=axes is grid[1])
        axes.set_ylabel("layer")
        axes.set_title(title)
        bar = figure.colorbar(image, ax=axes, pad=0.01)
        bar.outline.set_visible(False)
        if norm:
            style.log_ticks(bar.ax.yaxis)
    grid[1].set_xlabel("context, token by token")
    return figure


def losses_figure(data):
    """How much each step lowers its loss, and the angle between steps."""
    figure, grid = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
    layers = layers_of(data)
    for update in data.updates:
        longest = max(r["step"] for r in data.select(kind="step", update=update)) + 1
        per_step = [[] for _ in range(longest)]
        cosines = [[] for _ in layers]
        for r in data.select(kind="step", update=update):
            per_step[r["step"]].append(number(r["loss"]) - number(r["lossAfter"]))
            if r["cosine"] is not None:
                cosines[layers.index(r["layer"])].append(r["cosine"])
        shade, mark = style.colour(update), style.marker(update)
        grid[0].plot(range(1, longest + 1), [median(v) for v in per_step], color=shade,
                     marker=mark, markersize=4, linewidth=1.3)
        middle = [median(v) for v in cosines]
        grid[1].fill_between(layers, [numpy.quantile(v, 0.1) if v else numpy.nan for v in cosines],
                             [numpy.quantile(v, 0.9) if v else numpy.nan for v in cosines],
                             color=shade, alpha=0.15, linewidth=0)
        grid[1].plot(layers, middle, color=shade, marker=mark, markersize=4, linewidth=1.3)
    style.log_axis(grid[0])
    grid[0].xaxis.get_major_locator().set_params(integer=True)
    grid[0].set_xlabel("tokens of the context taken in")
    grid[0].set_ylabel("loss before − loss after a step")
    grid[1].axhline(0, color=style.INK, linewidth=0.8)
    grid[1].set_ylim(-1, 1)
    grid[1].set_ylabel("cosine of successive steps")
    style.layer_axis(grid[1], data.settings["layers"])
    style.update_legend(figure, data.updates, control=False, mismatch=False)
    return figure


def figures(data):
    update = data.updates[0]
    yield Figure("path", path_figure(data, update),
                 f"How a patch grows, token by token of the context ({update})",
                 "A grey line is a layer's matrices on their way from nothing to their last patch: how "
                 "far along it, and how far aside, in units of its norm. The coloured lines are the "
                 "medians of a third of the layers; a point is a token. A straight way would be the "
                 "line between the two black points.")
    yield Figure("tokens", tokens_figure(data, update, prompts_of(data)[0]),
                 f"Which tokens of prompt 1 move the patch ({update})",
                 "A column is the step that takes in the token below it. Above: the step's size; "
                 "below: what is left to go, in units of the last patch's norm.")
    yield Figure("losses", losses_figure(data), "What a step gains, and how it turns",
                 "Left: by how much a step lowers its own trace loss, median of all layers and of "
                 "the prompts that are so long; it is the sum of the squared changes that the step "
                 "asks for. Right: the "
                 "cosine between a step and the one before, matrices alone; the band holds "
                 "80 % of the steps.")


def tables(data):
    result = Table("The sum of all steps", [
        "update", "telescoping, worst", "against Algorithm 1, median", "worst",
        "scale components without a step", "tokens that match", "L∞, worst"])
    for update in data.updates:
        whole = data.select(kind="whole", update=update)
        result.rows.append([
            update, short(worst(numbers(whole, "telescoping"))),
            short(median(numbers(whole, "fromAlgorithm1"))),
            short(worst(numbers(whole, "fromAlgorithm1"))),
            str(max(r["undivided"] for r in whole)),
            f"{sum(r['match'] for r in whole)} of {len(whole)}",
            short(worst(numbers(whole, "linf")))])
    yield result
    cosines = Table("Cosine of successive steps", ["update", "median", "below zero"])
    for update in data.updates:
        values = finite([number(r["cosine"]) for r in data.select(kind="step", update=update)])
        if values:
            below = sum(v < 0 for v in values) / len(values)
            cosines.rows.append([update, short(median(values)), f"{100 * below:.0f} %"])
    yield cosines
