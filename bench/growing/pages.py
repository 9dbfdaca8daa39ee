"""The section "Growth" of docs/measurements.md."""

from growing import limits
from growing.studies import BUFFER
from page import table

HEADING = "## Growth"
GOAL = 85  # percent of the limit, of a token


def machines(found):
    """Where the records were made, each machine and day once."""
    records = [record for some in found.values() for record in some]
    texts = dict.fromkeys(f"{r['processor']}, {r['threads']} threads" + (f" ({r['note']})" if r["note"] else "")
                          for r in records)
    days = sorted({r["date"] for r in records})
    return "; ".join(texts) + (f"; {days[0]}" + (f" to {days[-1]}" if days[1:] else "") if days else "")


def number(value):
    """Three digits."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def megabytes(count):
    return number(count / 1e6)


def share(limit, took, goal=0):
    percent = f"{100 * limit / took:.0f}"
    return f"{percent} %" if int(percent) >= goal else f"**{percent}** %"


def of_token(found, limit):
    """The cells under TOKEN."""
    return [number(found["plain"]), number(limit), number(found["read_gbps"]), share(limit, found["plain"], GOAL)]


def context_row(record):
    point, found = record["point"], record["found"]
    limit = limits.of_context(found)
    return [point["model"], f"{point['tokens']:,}", *of_token(found, limit), number(found["patch"]),
            megabytes(found["peak"]), megabytes(found["weights"]), megabytes(found["cache"]), megabytes(limits.rest(found))]


def bits_row(record):
    point, found = record["point"], record["found"]
    limit = limits.milliseconds(found)
    return [point["type"], point["arithmetic"], f"{8 * found['bytes'] / found['parameters']:.2f}",
            megabytes(found["bytes"]), *of_token(found, limit), f"{found['patch'] / found['plain']:.2f} ×"]


def positions_row(record):
    point, found = record["point"], record["found"]
    limit = limits.of_positions(found)
    return [f"{point['positions']:,}", number(found["prefill"] / 1e3), number(found["positions"] / 1e3),
            f"{found['positions'] / found['prefill']:.2f} ×",
            number(limit / 1e3) if limit else "–", share(limit, found["positions"]) if limit else "–",
            megabytes(found["file"]), number(found["write"])]


def decoded_row(record):
    (name, value), = record["point"].items()
    found = record["found"]
    limit = limits.milliseconds(found)
    return [value, megabytes(found["bytes"]), *of_token(found, limit), number(found["patch"]),
            f"{found['patch'] / found['plain']:.2f} ×"]


def compile_row(record):
    return [record["point"]["layers"], number(record["found"]["seconds"])]


TOKEN = ["a token, ms", "limit, ms", "memory, GB/s", "share"]
DECODED = ["MB a token reads", *TOKEN, "Algorithm 1, ms", "of a token"]
CONTEXT = ["model", "tokens", *TOKEN, "Algorithm 1, ms", "peak, MB", "weights", "cache", "rest"]
BITS = ["type", "arithmetic", "bits a weight", "MB a token reads", *TOKEN, "Algorithm 1"]
POSITIONS = ["positions", "prompt, s", "patches, s", "of the prompt", "limit, s", "share", "file, MB", "written in, s"]

# Study, text, head, row. A study without points is left out.
PARTS = [
    ("context", """### Context

A token after a context of 512 to 32,768 tokens, in float32: {model}, most of whose layers have windows, and a Llama of 8
layers without windows. The limit reads the weights, and the part of the cache that the token sees, once. *Peak* is the
most memory that the process has had, with the pages of the weights' file, from its start through reading the context;
*cache* counts what a token sees, in float32; *rest* is all else: the program, workspace, and slots of the cache for the
chunk that is read.

![A token's time and the process's memory against the length of the context](growth/context.svg)
""", CONTEXT, context_row),
    ("bits", """### Bits per weight

A Llama of 254 million parameters (16 layers, hidden size 1024), all matrices in one type of GGUF. No type that ctxc reads
has less than 4.25 bits. *Exact* is as exact as float32 ([how](quantised.md#arithmetic)); *integers* is `--integer-products`.
Where types of few bits have a small share, taking their blocks apart takes longer than reading them.

![A token's time against bits per weight](growth/bits.svg)
""", BITS, bits_row),
    ("positions", """### Positions

The patches of all positions of a prompt, of {model} in float32, made in one pass over the prompt. The limit is the larger
of two times: to read the weights once, and to compute both runs at the speed of a product of two matrices (2048 × 2048,
OpenBLAS). *File* is `ctxc patch --positions all` into one file.

![Seconds and bytes of patches against the number of positions](growth/positions.svg)
""", POSITIONS, positions_row),
    ("layers", """### Layers, experts and sizes

Random weights in bfloat16. *Algorithm 1* makes the patches of all layers and runs the patched token. Layers of hidden
size 768:

![A token's time against layers, experts and parameters](growth/models.svg)
""", ["layers", *DECODED], decoded_row),
    ("experts", """
Experts: 4 layers with a mixture each, of which two experts see a token, so that a token reads the same number of bytes
however many experts there are:
""", ["experts", *DECODED], decoded_row),
    ("hidden", """
Sizes, from one million to a billion weights:
""", ["hidden size", *DECODED], decoded_row),
    ("odd", """
Widths that are not a multiple of the SIMD width:
""", ["widths", *DECODED], decoded_row),
    ("compile", """
Seconds to compile with an empty cache: a block is compiled once, no matter how many layers share
it.
""", ["layers", "seconds"], compile_row),
]

TEXT = HEADING + """

How the time of a token grows, beside the *limit* of the machine: what a token needs, read once at the bandwidth of memory,
which is measured after each token (from a buffer of {buffer} MB). *Share* is the limit divided by the time, bold where it is less
than {goal} %. (Models of a few megabytes stay in the caches, which are faster than memory.) In the pictures the limit is
dashed. A token's row is the round of the median share. {machines}.

```sh
tools/build.sh ctxc ctxc-bench
build/judges/bin/python bench/growth.py build build/models/{model} --page docs/measurements.md --plot docs/growth
```

"""


def section(found, model):
    text = TEXT.format(buffer=f"{BUFFER:,}", goal=GOAL, machines=machines(found), model=model)
    for study, about, head, row in PARTS:
        if found[study]:
            text += about.format(model=model) + "\n" + table(head, map(row, found[study])) + "\n"
            text += "\n"
    return text.replace("\n\n\n", "\n\n").rstrip("\n") + "\n"
