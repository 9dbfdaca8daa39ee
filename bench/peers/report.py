"""The tables and the plot of results.json (results.py)."""

import results as r
from page import table

HEADING = "## Beside others"


def number(value):
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}"


def percent(value):
    return "–" if value is None else f"{100 * value:.0f} %"


def at_least(share, goal):
    """A share; bold where it is below its goal."""
    if share is None or share >= goal:
        return percent(share)
    return f"**{100 * share:.0f}** %"


def factor(setup, comparison):
    """How many times faster ctxc is; bold where that is less than the goal."""
    ratio, goal = r.ratio(setup, comparison), comparison.goal(setup)
    if ratio is None:
        return "–"
    text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"
    return f"{text} (≥ {goal:g})" if ratio >= goal else f"**{text}** (≥ {goal:g})"


def limited(value, limit):
    """A factor; bold where it is above its limit."""
    if value is None:
        return "–"
    return f"{value:.2f} × (≤ {limit})" if value <= limit else f"**{value:.2f}** × (≤ {limit})"


def comparison_table(setups, name, value, ours={}, last={}):
    """A table: ctxc's value, and each peer's value with ctxc's factor over it. Further columns,
    {heading: function of a setup}, come last."""
    comparisons = r.TABLES[name]
    head = ["model", "threads", "ctxc", *ours]
    for comparison in comparisons:
        head += [comparison.label, "faster by"]
    head += last
    rows = []
    for setup in setups:
        row = [r.title(setup), str(setup["threads"]), number(value(setup, r.ours(setup, name))),
               *(cell(setup) for cell in ours.values())]
        for c in comparisons:
            row += [number(value(setup, r.theirs(setup, c.program, c.measurement))),
                    factor(setup, c)]
        rows.append(row + [cell(setup) for cell in last.values()])
    return table(head, rows)


def plain_table(setups):
    return comparison_table(setups, "plain", milliseconds,
        {"of bandwidth": lambda s: at_least(r.share_of_bandwidth(s), 0.85)},
        {"llama.cpp of bandwidth": lambda s: percent(r.their_share_of_bandwidth(s, r.LLAMA_CPP))})


def decode_table(setups):
    """How much longer decoding takes with patches."""
    columns = [("apply", 1.05), ("patches", 1.15), ("patch", 1.3)]
    return table(
        ["model", "threads", "plain, ms", "applying patches", "making those of all layers",
         "Algorithm 1 whole"],
        [[r.title(setup), str(setup["threads"]), number(r.ours(setup, "plain")),
          *(limited(r.decode_factor(setup, name), limit) for name, limit in columns)]
         for setup in setups])


def prefill_table(setups):
    return comparison_table(setups, "prefill", tokens_per_second,
        {"ctxc, rounded":
         lambda s: number(tokens_per_second(s, r.ours(s, "prefill", r.ROUNDED)))},
        {"with all patches": lambda s: limited(r.positions_factor(s), 2.3)})


def milliseconds(setup, value):
    return value


def tokens_per_second(setup, value):
    return None if value is None else setup["prefill"] / value * 1e3


def medians(run):
    for benchmark in run["benchmarks"]:
        if "error_occurred" in benchmark:
            raise ValueError(f"{benchmark['name']}: {benchmark['error_message']}")
        if benchmark.get("aggregate_name") == "median":
            yield benchmark


def gemm_table(runs):
    """GFLOP/s by matrix: float32, and vectors rounded to bfloat16."""
    columns = [("ctxc", "f32"), ("OpenBLAS", "f32"), ("oneDNN", "f32"), ("ctxc", "bf16"),
               ("ctxc-rounded", "bf16"), ("oneDNN-rounded", "bf16")]
    rows = []
    for threads, run in runs.items():
        speeds = {}
        for benchmark in medians(run):
            library, dtype, shape = benchmark["run_name"].split("/")[:3]
            speeds.setdefault(shape, {})[library, dtype] = benchmark["GFLOPS"]
        for shape, found in speeds.items():
            sizes = [int(size) for size in shape.split("x")]
            rows.append(((sizes, int(threads)), [shape.replace("x", " × "), threads,
                                                 *(number(found.get(c)) for c in columns)]))
    head = ["W", "threads", *(f"{library.replace('-', ', ')}, {dtype}" for library, dtype in columns)]
    return table(head, [row for _, row in sorted(rows)])


def gemv_speeds(run):
    """(shape, type, streams): {library: GB/s of the matrix}, of each library's fastest way."""
    found = {}
    for benchmark in medians(run):
        library, dtype, shape, streams = benchmark["run_name"].split("/")[:4]
        speeds = found.setdefault((shape, dtype, streams.removeprefix("S")), {})
        library = library.split("-")[0]
        speeds[library] = max(speeds.get(library, 0), benchmark["bytes_per_second"] / 1e9)
    return found


def gemv_table(runs):
    """GB/s by matrix and type, of one vector and of two; the best of memory beside it."""
    libraries = ["ctxc", "Eigen", "OpenBLAS"]
    rows = []
    for threads, run in runs.items():
        speeds = gemv_speeds(run)
        for shape, dtype in {key[:2] for key in speeds}:
            cells = [number(speeds.get((shape, dtype, vectors), {}).get(library))
                     for vectors in ("1", "2") for library in libraries]
            sizes = [int(size) for size in shape.split("x")]
            rows.append(((sizes, dtype != "f32", int(threads)),
                         [shape.replace("x", " × "), dtype, threads, *cells,
                          number(float(run["context"]["read_gbps"]))]))
    head = ["W", "type", "threads", *libraries, *(f"{name}, 2" for name in libraries), "memory"]
    return table(head, [row for _, row in sorted(rows)])


TEXT = HEADING + """

The same weights, on the same threads, in one run: rounds of everything, one program after the other, each
peer between two runs of ctxc, and medians over the rounds, {rounds} of a setup. {machine}

```sh
tools/setup.sh --bench && tools/build.sh ctxc-bench ctxc-gemv ctxc-gemm
PYTHON=build/judges/bin/python bench/peers/build_llama_cpp.sh build/llama.cpp
build/judges/bin/python bench/side_by_side.py build build/models/gemma-3-270m build/models/gemma-3-270m-bf16 \\
    -o build/side-by-side.json --page docs/measurements.md --plot docs/side-by-side.svg
```

*Faster by* is the median of the ratios of a peer's time to the mean of the two ctxc runs beside it; the goal follows in
parentheses, and a figure that misses its goal is bold. (Memory's speed changes within seconds here: {speeds} GB/s in these
rounds, {most} threads. Medians of times were taken at different moments, so compare the ratios.) [What is
compared](#what-is-compared) says how.

![Times of a token in units of one read of the weights](side-by-side.svg)

The whole of Algorithm 1, in milliseconds: a token's patches of all layers, and the patched model's
logits.

{patch}

Plain decoding, milliseconds a token. *Of bandwidth* (≥ 85 %) is the time in which memory can deliver
the weights once, measured before and after each token, as a share of the time that the token took:
where a peer is near 100 %, little can be gained.

{plain}

What patches add to decoding, in units of plain decoding of the same token: *applying* a patch of all layers;
*making* the patches, which takes both runs through all layers and writes every factor; and the *whole* of
Algorithm 1, which ends in the logits of both runs.

```sh
tools/build.sh ctxc-bench && build/bin/ctxc-bench build/models/gemma-3-270m --threads 2
```

{decode}

Prefill of {prefill} tokens, tokens a second. For a bfloat16 model, the other programs round every
activation to bfloat16. *Rounded* is ctxc with `--round-prompts`, which also does so where activations
are multiplied with weights; this is the figure that is compared. *With all patches* is the time for the
patches of every position, in units of the prefill without rounding.

{prefilled}
{products}
### What is compared

- **ctxc**: `ctxc-bench`, the compiled kernels; both runs and the head in one sweep over the weights.
- **PyTorch** {torch} with transformers {transformers}, {context} tokens of context in its cache: its own
  decoding (scaled-dot-product attention, inference mode, last logits only), and Algorithm 1 as a user would
  write it on top ([`algorithm1.py`](../bench/peers/algorithm1.py)): a run that records, a reduced run whose
  forward hooks patch layer by layer, a run that verifies. *Factored* applies u (vᵀ z) beside the
  weights, *materialised* adds the rank-1 matrices to the weights, and restores the weights afterwards.
  *Tuned* is the same with fewer bytes moved: the reduced run computes no logits, and one operation writes a
  patched matrix into a buffer of its own. Each checks that its patched logits are the full run's before it
  is timed.
- **llama.cpp** (of {llama}, built for this processor), its own `llama-bench`,
  on GGUF files that its own tools made from the same checkpoint, with the fastest of its options for
  attention and loading.
- **Llama 260M** has random weights, made by a script
  ([`random_llama.py`](../bench/peers/random_llama.py)): 16 layers, vocabulary 32,000.
- **memory**: [`Bandwidth.h`](../include/ctxc/Runtime/Bandwidth.h), the best of twenty-four ways to read a buffer of ten
  times the last-level cache, in small and in large pages; the fastest of them is then measured again with every token
  that ctxc decodes. Before each setup, the checkpoint is dropped from the page cache, as if the machine had just
  started. ctxc asks for large pages and reads the file first; others that map the file then get the same pages.
"""

GEMV = """
One matrix, read from memory, times one vector or two at once: GB/s of the matrix's bytes. For two
vectors, Eigen and OpenBLAS use the faster of one matrix product and two matrix-vector products. Eigen
has no threads here, and neither has bfloat16 matrices with float32 vectors.

```sh
tools/setup.sh --bench && tools/build.sh ctxc-gemv && build/bin/ctxc-gemv --threads=2
```

{table}
"""


GEMM_ROWS = 512  # the rows of ctxc-gemm
GEMM = """
One matrix times the {prefill} vectors of a prompt: GFLOP/s. *Rounded*: the vectors are rounded to bfloat16,
and the time includes this. A product of ctxc has 16 partial sums, one in each lane, as that of a decoded token, so that
results do not depend on how a prompt is divided; adding these at the end is work that oneDNN, with a product in each lane, does
not have.

```sh
tools/setup.sh --bench && tools/build.sh ctxc-gemm && build/bin/ctxc-gemm --threads=2
```

{table}
"""


def section(results):
    """The section of docs/measurements.md, in Markdown."""
    setups = sorted(results["setups"].values(),
                    key=lambda s: (s["model"], s["dtype"] != "f32", s["threads"]))
    about = next((s["about"] for s in setups if "torch" in s.get("about", {})), {})
    gemv, gemm = results.get("gemv"), results.get("gemm")
    counts = {len(setup["rounds"]) for setup in setups}
    most = max(setup["threads"] for setup in setups)
    speeds = [each["decode"]["read_gbps"] for setup in setups if setup["threads"] == most
              for each in setup["rounds"]]
    return TEXT.format(
        rounds=" to ".join(map(str, sorted({min(counts), max(counts)}))),
        speeds=" to ".join(number(speed) for speed in (min(speeds), max(speeds))), most=most,
        machine=results["machine"]["text"], patch=comparison_table(setups, "patch", milliseconds),
        plain=plain_table(setups), decode=decode_table(setups), prefill=setups[0]["prefill"],
        prefilled=prefill_table(setups),
        context=setups[0]["context"], torch=about.get("torch", "–"),
        transformers=about.get("transformers", "–"), llama=results["machine"]["llama.cpp"],
        products=(GEMV.format(table=gemv_table(gemv)) if gemv else "")
        + (GEMM.format(table=gemm_table(gemm), prefill=GEMM_ROWS) if gemm else ""))
