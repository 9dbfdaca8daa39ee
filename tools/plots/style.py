"""Shared by all figures: colours that colour-blind readers can distinguish, markers, axes, tokens."""

import math
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: E402

INK, QUIET, RED = "#1e293b", "#64748b", "#dc2626"
# The palette of Okabe and Ito; markers carry the same information without colour.
COLOURS = {"least": "#0072b2", "balanced": "#009e73", "naive": "#d55e00", "stable": "#e69f00",
           "scaled": "#cc79a7", "control": "#8b95a3"}
MARKERS = {"least": "o", "balanced": "s", "naive": "^", "stable": "D", "scaled": "v",
           "control": "x"}
FLOOR = 1e-9  # zeros are drawn at this value on a log axis

plt.rcParams.update({
    "svg.hashsalt": "ctxc",  # the same numbers give the same file
    "svg.fonttype": "none",  # text stays text: small files, readable by programs
    "text.parse_math": False, "font.size": 9, "axes.edgecolor": QUIET, "axes.labelcolor": INK,
    "text.color": INK, "xtick.color": QUIET, "ytick.color": QUIET, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e2e8f0", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "legend.frameon": False, "figure.dpi": 100, "savefig.dpi": 130,
})

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "": "weights as stored"}


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(value, _=None):
    """A tick of a log axis, such as 10⁻⁶ or 0.2, without math markup, since tokens may contain `$`."""
    exponent = math.floor(math.log10(value) + 1e-9) if value > 0 else 0
    if value <= 0 or abs(value / 10.0 ** exponent - 1) > 1e-6 or -3 < exponent < 3:
        return f"{value:.3g}"
    return "10" + str(exponent).translate(SUPERSCRIPTS)


class Decades(LogLocator):
    """Powers of ten; also 2 and 5 times each where there would be few ticks otherwise."""

    def tick_values(self, vmin, vmax):
        few = 0 < vmin and vmax / vmin < 100
        self.set_params(subs=(1, 2, 5) if few else (1,))
        return super().tick_values(vmin, vmax)


def log_ticks(axis):
    axis.set_major_locator(Decades())
    axis.set_major_formatter(FuncFormatter(power))
    axis.set_minor_locator(NullLocator())


def log_axis(axes, which="y"):
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    log_ticks(axes.yaxis if which == "y" else axes.xaxis)


def way_name(way):
    dtype, materialized = way
    return DTYPES.get(dtype, dtype) + (", materialised" if materialized else ", factored")


def colour(update):
    return COLOURS.get(update, INK)


def marker(update):
    return MARKERS.get(update, "o")


def above_floor(values):
    return [max(v, FLOOR) if math.isfinite(v) else math.nan for v in values]


def token_label(text, columns=12):
    """A token as an axis can show it."""
    text = re.sub(r"\n+", "⏎", text)
    if text.strip() == "" and text:
        text = "␣" * len(text)
    shown = "".join(c if c.isprintable() and ord(c) < 0x2e80 else "□" for c in text.strip(" "))
    return shown if len(shown) <= columns else shown[:columns - 1] + "…"


def token_axis(axes, labels, shown=True):
    axes.set_xticks(range(len(labels)), [token_label(t) for t in labels] if shown
                    else [""] * len(labels), rotation=60, ha="right", rotation_mode="anchor",
                    fontsize=8)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.grid(axis="x", visible=False)


def cross_out(axes, xs, ys):
    """A red X where the token differs."""
    if xs:
        axes.plot(xs, ys, "x", color=RED, markersize=8, markeredgewidth=2, linestyle="none",
                  zorder=5, clip_on=False)


def update_legend(figure, updates, control=True, mismatch=True, more=()):
    """One legend for all axes, above them."""
    lines = [plt.Line2D([], [], color=colour(u), marker=marker(u), markersize=5, label=u)
             for u in updates]
    if control:
        lines.append(plt.Line2D([], [], color=COLOURS["control"], linestyle=(0, (4, 3)),
                                label="no patch (control)"))
    if mismatch:
        lines.append(plt.Line2D([], [], color=RED, marker="x", linestyle="none", markersize=8,
                                markeredgewidth=2, label="another token"))
    lines += more
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines), fontsize=9,
                  handlelength=1.8, columnspacing=1.6)


def boxes(axes, groups, colours, log=True):
    """A box plot for each list of values, at 0, 1, …; where a list is short, all its points too."""
    for place, (values, shade) in enumerate(zip(groups, colours)):
        known = [v for v in (above_floor(values) if log else values) if math.isfinite(v)]
        if not known:
            axes.text(place, 0.5, "not finite", rotation=90, ha="center", va="center", color=RED,
                      transform=axes.get_xaxis_transform(), fontsize=8)
            continue
        if len(known) <= 40:
            # Points are spread regularly, not at random, so that the same numbers give the same
            # file.
            spread = [0.30 * (((i * 0.618034) % 1) - 0.5) for i in range(len(known))]
            axes.plot([place + s for s in spread], known, ".", color=shade, alpha=0.35,
                      markersize=3.5, markeredgewidth=0)
        axes.boxplot(known, positions=[place], widths=0.62, whis=(0, 100), showfliers=False,
                     medianprops={"color": INK, "linewidth": 1.6},
                     boxprops={"color": shade, "linewidth": 1.3},
                     whiskerprops={"color": shade}, capprops={"color": shade})
    if log:
        log_axis(axes)
    axes.grid(axis="x", visible=False)


def name_boxes(axes, names, shown=True):
    axes.set_xticks(range(len(names)), names if shown else [""] * len(names), rotation=35,
                    ha="right", rotation_mode="anchor", fontsize=8.5, color=INK)
    axes.set_xlim(-0.6, len(names) - 0.4)


def layer_axis(axes, layers, label="layer"):
    axes.set_xlim(-0.5, layers - 0.5)
    axes.set_xticks(range(0, layers, 1 if layers <= 12 else 2 if layers <= 24 else 4))
    axes.set_xlabel(label)
