"""The results of bench/gpu.py: figures compared with their goals, and a page of tables."""

from models import CONTEXT
from page import table

# The goals: figure, comparison, limit. For decoding, a share of the bandwidth that a copy reaches.
GOALS = [("plain, share of copy bandwidth", ">=", 0.85), ("patch applied / plain", "<=", 1.1),
         ("Algorithm 1 / plain", "<=", 1.2), ("PyTorch's Algorithm 1 / ours", ">=", 10)]
PROMPT_GOALS = [("rounded prefill, share of cuBLAS's rate", ">=", 0.6),
                ("patches / prefill", "<=", 2.3)]


def figures(result, model):
    """The four figures of a model that have a goal; None where one was not measured."""
    runs = {label: run["median_ms"] for label, run in model.get("runs", {}).items()}
    peer = model.get("pytorch", {})
    copy = result.get("copy_gbps")
    plain, patch, apply = (runs.get(label) for label in ("plain", "patch", "apply"))
    best = min((ms for what, ms in peer.items() if what.startswith("algorithm1")), default=None)
    return [plain and copy and model["weight_bytes"] / plain / 1e6 / copy,
            plain and apply and apply / plain, plain and patch and patch / plain,
            patch and best and best / patch]


def prompt_figures(result, model):
    """The same for a prompt. Rates count the model's operations, however its products are computed."""
    prompts, rate = model.get("prompts", {}), result.get("matrix_tflops")
    rounded, exact = prompts.get("rounded", {}), prompts.get("exact", {})
    prefill, patches = exact.get("prefill_ms"), exact.get("patches_ms")
    return [rate and rounded.get("prefill_ms") and
            rounded["operations"] / rounded["prefill_ms"] / 1e9 / rate,
            prefill and patches and patches / prefill]


def judged(value, comparison, limit):
    if value is None:
        return "open"
    good = value >= limit if comparison == ">=" else value <= limit
    return f"{value:.2f}" + ("" if good else " (misses)")


def number(value, digits=3):
    return "open" if value is None else f"{value:.{digits}f}"


def claimed(run):
    return f"{run['l_inf']:.1e}, {'same' if run['same_token'] else 'another'}" if run else "open"


def markdown(result):
    lines = [f"# Kernels on {result.get('device', 'no GPU')}", ""]
    lines.append(f"A copy from device to device: {number(result.get('copy_gbps'), 0)} GB/s, read and "
                 f"written. Medians by the device's events; {CONTEXT + 1} visible tokens, bfloat16 "
                 "weights, float32 activations.")
    rows = []
    for name, model in result["models"].items():
        runs, peer = model.get("runs", {}), model.get("pytorch", {})
        ms = lambda label: number(runs.get(label, {}).get("median_ms"))
        rows.append([name, number(model["weight_bytes"] / 1e9, 2) if "weight_bytes" in model else "open",
                     ms("plain"), ms("apply"), ms("patch"), number(peer.get("plain")),
                     number(peer.get("plain_compiled")), number(peer.get("algorithm1")),
                     number(peer.get("algorithm1_tuned")), number(peer.get("algorithm1_compiled"))])
    lines += ["", "## Milliseconds a token", "", table(
        ["model", "weights, GB", "plain", "patch applied", "Algorithm 1, fused", "PyTorch plain",
         "compiled", "PyTorch Algorithm 1", "tuned", "compiled "], rows)]
    rows = [[name] + [judged(value, *goal[1:]) for value, goal in zip(figures(result, model), GOALS)]
            for name, model in result["models"].items()]
    lines += ["", "## Against the goals", "", table(
        ["model"] + [f"{what} ({comparison} {limit})" for what, comparison, limit in GOALS], rows),
        ""]
    lines += prompt_tables(result)
    if result.get("gemv"):
        lines += ["", "## cuBLAS, a matrix times a vector", "", table(
            ["rows × columns", "ms", "GB/s"],
            [[f"{g['rows']} × {g['columns']}", f"{g['ms']:.4f}", f"{g['gbps']:.0f}"]
             for g in result["gemv"]])]
    if result.get("gemm"):
        lines += ["", "## cuBLAS, a matrix times a matrix", "", table(
            ["rows × columns × vectors", "ms", "TFLOP/s"],
            [[f"{g['rows']} × {g['columns']} × {g['vectors']}", f"{g['ms']:.3f}",
              f"{g['tflops']:.0f}"] for g in result["gemm"]])]
    if result["checks"]:
        lines += ["", "## Kernels against the interpreted PTX", "", table(
            ["model", "largest difference", ""],
            [[name, f"{check['difference']:.1e}", "agrees" if check["good"] else "DIFFERS"]
             for name, check in result["checks"].items()])]
        lines += ["", "## The reduced run against the full run, both on the device", "",
                  "L∞ of the logits after a context of 5 tokens, and whether the next token is the "
                  "same: Algorithm 1 fused, a run with the patch alone, and one without it.", "", table(
            ["model", "fused", "patched", "without the patch"],
            [[name] + [claimed(check["claim"].get(run)) for run in ("fused", "apply", "control")]
             for name, check in result["checks"].items()])]
    for tool, said in result["sanitizer"].items():
        lines += ["", f"compute-sanitizer, {tool}: {said['said']}"]
    for name, model in result["models"].items():
        lines += prompt_kernels(name, model)
        kernels = [(label, k) for label, run in model.get("runs", {}).items()
                   for k in run["kernels"]]
        if kernels:
            sums = [f"{label}: {sum(k['median_ms'] for k in run['kernels']):.3f} of "
                    f"{run['median_ms']:.3f} ms" for label, run in model["runs"].items()]
            lines += ["", f"## Kernels of {name}", "",
                      f"Each alone, all layers' launches of it. Together {', '.join(sums)}.", "",
                      table(
                ["kernel", "run", "launches", "ms", "predicted ms", "measured / predicted"],
                [[k["function"], label, k["launches"], f"{k['median_ms']:.4f}",
                  number(k.get("predicted_ms"), 4),
                  number(k["median_ms"] / k["predicted_ms"] if k.get("predicted_ms") else None, 2)]
                 for label, k in kernels])]
    if result["skipped"]:
        lines += ["", "## Not measured", ""]
        lines += [f"- {what}: {why}" for what, why in result["skipped"].items()]
    return "\n".join(lines) + "\n"


def prompt_tables(result):
    rows, judgements = [], []
    for name, model in result["models"].items():
        for form, prompt in model.get("prompts", {}).items():
            prefill = prompt.get("prefill_ms")
            rows.append([name, form, prompt["tokens"], number(prefill, 1),
                         number(prompt.get("patches_ms"), 1) if form == "exact" else "as exact",
                         number(prefill and prompt["operations"] / prefill / 1e9, 0),
                         number(model.get("pytorch", {}).get("prefill"), 1)])
        judgements.append([name] + [judged(value, *goal[1:]) for value, goal in
                                    zip(prompt_figures(result, model), PROMPT_GOALS)])
    return ["## A prompt, milliseconds", "",
            "Patches of all positions beside it, after no kept token; their factors' way to the host "
            "is not in the time. TFLOP/s are the model's, whatever products they are made of: an "
            "exact prompt takes three of bfloat16 for each.", "",
            table(["model", "form", "tokens", "prefill", "patches of all", "TFLOP/s",
                   "PyTorch prefill"], rows), "",
            table(["model"] + [f"{what} ({comparison} {limit})"
                               for what, comparison, limit in PROMPT_GOALS], judgements)]


def prompt_kernels(name, model):
    lines = []
    for form, prompt in model.get("prompts", {}).items():
        for label, run in prompt["runs"].items():
            if not label.endswith("last chunk"):
                continue
            kernels = sorted(run["kernels"], key=lambda k: -k["median_ms"])
            lines += ["", f"## Kernels of {name}, {form}: {label}", "",
                      table(["kernel", "launches", "ms"],
                            [[k["function"], k["launches"], f"{k['median_ms']:.4f}"]
                             for k in kernels])]
    return lines
