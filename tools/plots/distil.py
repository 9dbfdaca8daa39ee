"""How much of a context is recovered without it: adapters, kept tokens, a cut context, the mean of patches."""

import math

from plots import style
from plots.data import Figure, Table, finite, median, number, short
from plots.style import plt

FLOOR = -0.6  # of the axes of shares; what is below is written there
# Name, of which records, colour, marker.
METHODS = [
    ("half of the context, cut", {"method": "cut"}, "#8b95a3", "x"),
    ("15 % of its tokens kept", {"method": "kept", "kept": 0.15}, "#e69f00", "v"),
    ("mean of token patches", {"method": "patches"}, "#d55e00", "^"),
    ("adapter, closed form", {"method": "closed", "kept": 0, "rank": 16, "asked": 0}, "#0072b2", "o"),
    ("adapter, refined", {"method": "refined"}, "#009e73", "D"),
    ("adapter and 15 % kept", {"method": "closed", "kept": 0.15}, "#cc79a7", "s"),
    ("15 % kept in the cache", {"method": "cache", "kept": 0.15}, "#f0e442", "<"),
    ("adapter and 15 % in the cache", {"method": "cache-closed", "kept": 0.15}, "#56b4e9", "P"),
]
CLOSED = METHODS[3][1]


def mean(values):
    known = finite(values)
    return sum(known) / len(known) if known else math.nan


def shares(records, name="share"):
    return [number(r.get(name)) for r in records]


def percent(share):
    return f"{100 * share:.1f} %" if math.isfinite(share) else ""


def share_axis(axes, which="y", values=()):
    """An axis of shares, down to the lowest of `values` that is drawn."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    low = max(FLOOR, min([0, *finite(values)]))
    (axes.set_ylim if which == "y" else axes.set_xlim)(low - 0.04, 1.02)
    axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    (axes.axhline if which == "y" else axes.axvline)(0, color=style.QUIET, linewidth=0.8)


def methods_of(data):
    return [m for m in METHODS if data.select(**m[1])]


def by_share(data):
    """The contexts, those of which an adapter recovers most first."""
    order = {context: -mean(shares(data.select(context=context, **CLOSED))) for context in data.values("context")}
    return sorted(order, key=lambda context: (not math.isfinite(order[context]), order[context]))


def methods_figure(data):
    rows, methods = [None, *by_share(data)], methods_of(data)
    figure, axes = plt.subplots(figsize=(8.6, 1.4 + 0.56 * len(rows)), layout="constrained")
    for row, context in enumerate(rows):
        y = len(rows) - 1 - row
        for place, (label, wanted, colour, marker) in enumerate(methods):
            records = data.select(**wanted, **({"context": context} if context else {}))
            if not records:
                continue
            at = y + 0.3 - 0.6 * place / max(len(methods) - 1, 1)
            value = mean(shares(records)) if context else median(shares(records))
            axes.plot([max(value, FLOOR)], [at], marker=marker, color=colour, markersize=6 if context else 8,
                      linestyle="none", label=label if row == 0 else None, zorder=3)
            low, high = (mean([number(r["interval"][i]) for r in records]) for i in (0, 1))
            if context and max(low, high) > FLOOR:
                axes.plot([max(low, FLOOR), max(high, FLOOR)], [at, at], color=colour, linewidth=1.4,
                          alpha=0.6)
            if value < FLOOR:  # neighbours stand beside each other
                axes.annotate(f"{100 * value:.0f} %", (FLOOR, at), textcoords="offset points",
                              xytext=(7 + 36 * (place % 2), 0), va="center", fontsize=7.5, color=colour)
        axes.axhline(y - 0.5, color="#cbd5e1", linewidth=0.7 if context else 1.8)
    axes.set_yticks(range(len(rows)), [context or "median" for context in reversed(rows)], color=style.INK)
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.grid(axis="y", visible=False)
    ends = [number(r["interval"][0]) for m in methods for r in data.select(**m[1])]
    share_axis(axes, "x", ends)
    axes.set_xlabel("share of the context's effect that is recovered")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8.5)
    return figure


def name_ends(axes, ends):
    """Writes names at the right ends of lines, apart from each other."""
    gap, last = 0.042, -math.inf
    for y, x, name in sorted((y, x, name) for name, (x, y) in ends.items() if math.isfinite(y)):
        last = max(y, last + gap)
        axes.annotate(name, (x, y), (1.01, last), xycoords="data",
                      textcoords=axes.get_yaxis_transform(), va="center", fontsize=7, color=style.QUIET,
                      arrowprops={"arrowstyle": "-", "color": "#cbd5e1", "linewidth": 0.6, "shrinkB": 2})


def curve_figure(data, name, label, records, extra):
    """Share against a number: thin, each context; thick, their mean. `extra` are points of another method."""
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.4), sharey=True, layout="constrained")
    for axes, member, title in zip(panels, ("share", "dependent"),
                                   ("all tokens", "the tokens that depend on the context most")):
        places = sorted({round(r[name]) for r in records})
        # Texts end where they end: counts that belong together differ a little between contexts.
        steps = sorted({r["step"] for r in records})
        ends = {}
        for context in data.values("context"):
            points = []
            for step in steps:
                own = [r for r in records if r["context"] == context and r["step"] == step]
                if own:
                    points.append((mean([r[name] for r in own]), mean(shares(own, member))))
            axes.plot(*zip(*points), color=style.QUIET, linewidth=0.9, alpha=0.7, marker=".",
                      markersize=4)
            ends[context] = points[-1]
        middle = [[r for r in records if r["step"] == step] for step in steps]
        axes.plot([mean([r[name] for r in group]) for group in middle],
                  [mean(shares(group, member)) for group in middle], color="#0072b2", linewidth=2.2,
                  marker="o", markersize=5, label="adapter, closed form: mean")
        if extra:
            axes.plot([mean([r[name] for r in extra])], [mean(shares(extra, member))], color="#009e73",
                      marker="D", markersize=6, linestyle="none", label="adapter, refined: mean")
        axes.set_xscale("log")
        axes.set_xticks(places if len(places) <= 6 else [round(mean([r[name] for r in g])) for g in middle])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        axes.xaxis.set_minor_locator(style.NullLocator())
        name_ends(axes, ends)
        axes.set_title(title)
        axes.set_xlabel(label)
    every = [v for member in ("share", "dependent") for v in finite(shares(records, member))]
    share_axis(panels[0], values=every)
    panels[0].set_ylabel("share recovered")
    panels[0].legend(loc="lower right", fontsize=8)
    return figure


def with_step(records, step):
    return [{**r, "step": step(r)} for r in records]


def front_figure(data):
    figure, axes = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
    contexts = data.values("context")
    lines = [("kept tokens by themselves", "#e69f00", "v", {"method": "kept"}),
             ("with an adapter, closed form", "#0072b2", "o", {"method": "closed", "rank": 16, "asked": 0}),
             ("kept in the cache, by themselves", "#f0e442", "<", {"method": "cache"}),
             ("in the cache, with an adapter", "#56b4e9", "P", {"method": "cache-closed"})]
    lines = [line for line in lines if data.select(**line[3])]
    for label, colour, marker, wanted in lines:
        for context in [*contexts, None]:
            records = data.select(**wanted, **({"context": context} if context else {}))
            kept = sorted({r["kept"] for r in records})
            values = [median(shares([r for r in records if r["kept"] == k])) for k in kept]
            if wanted["method"] in ("kept", "cache"):  # nothing in front is the model without the context
                kept, values = [0, *kept], [0, *values]
            thick = context is None
            axes.plot([100 * k for k in kept], [max(v, FLOOR) for v in values], color=colour,
                      marker=marker if thick else None, markersize=5.5, zorder=3 if thick else 2,
                      linewidth=2.2 if thick else 0.8, alpha=1 if thick else 0.35,
                      label=f"{label}: median" if thick else None)
    cut = shares(data.select(method="cut"))
    axes.plot([50], [max(median(cut), FLOOR)], color=style.INK, marker="x", markersize=7, zorder=4,
              linestyle="none", label="the first half of the context: median")
    share_axis(axes, values=shares(data.select(method="kept")) + cut)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")
    axes.set_xlabel("of the context's tokens that stay in front of every text")
    axes.set_ylabel("share recovered")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8.5)
    return figure


def figures(data):
    yield Figure("methods", methods_figure(data), "What is recovered of each context, and how",
                 "The share of the context's effect on text that was not fitted, 1 − KL(full ‖ adapted) / KL(full ‖ "
                 "plain): 0 % is the model without the context. Bars: 95 % by bootstrap over the texts that judge. "
                 f"Values below {100 * FLOOR:.0f} % are written.")
    closed = [r for r in data.select(method="closed", kept=0, rank=16)]
    yield Figure("tokens", curve_figure(
        data, "tokens", "tokens of text that are fitted", with_step(closed, lambda r: r["asked"] or 1 << 30),
        data.select(method="refined")), "Share recovered against the text that is fitted",
        "Rank 16. Thin: each context; thick: their mean.")
    ranks = data.select(method="closed", kept=0, asked=0)
    yield Figure("ranks", curve_figure(
        data, "rank", "rank of each matrix's change", with_step(ranks, lambda r: r["rank"]),
        data.select(method="refined")), "Share recovered against the rank",
        "All texts are fitted. Thin: each context; thick: their mean.")
    yield Figure("front", front_figure(data), "Share recovered against what stays in front",
                 "Tokens of the context that stay in front of every text, chosen by surprise and copies, by themselves "
                 "and completed by an adapter of rank 16. Thin: each context; thick: their median.")


def drift_of(records):
    return mean([number(r["drift"]) / r["driftOfContext"] for r in records if r.get("driftOfContext")])


def row(records):
    return [percent(mean(shares(records))), percent(min(finite(shares(records)), default=math.nan)),
            percent(mean(shares(records, "dependent"))),
            f"{drift_of(records):.2f}" if math.isfinite(drift_of(records)) else "",
            short(mean([r["processorSeconds"] for r in records])),
            f"{mean([r['front'] for r in records]):.0f}", f"{mean([r['numbers'] for r in records]):,.0f}"]


def tables(data):
    result = Table("The methods, over all contexts and seeds", [
        "method", "share recovered, mean", "worst", "of the most dependent tokens",
        "drift on unrelated text, of the context's own", "processor seconds", "tokens in front",
        "numbers"])
    for label, wanted, *_ in methods_of(data):
        result.rows.append([label, *row(data.select(**wanted))])
    yield result
    each = Table("Each context", ["context", "its tokens", "method", "share recovered (95 %)",
                                  "of the most dependent tokens", "drift, of the context's own",
                                  "processor seconds"])
    for context in data.values("context"):
        for label, wanted, *_ in methods_of(data):
            records = data.select(context=context, **wanted)
            if not records:
                continue
            low, high = (mean([number(r["interval"][i]) for r in records]) for i in (0, 1))
            drift = drift_of(records)
            each.rows.append([context, str(records[0]["contextTokens"]), label,
                              f"{percent(mean(shares(records)))} ({100 * low:.0f} to {100 * high:.0f})",
                              percent(mean(shares(records, "dependent"))),
                              f"{drift:.2f}" if math.isfinite(drift) else "",
                              short(mean([r["processorSeconds"] for r in records]))])
    yield each
