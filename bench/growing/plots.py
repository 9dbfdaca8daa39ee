"""The pictures of bench/growth.py: log-log, what was measured as points, the machine's limit dashed."""

import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from growing import limits  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator  # noqa: E402

INK, QUIET = "#1e293b", "#64748b"
# Of the palette of Okabe and Ito, with markers that tell the same without colour.
FIRST, SECOND, THIRD = ("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^")
DASHED = (0, (4, 3))

plt.rcParams.update({
    "svg.hashsalt": "ctxc", "text.parse_math": False, "font.size": 9, "axes.edgecolor": QUIET,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": QUIET, "ytick.color": QUIET,
    "axes.titlesize": 10, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e2e8f0", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "legend.frameon": False, "legend.fontsize": 8.5})


def logarithmic(axes, x, y, ticks=None):
    """Both axes; x has a tick at each of `ticks`."""
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    if ticks:
        axes.xaxis.set_major_locator(FixedLocator(ticks))


def room(axes):
    """Space around the curves, so that small differences look small: at least a factor of six."""
    low, high = axes.dataLim.y0, axes.dataLim.y1
    few = max(1, (6 / (high / low)) ** 0.5)
    axes.set_ylim(low / 1.15 / few, high * 1.15 * few)


def line(axes, records, x, y, label, look=FIRST, dashed=False):
    """The points of records for which there are both numbers."""
    pairs = [(x(record), y(record)) for record in records]
    pairs = [pair for pair in pairs if pair[0] and pair[1] and min(pair) > 0]
    if pairs:
        colour, marker = look
        axes.plot(*zip(*pairs), color=colour, marker="" if dashed else marker, markersize=4.5, linewidth=1.2,
                  linestyle=DASHED if dashed else "-", label=label, zorder=2 if dashed else 3)


def found(name, scale=1.0):
    return lambda record: record["found"][name] * scale


def point(name):
    return lambda record: record["point"][name]


def context(records):
    names = list(dict.fromkeys(record["point"]["model"] for record in records))
    figure, grid = plt.subplots(len(names), 2, figsize=(8.6, 0.6 + 2.7 * len(names)), squeeze=False,
                                layout="constrained")
    for name, (time, memory) in zip(names, grid):
        some = [record for record in records if record["point"]["model"] == name]
        x, ticks = point("tokens"), [record["point"]["tokens"] for record in some]
        line(time, some, x, found("plain"), "a token")
        line(time, some, x, found("patch"), "with its patches (Algorithm 1)", SECOND)
        line(time, some, x, lambda r: limits.of_context(r["found"]), "limit: all read once", (INK, ""), dashed=True)
        line(memory, some, x, found("peak", 1e-6), "the process at its peak")
        line(memory, some, x, lambda r: limits.rest(r["found"]) / 1e6, "of it, the rest", THIRD)
        line(memory, some, x, found("cache", 1e-6), "of it, the cache", SECOND)
        line(memory, some, x, found("weights", 1e-6), "of it, the weights", (INK, ""), dashed=True)
        for axes, label in ((time, "ms"), (memory, "MB")):
            room(axes)
            logarithmic(axes, "tokens of context", label, ticks)
        time.set_title(f"{name}: time")
        memory.set_title(f"{name}: memory")
    for axes in grid[0]:  # where no curve is
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.12), ncols=2)
    return figure


def bits(records):
    figure, axes = plt.subplots(figsize=(8.6, 4), layout="constrained")

    def x(record):
        return 8 * record["found"]["bytes"] / record["found"]["parameters"]
    ways = [("exact", "exact", FIRST), ("integers", "--integer-products", SECOND)]
    for way, label, (colour, marker) in ways:
        some = [record for record in records if record["point"]["arithmetic"] == way]
        axes.plot([x(r) for r in some], [r["found"]["plain"] for r in some], color=colour, marker=marker,
                  linestyle="none", markersize=5, label=label)
    bandwidth = statistics.median(record["found"]["read_gbps"] for record in records)
    line(axes, sorted(records, key=x), x, lambda r: limits.milliseconds(r["found"] | {"read_gbps": bandwidth}),
         "limit: weights read once", (INK, ""), dashed=True)
    room(axes)
    kinds = {}
    for record in records:
        kinds.setdefault(round(x(record), 2), []).append(record["point"]["type"])
    for at, names in kinds.items():
        axes.text(at, 1.02, ", ".join(dict.fromkeys(names)), transform=axes.get_xaxis_transform(), rotation=90,
                  ha="center", va="bottom", fontsize=8, color=QUIET)
    logarithmic(axes, "bits per weight", "ms a token", [4, 5, 6, 8, 12, 16, 24, 32])
    axes.grid(axis="x", visible=False)
    axes.legend(loc="lower right")
    return figure


def positions(records):
    figure, (time, size) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    x, ticks = point("positions"), [record["point"]["positions"] for record in records]
    line(time, records, x, found("positions", 1e-3), "patches of all positions")
    line(time, records, x, found("prefill", 1e-3), "the prompt alone", SECOND)
    line(time, records, x, lambda r: (limits.of_positions(r["found"]) or 0) / 1e3, "limit of the patches", (INK, ""),
         dashed=True)
    line(size, records, x, found("file", 1e-6), "one file, float32")
    for axes, label in ((time, "s"), (size, "MB")):
        room(axes)
        logarithmic(axes, "positions", label, ticks)
        axes.legend(loc="upper left")
    time.set_title("time")
    size.set_title("file")
    return figure


def grown(studies):
    """Layers, experts and parameters, side by side on one scale."""
    panels = [(studies["layers"], point("layers"), "layers", True),
              (studies["experts"], point("experts"), "experts, of which 2 see a token", True),
              (studies["hidden"], found("bytes", 0.5e-6), "million parameters", False)]
    panels = [panel for panel in panels if panel[0]]
    figure, grid = plt.subplots(1, len(panels), figsize=(8.6, 3.4), squeeze=False, sharey=True,
                                layout="constrained")
    for axes, (records, x, label, exact) in zip(grid[0], panels):
        line(axes, records, x, found("plain"), "a token")
        line(axes, records, x, found("patch"), "with its patches (Algorithm 1)", SECOND)
        line(axes, records, x, lambda r: limits.milliseconds(r["found"]), "limit: weights read once", (INK, ""),
             dashed=True)
        logarithmic(axes, label, "", [x(record) for record in records] if exact else [1, 10, 100, 1000])
    low = min(axes.dataLim.y0 for axes in grid[0])
    high = max(axes.dataLim.y1 for axes in grid[0])
    grid[0][0].set_ylim(low / 1.3, high * 1.3)
    logarithmic(grid[0][0], panels[0][2], "ms", [panels[0][1](r) for r in panels[0][0]] if panels[0][3] else None)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def save(studies, folder):
    folder.mkdir(parents=True, exist_ok=True)
    figures = {name: (draw, studies[name]) for name, draw in
               (("context", context), ("bits", bits), ("positions", positions))}
    figures["models"] = (grown, studies if any(studies[s] for s in ("layers", "experts", "hidden")) else None)
    for name, (draw, records) in figures.items():
        if records:
            figure = draw(records)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
