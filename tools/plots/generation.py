"""Generation with patches in place of the context: curves token by token, and distributions."""

from plots import comparison, style
from plots.data import Figure, numbers
from plots.style import plt


def curves(data, prompt):
    """A column for each type and way; L∞ and total variation, the generated tokens below."""
    ways = data.ways()
    labels = [r["nextText"] for r in data.select(prompt=prompt, run="control",
                                                 dtype=data.settings["dtypes"][0])]
    figure, grid = plt.subplots(
        2, len(ways), figsize=(1.2 + len(ways) * max(3.4, 0.22 * len(labels)), 5.6), squeeze=False,
        sharey="row", layout="constrained")
    for column, (way, records) in enumerate(ways):
        for row, (member, label) in enumerate(comparison.MAIN):
            axes = grid[row][column]
            style.log_axis(axes)
            control = [r for r in data.control(way[0]) if r["prompt"] == prompt]
            axes.plot(style.above_floor(numbers(control, member)), color=style.COLOURS["control"],
                      linestyle=(0, (4, 3)), linewidth=1.2)
            for update in data.updates:
                line = [r for r in records if r["prompt"] == prompt and r["update"] == update]
                ys = style.above_floor(numbers(line, member))
                axes.plot(ys, color=style.colour(update), marker=style.marker(update),
                          markersize=3.2, linewidth=1.1)
                missed = [i for i, r in enumerate(line) if not r["match"]]
                style.cross_out(axes, missed, [ys[i] for i in missed])
            style.token_axis(axes, labels, shown=row == 1)
            if column == 0:
                axes.set_ylabel(label)
        grid[0][column].set_title(style.way_name(way))
    style.update_legend(figure, data.updates)
    return figure


def figures(data):
    comparison.with_distances(data)
    yield comparison.summary(data)
    yield comparison.further(data)
    for prompt, given in enumerate(data.settings["prompts"]):
        yield Figure(f"prompt-{prompt + 1}", curves(data, prompt), f"Prompt {prompt + 1}, token by token",
                     f"“{given['text']}” Below the axis: the tokens that the run with context "
                     "generates. A red X: the patched run's largest logit is another token's.")


def tables(data):
    yield comparison.table(data)
