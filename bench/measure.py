#!/usr/bin/env python3
"""Measures how exact patches are on Gemma 3 270M, and writes the tables of docs/measurements.md.

  build/judges/bin/python bench/measure.py build/bin/ctxc build/models/gemma-3-270m \\
      build/models/gemma-3-270m-bf16

Six tables: the full run's logits against transformers; what each update costs and how exact it is,
in ctxc and in transformers; each prompt with the default update, with and without kept tokens, in
transformers; generated tokens in float32 and bfloat16; what a check of large models costs (check.py);
how long a run takes to start (start.py). What ctxc reported of each run is kept in --work, and runs
that are found there are not repeated. The sections of the page
that other programs write are not changed.
"""

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "judge"))
import check  # noqa: E402
import judge  # noqa: E402
import logits  # noqa: E402
import start  # noqa: E402
from page import section_of, table, with_section  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

UPDATES = re.findall(r"^CTXC_UPDATE\(\w+, (\w+)", (ROOT / "include/ctxc/Numerics/Updates.def").read_text(), re.M)
KEPT = ["0-3", "1,4-5,9"]
EXPERTS = [ROOT / "test/goldens" / name for name in ("mixtral", "gpt-oss")]
TOKENS = 20


class Runs:
    """Runs ctxc, --jobs at a time, and remembers what it wrote in `work`."""

    def __init__(self, args):
        self.args, self.work = args, Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.prompts = [line for line in Path(args.prompts).read_text().splitlines() if line]
        self.pool = ThreadPoolExecutor(args.jobs)

    def ctxc(self, command, directory, prompt, output, file, *options):
        """A future of the path of the file that the option `output` (-o, --json, --logits) names."""
        return self.pool.submit(self.run, command, directory, prompt, output, self.work / file,
                                options)

    def run(self, command, directory, prompt, output, path, options):
        if path.exists():
            return path
        line = [self.args.ctxc, command, str(directory), "--prompt", self.prompts[prompt],
                output, str(path), *options]
        if self.args.threads:
            line += ["--threads", str(self.args.threads)]
        done = subprocess.run(line, capture_output=True, text=True)
        # A token that does not match gives exit code 1, which is a result, not a failure.
        if done.returncode not in (0, 1) or not path.exists():
            raise RuntimeError(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr}")
        print(f"{path.name}: done", file=sys.stderr, flush=True)
        return path

    def reports(self, name, directory, count, *options):
        """`ctxc verify` on every prompt."""
        return [self.ctxc("verify", directory, i, "--json", f"{name}-{i}.json", "--generate",
                          str(count), *options) for i in range(len(self.prompts))]

    def patches(self, update):
        return [self.ctxc("patch", self.args.f32, i, "-o", f"{update}-{i}.safetensors", "--update",
                          update) for i in range(len(self.prompts))]


def report(future):
    return json.loads(future.result().read_text())


def short(value):
    """The value with two digits, in as few characters as possible; None is a logit that was not finite."""
    if value is None:
        return "not finite"
    text = f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}" if abs(value) < 1e5 else f"{value:.1e}"
    return text.replace("e-0", "e-").replace("e+0", "e")


def worst(values):
    values = list(values)
    return None if None in values else max(values)


class Tables:
    def __init__(self, runs):
        self.runs, self.args = runs, runs.args
        self.start()
        self.judge = judge.Judge(self.args.f32)

    def start(self):
        """Starts all runs of ctxc, in the order in which their results are needed."""
        runs, args = self.runs, self.args
        self.single = {u: runs.reports(f"single-{u}", args.f32, 1, "--update", u) for u in UPDATES}
        self.files = {u: runs.patches(u) for u in UPDATES}
        self.kept = [runs.ctxc("patch", args.f32, 0, "-o", f"kept-{k}.safetensors", "--keep", kept)
                     for k, kept in enumerate(KEPT)]
        self.long = {("float32", "factored", "least"): [
            runs.ctxc("verify", args.f32, i, "--json", f"f32-{i}.json", "--generate", str(TOKENS),
                      "--logits", str(runs.work / f"f32-{i}.safetensors"))
            for i in range(len(runs.prompts))],
                     ("bfloat16", "factored", "least"): runs.reports("bf16", args.bf16, TOKENS)}
        for update in UPDATES:
            self.long["bfloat16", "materialised", update] = runs.reports(
                f"materialised-{update}", args.bf16, TOKENS, "--materialize", "--update", update)

    def measured(self, future):
        path = future.result()
        result = self.judge.measure(judge.read_patch(path, self.judge.model))
        return {key: value if value == value and abs(value) != float("inf") else None
                for key, value in result.items()}

    def logits_table(self):
        rows = []
        for prompt, future in enumerate(self.long["float32", "factored", "least"]):
            expected = logits.transformers_logits(self.judge.model, report(future))
            found = load_file(future.result().with_suffix(".safetensors"))["full"]
            rows.append([prompt + 1, short((found - expected).abs().max().item())])
        return table(["prompt", "L∞"], rows)

    def updates_table(self):
        rows = []
        for update in UPDATES:
            ours = [report(future)["steps"][0] for future in self.single[update]]
            theirs = [self.measured(future)["linf_patched"] for future in self.files[update]]
            norm = ours[0]["norm"]
            replay = max(layer["replayError"] for layer in ours[0]["layers"])
            same = [step["patched"]["linf"] for step in ours]
            rows.append([update, short(norm["matrixNorm"]), short(norm["vectorNorm"]),
                         short(replay), short(same[0]), short(theirs[0]), short(worst(same)),
                         short(worst(theirs))])
        return table(["update", "matrices", "vectors", "predicted", "ctxc", "transformers",
                      "ctxc, worst of five", "transformers, worst of five"], rows)

    def judge_table(self):
        cases = [(i, "none", future) for i, future in enumerate(self.files["least"])]
        cases += [(0, kept, future) for kept, future in zip(KEPT, self.kept)]
        rows = []
        for prompt, kept, future in cases:
            result = self.measured(future)
            rows.append([prompt + 1, kept, short(result["linf_patched"]),
                         short(result["linf_control"])])
        return table(["prompt", "kept positions", "L∞ patched", "L∞ without the patch"], rows)

    def tokens_table(self):
        rows = []
        for (dtype, form, update), futures in self.long.items():
            summaries = [report(future)["summary"] for future in futures]
            steps = sum(s["steps"] for s in summaries)
            matches, control = (sum(s[key] for s in summaries)
                                for key in ("matches", "controlMatches"))
            rows.append([f"{dtype}, {form}", update, f"{100 * matches / steps:.0f} %",
                         f"{100 * control / steps:.0f} %",
                         short(worst(s["linf"] for s in summaries)),
                         short(worst(s["totalVariation"] for s in summaries))])
        return table(["weights, patch", "update", "tokens that match", "unpatched", "worst L∞",
                      "worst total variation"], rows)


TEXT = """# Measurements

Gemma 3 270M (18 layers), the paper's five prompts (`examples/02-gemma-3-270m/prompts.txt`; prompt 1 is
the one about Mars). Activations and sums are float32 throughout. L∞ is the largest difference of a
logit from the run with the whole context; without a patch it is
between {least:.0f} and {most:.0f} here.

All tables were written by

```sh
build/judges/bin/python bench/measure.py build/bin/ctxc build/models/gemma-3-270m build/models/gemma-3-270m-bf16
```

and the command beside each table gives one of its rows.

## The full run against transformers

The logits of the run with context at {tokens} generated tokens, against transformers, both in float32.

```sh
build/judges/bin/python test/judge/logits.py build/bin/ctxc build/models/gemma-3-270m \\
    --prompts examples/02-gemma-3-270m/prompts.txt --generate {tokens} --tolerance 1e-3
```

{logits}

## The updates

Each update splits what a block has to change at its end between the matrix before the post-norm and
the scale after it ([the mathematics](updates.md)). In the program that made the patches, all updates
reproduce the logits. In another program, whose sums round differently, a large factor multiplies a small
difference. Norms (Frobenius, L2) are of all layers' patches together, prompt 1; *predicted* is `ctxc`'s
own estimate of the error in another program, for the worst layer, in units of its output. *transformers*
is the judge: it runs the last token by itself with the patch added to its weights, and its logits are
compared with those of its own run with the context.

```sh
ctxc verify build/models/gemma-3-270m --prompt "$PROMPT" --update least --json report.json
ctxc patch build/models/gemma-3-270m --prompt "$PROMPT" --update least -o patch.safetensors
build/judges/bin/python test/judge/judge.py build/models/gemma-3-270m patch.safetensors
```

{updates}

## Another program

The default update, run in transformers, for each prompt, and with some positions of the context
kept.

```sh
ctxc patch build/models/gemma-3-270m --prompt "$PROMPT" --keep 1,4-5,9 -o patch.safetensors
build/judges/bin/python test/judge/judge.py build/models/gemma-3-270m patch.safetensors
```

{judge}

## Generated tokens

Five prompts, {tokens} tokens each, every one verified in a separate run. *Materialised* adds the patch to
the weights and rounds them to bfloat16, which loses changes that are smaller than the last bit of a
weight.

```sh
ctxc verify build/models/gemma-3-270m-bf16 --prompt "$PROMPT" --generate {tokens} --materialize --update least
```

{generated}

## The check

A check needs only a `config.json`, and no weights. Its cost grows with the number of distinct layer
structures, each of which is analysed once. Times are processor seconds, the best of twenty runs of the
whole command; loading the program takes 0.03 s of them.

```sh
bench/check.py build/bin/ctxc
```

{checked}

## The start

Times are seconds until `ctxc verify` begins to compute, in the very first run, which also hashes the weights, compiles
the kernels and caches them, and in the run after it. `compile` is the time with two threads. *Memory* is the largest
resident set less the weights' files, which are mapped and read once through; 105 MB of it are pages of
the libraries of MLIR and LLVM (125 where they compile), which processes share. Medians of five.

```sh
bench/start.py build/bin/ctxc build/models/gemma-3-270m build/models/gemma-3-270m-bf16 test/goldens/mixtral test/goldens/gpt-oss
```

{started}
"""


def control_range(tables):
    controls = [report(future)["summary"] for future in tables.long["float32", "factored", "least"]]
    return (min(c["controlLinfLeast"] for c in controls), max(c["controlLinf"] for c in controls))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", metavar="CTXC")
    parser.add_argument("f32", metavar="DIRECTORY", help="the checkpoint in float32")
    parser.add_argument("bf16", metavar="DIRECTORY-BF16", help="the same in bfloat16")
    parser.add_argument("--prompts", default=ROOT / "examples/02-gemma-3-270m/prompts.txt")
    parser.add_argument("--work", default=ROOT / "build/measure", metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="runs of ctxc at a time")
    parser.add_argument("--threads", type=int, help="threads of each run")
    parser.add_argument("-o", "--output", default=ROOT / "docs/measurements.md", metavar="FILE")
    args = parser.parse_args()
    tables = Tables(Runs(args))
    updates, judged = tables.updates_table(), tables.judge_table()
    compared, generated = tables.logits_table(), tables.tokens_table()
    least, most = control_range(tables)
    text = TEXT.format(least=least, most=most, tokens=TOKENS, logits=compared, updates=updates,
                       judge=judged, generated=generated, checked=check.check_table(args.ctxc),
                       started=start.start_table(args.ctxc, [args.f32, args.bf16, *EXPERTS]))
    page = Path(args.output)
    page.parent.mkdir(parents=True, exist_ok=True)
    if page.exists():
        old = page.read_text()
        for heading in re.findall(r"^## .*", old, re.M):  # those that other programs write stay
            if heading not in text.splitlines():
                text = with_section(text, heading, section_of(old, heading))
    page.write_text(text)
    print(f"{args.output}: written")


if __name__ == "__main__":
    try:
        main()
    except (judge.BadInput, RuntimeError, OSError) as error:
        sys.exit(f"measure: {error}")
