"""The plot of results.json: the time of a token in units of one read of the weights."""

import matplotlib
import matplotlib.pyplot as plt
import results as r
from matplotlib.ticker import MaxNLocator

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "ctxc"  # the same numbers give the same file

BARS = [  # group, our measurement, the peer, its measurement, label
    ("decoding", "plain", None, None, "ctxc"),
    ("decoding", "plain", r.LLAMA_CPP, "plain", "llama.cpp"),
    ("decoding", "plain", r.PYTORCH, "plain", "PyTorch"),
    ("Algorithm 1", "patch", None, None, "ctxc"),
    ("Algorithm 1", "patch", r.PYTORCH, "factored_tuned", "PyTorch, factored, tuned"),
    ("Algorithm 1", "patch", r.PYTORCH, "factored", "PyTorch, factored"),
    ("Algorithm 1", "patch", r.PYTORCH, "materialised_tuned", "PyTorch, materialised, tuned"),
    ("Algorithm 1", "patch", r.PYTORCH, "materialised", "PyTorch, materialised"),
]
OURS, THEIRS, INK, QUIET = "#c2410c", "#94a3b8", "#1e293b", "#64748b"


def bars_of(setup):
    """(group, label, is ours, reads of the weights) for each measurement. They are ratios of neighbouring
    measurements, which the speed of memory at other moments does not affect."""
    found = []
    for group, ours, program, measurement, label in BARS:
        reads = r.decode_factor(setup, ours) / r.share_of_bandwidth(setup)
        if program:
            factor = r.factor_over(setup, program, measurement)
            reads = reads * factor if factor else None
        found.append((group, label, program is None, reads))
    return [bar for bar in found if bar[3] is not None]


def draw(axes, setup, longest, labelled):
    at, ticks, labels, last = 0.0, [], [], None
    for group, label, ours, reads in bars_of(setup):
        if group != last:
            at += 0.5 if last else 0
            ticks.append(at)
            labels.append(group)
            at, last = at + 0.95, group
        axes.barh(at, reads, color=OURS if ours else THEIRS, height=0.74)
        axes.text(reads + longest * 0.012, at, f"{reads:.1f}" if reads >= 9.95 else f"{reads:.2f}",
                  va="center", fontsize=8.5, color=INK)
        ticks.append(at)
        labels.append(label)
        at += 1
    axes.axvline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    axes.set_yticks(ticks, labels if labelled else [""] * len(labels), fontsize=9, color=INK)
    for tick, label in zip(axes.get_yticklabels(), labels):
        if label in {bar[0] for bar in BARS}:
            tick.set(fontstyle="italic", color=QUIET)
    axes.set_ylim(at - 0.3, -0.6)
    axes.set_xlim(0, longest * 1.13)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(r.title(setup), fontsize=10, color=INK, loc="left", pad=8)
    axes.tick_params(axis="x", labelsize=8.5, colors=QUIET)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)


def save(results, path):
    """Draws the setups with the most threads for which the speed of memory is known. Returns whether there
    are any."""
    most = max(setup["threads"] for setup in results["setups"].values())
    setups = [s for s in results["setups"].values() if s["threads"] == most and r.share_of_bandwidth(s)]
    setups.sort(key=lambda s: (s["model"], s["dtype"] != "f32"))
    if not setups:
        return False
    rows = (len(setups) + 1) // 2
    figure, grid = plt.subplots(rows, min(2, len(setups)), figsize=(11.5, 3.5 * rows + 0.7),
                                squeeze=False, layout="constrained")
    longest = max(bar[3] for s in setups for bar in bars_of(s))
    for i, (axes, setup) in enumerate(zip(grid.flat, setups)):
        beside = setups[i - 1] if i % 2 else None  # its labels serve for both
        draw(axes, setup, longest, not beside or
             [bar[:2] for bar in bars_of(beside)] != [bar[:2] for bar in bars_of(setup)])
    for axes in grid.flat[len(setups):]:
        axes.set_visible(False)
    figure.supxlabel(f"time of a token, in reads of the weights at the speed of memory (dashed: one "
                     f"read); {most} thread{'s' if most > 1 else ''}", fontsize=9.5, color=INK)
    figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
    return True
