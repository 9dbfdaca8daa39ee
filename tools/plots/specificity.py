"""What a patch does for other tokens and positions, and how fast it becomes wrong."""

from plots import style
from plots.data import Figure, Table, median, number, percent, short
from plots.style import plt

PARTS = [("whole", "whole"), ("matrices", "matrices"), ("vectors", "vectors")]
PLANS = {"default": "inputs and output", "output": "output alone"}
VIEWS = [("context", "after its own context"), ("alone", "alone, without a context")]


def ways(data):
    return list(dict.fromkeys((r["update"], r["plan"]) for r in data.select(kind="patch")))


def way_name(data, way):
    update, plan = way
    several = len({w[1] for w in ways(data)}) > 1
    names = [update] if len(data.updates) > 1 else []
    names += [PLANS[plan]] if several else []
    return ", ".join(names) or update


def parts_of(data):
    there = set(data.values("part"))
    return [part for part in PARTS if part[0] in there]


def elsewhere(data, way, part, view, own=None):
    return [r for r in data.select(kind="elsewhere", update=way[0], plan=way[1], part=part,
                                   view=view)
            if not r["itself"] and (own is None or own == (r["source"] == r["target"]))]


def change(records, member="totalVariation"):
    """The member of each record; a value that is not finite counts as 1, the largest possible."""
    return [1.0 if r[member] is None else r[member] for r in records]


def elsewhere_figure(data):
    all_ways, parts = ways(data), parts_of(data)
    figure, grid = plt.subplots(2, len(all_ways), figsize=(1 + 2.5 * len(all_ways), 5.8),
                                squeeze=False, sharey=True, layout="constrained")
    for row, (view, title) in enumerate(VIEWS):
        for column, way in enumerate(all_ways):
            axes = grid[row][column]
            style.boxes(axes, [change(elsewhere(data, way, part, view)) for part, _ in parts],
                        [style.colour(way[0])] * len(parts), log=False)
            style.name_boxes(axes, [name for _, name in parts], shown=row == 1)
            axes.set_ylim(0, 1.03)
            if row == 0:
                axes.set_title(way_name(data, way))
            if column == 0:
                axes.set_ylabel(f"{title}\ntotal variation distance")
    return figure


def stale_figure(data):
    all_ways = ways(data)
    figure, grid = plt.subplots(1, 2, figsize=(9.6, 3.6), sharey=True, layout="constrained")
    styles = {"default": "-", "output": (0, (1, 1.2))}
    lines = []
    for axes, member, title in ((grid[0], "alone", "each token alone"),
                                (grid[1], "following", "after those since the patch's own")):
        for way in all_ways:
            records = data.select(kind="stale", update=way[0], plan=way[1])
            distances = sorted({r["distance"] for r in records})
            values = [median([number(r[member]["totalVariation"]) for r in records
                              if r["distance"] == d]) for d in distances]
            line, = axes.plot(distances, values, color=style.colour(way[0]),
                              marker=style.marker(way[0]), markersize=4, linewidth=1.3,
                              linestyle=styles[way[1]], label=way_name(data, way))
            if member == "alone":
                lines.append(line)
        records = data.select(kind="stale", update=all_ways[0][0], plan=all_ways[0][1])
        distances = sorted({r["distance"] for r in records})
        line, = axes.plot(distances, [
            median([number(r[member + "Control"]["totalVariation"]) for r in records
                    if r["distance"] == d]) for d in distances],
            color=style.COLOURS["control"], linestyle=(0, (4, 3)), label="no patch (control)")
        axes.set_title(title)
        axes.set_xlabel("tokens since the patch's own")
        axes.set_ylim(0, 1.03)
    lines.append(line)
    grid[0].set_ylabel("total variation distance\nto the run with context")
    figure.legend(handles=lines, loc="outside upper center", ncols=min(len(lines), 3), fontsize=9)
    return figure


def figures(data):
    yield Figure("elsewhere", elsewhere_figure(data), "What a patch does to other tokens",
                 "How far the model's answers move when the patch of one prompt's last token is "
                 "left in the weights for other tokens, of its prompt and of others: 0 is no change, "
                 "1 another answer altogether. Whole, and its matrices and vectors by themselves. "
                 "The line is the median.")
    yield Figure("stale", stale_figure(data), "How a patch goes stale, token by token",
                 "The patch of a token, used unchanged for the tokens that follow: the answers' "
                 "distance to the run with the whole context, median over the prompts. Left: each "
                 "token by itself; right: after the tokens since the patch's own, all run with the "
                 "patch. At 0 it is the token that the patch was made for.")


def tables(data):
    result = Table("Change of the answers to other tokens", [
        "update", "patched", "part", "context: total variation, median", "same token",
        "alone: total variation, median", "same token", "own prompt, context", "other prompts"])
    for way in ways(data):
        for part, name in parts_of(data):
            row = [way[0], PLANS[way[1]], name]
            for view, _ in VIEWS:
                records = elsewhere(data, way, part, view)
                if not records:
                    row += ["–", "–"]
                    continue
                row += [short(median(change(records))),
                        percent(sum(r["sameToken"] for r in records) / len(records))]
            for own in (True, False):
                row.append(short(median(change(elsewhere(data, way, part, "context", own)))))
            result.rows.append(row)
    yield result
    norms = Table("Norms of the patches, median", ["update", "patched", "matrices", "vectors"])
    for way in ways(data):
        records = data.select(kind="patch", update=way[0], plan=way[1])
        norms.rows.append([way[0], PLANS[way[1]], short(median([r["matrixNorm"] for r in records])),
                           short(median([r["vectorNorm"] for r in records]))])
    yield norms
    stale = Table("Stale patches: tokens that match the run with context", [
        "update", "patched", "its own token", "the next", "2 to 5 behind", "6 and more",
        "no patch, 1 and more"])
    for way in ways(data):
        records = data.select(kind="stale", update=way[0], plan=way[1])

        def share(low, high, member="following"):
            found = [r[member]["sameToken"] for r in records if low <= r["distance"] <= high]
            return percent(sum(found) / len(found)) if found else "–"
        stale.rows.append([way[0], PLANS[way[1]], share(0, 0), share(1, 1), share(2, 5),
                           share(6, 10**9), share(1, 10**9, "followingControl")])
    yield stale
