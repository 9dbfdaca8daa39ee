"""Contexts of embeddings: how they change the answer, and how exact the patch is."""

from plots import style
from plots.data import Figure, Table, median, number, short, worst
from plots.style import plt

KINDS = [("noise", "noise, in units of the embeddings' root mean square"),
         ("mix", "share of the next prompt's embeddings")]
NAMES = {"own": "the tokens' own", "noise": "with noise", "mix": "between two prompts",
         "file": "out of the file"}


def amounts_of(data, kind, dtype, update):
    return sorted({r["amount"] for r in data.select(rows=kind, dtype=dtype, update=update)})


def rows_figure(data, dtype):
    kinds = [kind for kind in KINDS if data.select(rows=kind[0])]
    figure, grid = plt.subplots(2, len(kinds), figsize=(1 + 4.4 * len(kinds), 5.6), squeeze=False,
                                sharex="col", layout="constrained")
    update = data.updates[0]
    for column, (kind, label) in enumerate(kinds):
        amounts = amounts_of(data, kind, dtype, update)
        places = range(1, len(amounts) + 1)
        records = [data.select(rows=kind, dtype=dtype, update=update, amount=a) for a in amounts]
        own = data.select(rows="own", dtype=dtype, update=update)
        above, below = grid[0][column], grid[1][column]
        for prompt in data.values("prompt"):
            values = [number(r["fromTokens"]["totalVariation"]) for group in [own] + records
                      for r in group if r["prompt"] == prompt]
            above.plot([0, *places], values, color=style.QUIET, linewidth=0.8, alpha=0.6)
        above.plot([0, *places], [median([number(r["fromTokens"]["totalVariation"]) for r in group])
                                  for group in [own] + records],
                   color=style.INK, linewidth=1.8, marker="o", markersize=4)
        above.set_ylim(0, 1)
        for u in data.updates:
            groups = [data.select(rows="own", dtype=dtype, update=u)] + [
                data.select(rows=kind, dtype=dtype, update=u, amount=a) for a in amounts]
            below.plot([0, *places], style.above_floor(
                [worst([number(r["linf"]) for r in group]) for group in groups]),
                color=style.colour(u), marker=style.marker(u), markersize=4, linewidth=1.3)
        below.plot([0, *places], [min(number(r["control"]["linf"]) for r in group)
                                  for group in [own] + records],
                   color=style.COLOURS["control"], linestyle=(0, (4, 3)))
        style.log_axis(below)
        below.set_xticks([0, *places], ["0", *(f"{a:g}" for a in amounts)])
        below.set_xlabel(label)
        if column == 0:
            above.set_ylabel("answer, against the token context\ntotal variation distance")
            below.set_ylabel("patched against full run\nL∞ of the logits, worst")
    style.update_legend(figure, data.updates, mismatch=False)
    return figure


def figures(data):
    for dtype in data.settings["dtypes"]:
        name = style.DTYPES.get(dtype, dtype)
        yield Figure(f"rows{'-' + dtype if dtype else ''}", rows_figure(data, dtype),
                     f"Embeddings in place of tokens: the answers and the patches ({name})",
                     "Above: how far the answer of the run with embeddings is from that with tokens; thin: "
                     "each prompt, thick: the median. Below: the run with the patch and without the "
                     "embeddings, against the run with them, the worst of all prompts; dashed: without the "
                     "patch, the best. At 0 they are the tokens' own embeddings.")


def tables(data):
    result = Table("Patches for embeddings in place of tokens", [
        "weights", "rows", "amount", "answer's distance to the token context, median",
        "tokens that match", "L∞ patched, worst", "L∞ unpatched, least", "matrices, median norm"])
    for dtype in data.settings["dtypes"]:
        for update in data.updates:
            for kind in NAMES:
                for amount in amounts_of(data, kind, dtype, update):
                    records = data.select(rows=kind, dtype=dtype, update=update, amount=amount)
                    result.rows.append([
                        style.DTYPES.get(dtype, dtype), NAMES[kind],
                        f"{amount:g}" if kind in ("noise", "mix") else "",
                        short(median([number(r["fromTokens"]["totalVariation"]) for r in records])),
                        f"{sum(r['match'] for r in records)} of {len(records)}",
                        short(worst([number(r["linf"]) for r in records])),
                        short(min(number(r["control"]["linf"]) for r in records)),
                        short(median([number(r["matrixNorm"]) for r in records]))])
    yield result
