"""docs/torch-types.md: a line for each type, made from what was found."""
import re

TOLERANCE, CONTROL = 1e-3, 100
VERDICTS = ("controllable", "output-only", "rejected")

HEAD = """# Every causal model type of transformers

<!-- made by test/types/run.py -->

`python -m ctxc.export TYPE` needs no importer. This table shows the result for each type that transformers
{version} calls a causal language model: a small model of the type is exported, `ctxc check` reads the file, and its verdict
is compared with numbers. Every night, it is made by

<!-- not run: it takes half an hour -->
```sh
build/judges/bin/python test/types/run.py build/bin/ctxc python build/types --page docs/torch-types.md
```

The numbers come only from transformers, in float64, with random weights (`test/types/numbers_of.py`). A model reads
{tokens} tokens. Then it reads only the last of them, and layer by layer the parameters that the plan names are changed, with
Jacobians that autograd computes, until

- *inside*: the parameters before the nonlinearity give what they give with the context; the column has the largest
  difference of the input of the module behind them, relative to its size. It is measured for controllable layers whose
  plan's modules can be watched.
- *logits*: the parameters behind it give what the layer gives with the context; the column has the largest difference of
  the logits, and *without* has the same before any change.

Then ctxc itself computes a patch of the last token, from the exported file, whose ops it runs in float64 (`ctxc patch
TYPE.ctxc`). The patch is added to the weights of transformers' model, which then reads only that token
(`test/types/patches.py`): the column *ctxc's patch* has the largest difference of a logit.

If the paper's sites give no verdict, the table has the verdict of `--sites all`, which also patches the mixer's own last
matrix, marked with *(all)*.

Neither other names of a program's values, nor another order of ops that do not depend on each other, nor the absence of
weights, nor PyTorch's own table of decompositions (`run_decompositions()`, which leaves only the ops of its core) changes a
verdict or a plan (`test/types/variant.py`).

The column *runs by* says what runs the type: *kernels* are ctxc's own, with a KV cache or another state; *program* is
the exported program, in float64, because `xf` has no op for some part of it. A table below names this part. Attention that keeps the
tokens with the largest scores (DeepSeek's sparse one), or sees a chunk of them (Llama 4), is read as that of all tokens, up to as many
as it keeps or as a chunk has: 32 in these small models. A run beyond that is refused.

{summary}

| type | ops | layers | verdict | plan | runs by | inside | logits | without | ctxc's patch |
|---|---:|---:|---|---|---|---:|---:|---:|---:|
"""
KEPT = """
## Run as the exported program

Ops of PyTorch that keep a type from ctxc's kernels: in what joins tokens, and elsewhere.

| type | in what joins tokens | elsewhere |
|---|---|---|
"""
UNRUN = """
## Not run by ctxc

| type | what stands in the way |
|---|---|
"""
NOT = """
## Without a verdict

| type | what stands in the way |
|---|---|
"""


def is_good(row):
    """Whether the verdict agrees with its numbers; none where there are none."""
    numbers = row.get("numbers")
    if not numbers:
        return None
    return numbers["patched"] <= TOLERANCE and numbers["control"] > CONTROL * numbers["patched"] and \
        numbers["inside"] <= TOLERANCE and numbers["layer"] <= TOLERANCE


def is_good_patch(row):
    """Whether transformers gives the full run's logits with ctxc's patch; none where no patch was computed."""
    patch = row.get("patch")
    if not patch or "reason" in patch:
        return None
    return patch["patched"] <= TOLERANCE and patch["control"] > CONTROL * patch["patched"]


def verdict_of(row):
    """The model's verdict: controllable where all of its layers are."""
    kinds = {layer["verdict"] for layer in row.get("layers") or [] if layer}
    for kind in ("undecided", "rejected", "output-only", "controllable"):
        if kind in kinds:
            return kind
    return "none"


def has_verdict(row):
    return verdict_of(row) in VERDICTS


def cell_of_path(text):
    """Without where a machine keeps its packages."""
    return cell(re.sub(r"\S*/site-packages/", "", text))


def obstacle(row):
    if row.get("reason"):
        text = f"{row['stage']}: {row['reason'].removeprefix('ctxc: error: ')}"
    else:
        text = "; ".join(dict.fromkeys(row.get("reasons", [])))
    text = re.sub(r"\S*/site-packages/", "", text)  # where a machine has them
    text = re.sub(r"whether block '\w+' can take the context into its parameters is undecided: ", "", text)
    return text[:300]


def runs_by(row):
    kept = row.get("runs")
    return "" if kept is None else "program" if kept["mixing"] or kept["op"] else "kernels"


def number(row, key):
    numbers = row.get("numbers")
    if not numbers or (key == "inside" and not numbers["insides"]):
        return ""
    return f"{numbers[key]:.1e}"


def patch_of(row):
    patch = row.get("patch")
    return f"{patch['patched']:.1e}" if patch and "reason" not in patch else ""


def line(row):
    plans = "; ".join(f"`{plan}`" for plan in row["plans"])
    verdict = verdict_of(row) + (" (all)" if row.get("sites") == "all" else "")
    return f"| {row['type']} | {row['ops']} | {len(row['layers'])} | {verdict} | {plans} | {runs_by(row)} | " \
           f"{number(row, 'inside')} | {number(row, 'patched')} | {number(row, 'control')} | {patch_of(row)} |\n"


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def page_of(rows, version, tokens):
    found = [row for row in rows if has_verdict(row)]
    measured = [row for row in found if row.get("numbers")]
    agree = [row for row in measured if is_good(row)]
    patched = [row for row in found if is_good_patch(row) is not None]
    kinds = ", ".join(f"{sum(verdict_of(row) == kind for row in found)} {kind}" for kind in VERDICTS)
    summary = f"Of {len(rows)} types, {len(found)} have a verdict ({kinds}). {len(measured)} were compared with numbers " \
              f"(the others' columns are empty), and {len(agree)} agree with them: what the plan names suffices for " \
              f"{TOLERANCE:g}. ctxc's own patch was added to {len(patched)} of them in transformers, and is exact there to " \
              f"{TOLERANCE:g} in {sum(map(bool, map(is_good_patch, patched)))}. " \
              f"{sum(runs_by(row) == 'kernels' for row in found)} run by ctxc's own kernels."
    text = HEAD.format(version=version, tokens=tokens, summary=summary) + "".join(line(row) for row in found)
    unrun = [row for row in found if "reason" in row.get("patch", {})]
    if unrun:
        text += UNRUN + "".join(f"| {row['type']} | {cell_of_path(row['patch']['reason'])} |\n" for row in unrun)
    kept = [row for row in found if runs_by(row) == "program"]
    if kept:
        text += KEPT + "".join(f"| {row['type']} | " + " | ".join(
            ", ".join(cell(op) for op in row["runs"][kind]) for kind in ("mixing", "op")) + " |\n" for row in kept)
    others = [row for row in rows if not has_verdict(row)]
    if others:
        text += NOT + "".join(f"| {row['type']} | {cell_of_path(obstacle(row))} |\n" for row in others)
    return text


def verdicts_in(page):
    """The verdict of each type that the page has."""
    lines = re.findall(r"^\| (\S+) \| \d+ \| \d+ \| (\S+)(?: \(all\))? \|", page, re.MULTILINE)
    return dict(lines)
