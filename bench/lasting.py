#!/usr/bin/env python3
"""Compares ways to put a context into weights, on the same texts, judged by transformers.

  build/judges/bin/python bench/lasting.py build/bin/ctxc MODEL OUT [--contexts NAME,...] [--methods KEY,...]
                                           [--given FOLDER] [--page docs/distil-measurements.md] [--threads N]

MODEL is a Hugging Face directory of a Gemma 3. The model writes the texts of each context (bench/contexts/*.txt) with
`ctxc distil`; every other method gets the same ones, of the same number of tokens. With --given the texts are FOLDER's:
NAME.context (token ids, the tokenizer's in front too), NAME.jsonl, NAME.held-out.jsonl and unrelated.jsonl. OUT keeps
the texts, the adapters, results.jsonl (a line for each context and method), table.md and plot.svg; --page also writes
the tables and the plot into the page's section. What OUT has already is not measured again: a run that was stopped
goes on. All shares are of this program's own logits, in float32: 1 - KL(full || adapted) / KL(full || plain), the mean
over the tokens of answers that nothing was fitted on. Seconds are the processor's.

Methods: `ctxc distil`, with --refine, and with --entries (PEFT's prefix tuning); PatchKV's formula (a ridge fit of W_down, layer after layer; through the norm
behind it by the same two Gauss-Newton rounds, since the formula has none); the mean of the tokens' exact patches of
W_down; LoRA by Adam with PEFT, of the same matrices and rank, for as long as the closed form takes, and until a fifth
of its texts gets no better; 15 and 30 % of the context kept as tokens, alone, with `ctxc distil`, and with --refine;
the context's second half.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
import transformers

from page import table, write_section

RANK = 16
CONTEXTS = Path(__file__).resolve().parent / "contexts"


def read_texts(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(line["prompt"], line["answer"]) for line in lines]


class Case:
    """A context, its texts, and the model's predictions with it and without it."""

    def __init__(self, args, name):
        self.args, self.name = args, name
        self.folder = args.out / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.front = [args.tokenizer.bos_token_id]
        if args.given:
            self.about = ["--context-tokens", f"@{args.given / name}.context"]
            self.text, self.held_out, self.all_unrelated = (
                args.given / file for file in (f"{name}.jsonl", f"{name}.held-out.jsonl", "unrelated.jsonl"))
            self.context = [int(token) for token in (args.given / f"{name}.context").read_text().split()]
        else:
            self.about = ["--context", CONTEXTS / f"{name}.txt"]
            self.write_texts()
            tokens = args.tokenizer(CONTEXTS.joinpath(f"{name}.txt").read_text())["input_ids"]
            self.context = tokens if tokens[0] == self.front[0] else self.front + tokens
        self.train, self.held = read_texts(self.text), read_texts(self.held_out)
        self.unrelated = read_texts(self.all_unrelated)[1::2]  # the others are protected

    def write_texts(self):
        written = self.folder / "written"
        if not written.exists():
            self.distil("written", "--tokens", str(self.args.tokens))
        self.text, self.held_out = written / "texts.jsonl", written / "held-out.jsonl"
        self.all_unrelated = self.folder / "unrelated.jsonl"
        both = zip(*((written / file).read_text().splitlines() for file in ("protected.jsonl", "unrelated.jsonl")))
        self.all_unrelated.write_text("".join(f"{line}\n" for pair in both for line in pair))

    def distil(self, folder, *options):
        rank = [] if "--entries" in options else ["--rank", str(RANK)]
        command = [self.args.ctxc, "distil", self.args.model, *self.about, "--anyway", *rank,
                   "--threads", str(self.args.threads), "-o", self.folder / folder, *options]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)

    def same_texts(self):
        return ["--text", self.text, "--held-out", self.held_out, "--unrelated", self.all_unrelated]


def logits_of(model, front, texts, answers_only=True):
    """The logits that predict the texts' tokens (of answers alone), each text after `front`."""
    rows = []
    for prompt, answer in texts:
        tokens = front + prompt + answer
        first = len(front) + (max(len(prompt), 1) if answers_only else 1)
        out = model(torch.tensor([tokens]), logits_to_keep=len(tokens) - first + 1).logits[0, :-1]
        rows.append(out)
    return torch.cat(rows)


def divergence(truth, other):
    p = truth.log_softmax(-1)
    return (p.exp() * (p - other.log_softmax(-1))).sum(-1)


class Judge:
    def __init__(self, model, case):
        self.case = case
        with torch.no_grad():
            self.full = logits_of(model, case.context, case.held)
            self.plain = divergence(self.full, logits_of(model, case.front, case.held))
            self.still = logits_of(model, case.front, case.unrelated)
            self.own = divergence(self.still, logits_of(model, case.context, case.unrelated)).mean()

    @torch.no_grad()
    def __call__(self, model, front=None):
        front = self.case.front if front is None else front
        kl = divergence(self.full, logits_of(model, front, self.case.held))
        hot = self.plain > 1
        drift = divergence(self.still, logits_of(model, front, self.case.unrelated)).mean()
        return {"share": float(1 - kl.mean() / self.plain.mean()), "dependent": float(1 - kl[hot].mean() / self.plain[hot].mean()),
                "drift": float(drift / self.own)}


# ---- methods that are not ours ----------------------------------------------------------------------------------------


def down_inputs(model, layer, front, texts):
    """What W_down of a layer reads, the stream in front of the MLP and the layer's output, at the texts' tokens."""
    decoder = model.model.layers[layer]
    seen = {}
    hooks = [decoder.mlp.down_proj.register_forward_pre_hook(lambda _, x: seen.__setitem__("h", x[0][0])),
             decoder.pre_feedforward_layernorm.register_forward_pre_hook(lambda _, x: seen.__setitem__("v", x[0][0])),
             decoder.register_forward_hook(
                 lambda _, __, y: seen.__setitem__("x", (y[0] if isinstance(y, tuple) else y).reshape(-1, model.config.hidden_size)))]
    rows = []
    for prompt, answer in texts:
        model.model(torch.tensor([front + prompt + answer]), use_cache=False)
        rows.append({key: value[len(front):].clone() for key, value in seen.items()})
    for hook in hooks:
        hook.remove()
    return {key: torch.cat([row[key] for row in rows]) for key in rows[0]}


def solve_down(weight, norm, h, target, mean):
    """The change of W_down with which the norm of its product is the target: a ridge fit, or the mean of rank-1 patches."""
    scale, eps = 1 + norm.weight, norm.eps
    product = h @ weight.T
    change = torch.zeros_like(weight)
    tau = 0.1 * scale.abs().median() ** 2
    kernel = h @ h.T
    ridge = 1e-2 * kernel.square().sum() / kernel.trace()
    kernel.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(kernel)
    for _ in range(1 if mean else 2):
        d = product + h @ change.T
        length = (d.square().mean(-1, keepdim=True) + eps).sqrt()
        n = d / length
        error = target - scale * n
        step = scale * error / (scale.square() + tau)
        step = step - n * (n * step).mean(-1, keepdim=True)
        step = step / (1 + (step.square().mean(-1, keepdim=True).sqrt() / 2) ** 2).sqrt()
        wanted = length * (n + step) - product
        if mean:
            return wanted.T @ (h / h.square().sum(-1, keepdim=True)) / len(h)
        change = torch.cholesky_solve(wanted, factor).T @ h
    return change


@torch.no_grad()
def fit_down(model, case, mean=False):
    """Changes `model`, layer after layer, the layers below already changed."""
    goals = [down_inputs(model, layer, case.context, case.train)["x"] for layer in range(model.config.num_hidden_layers)]
    for layer, goal in enumerate(goals):
        rows = down_inputs(model, layer, case.front, case.train)
        decoder = model.model.layers[layer]
        weight = decoder.mlp.down_proj.weight
        weight += solve_down(weight, decoder.post_feedforward_layernorm, rows["h"], goal - rows["v"], mean)


def lora(model, case, seconds=None, rate=1e-3, patience=4, most=400):
    """LoRA of W_o and W_down by Adam on the KL; a fifth of the texts decides when to stop."""
    import peft
    config = peft.LoraConfig(r=RANK, lora_alpha=RANK, target_modules=["o_proj", "down_proj"])
    with torch.no_grad():
        truths = [logits_of(model, case.context, [text], False) for text in case.train]
    adapted = peft.get_peft_model(model, config)
    held = max(1, len(case.train) // 5) if seconds is None else 0
    fitted = list(zip(case.train, truths))[held:]
    optimiser = torch.optim.Adam([p for p in adapted.parameters() if p.requires_grad], lr=rate)
    start, best, worse, steps = time.process_time(), None, 0, 0
    while steps < most:
        for text, truth in fitted:
            if seconds is not None and time.process_time() - start > seconds:
                return adapted, steps
            loss = divergence(truth, logits_of(adapted, case.front, [text], False)).mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            steps += 1
        if seconds is None:
            with torch.no_grad():
                now = sum(float(divergence(truth, logits_of(adapted, case.front, [text], False)).sum())
                          for text, truth in zip(case.train[:held], truths))
            if best is not None and now >= best[0]:
                worse += 1
                if worse == patience:
                    break
            else:
                best, worse = (now, {k: v.clone() for k, v in adapted.state_dict().items() if "lora_" in k}), 0
    if best is not None:
        adapted.load_state_dict(best[1], strict=False)
    return adapted, steps


# ---- the run ----------------------------------------------------------------------------------------------------------


def fresh(args):
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32, attn_implementation="eager")
    model.requires_grad_(False)
    return model.eval()


def with_adapter(args, folder):
    import peft
    return peft.PeftModel.from_pretrained(fresh(args), str(folder)).eval()


def measure_ours(args, case, judge, folder, *options):
    if not (case.folder / folder).exists():
        case.distil(folder, *case.same_texts(), *options)
    card = json.loads((case.folder / folder / "card.json").read_text())
    return {**judge(with_adapter(args, case.folder / folder), card["prefix"]), "numbers": card["numbers"],
            "seconds": card["fit"]["processor_seconds"], "card": card["share_recovered"]}


def methods(args, case, judge):
    """Key, name and function of each; a function gives a line's numbers."""
    def ours(folder, *options):
        return lambda: measure_ours(args, case, judge, folder, *options)

    def timed(function):
        start = time.process_time()
        model = function()
        seconds = time.process_time() - start
        return {**judge(model), "seconds": seconds}

    def down(mean):
        model = fresh(args)
        return timed(lambda: (fit_down(model, case, mean), model)[1]) | {
            "numbers": sum(layer.mlp.down_proj.weight.numel() for layer in model.model.layers)}

    def by_adam(equal_time):
        seconds = ours("closed")()["seconds"] if equal_time else None
        model = fresh(args)
        return timed(lambda: lora(model, case, seconds)[0])

    def kept_alone(share):
        ours(f"kept{share}", "--keep-share", str(share / 100))()
        prefix = json.loads((case.folder / f"kept{share}" / "card.json").read_text())["prefix"]
        return judge(fresh(args), prefix)

    refine = ["--refine", str(args.refine)]
    half = case.front + case.context[1 + len(case.context) // 2:]
    yield "closed", "`ctxc distil`", ours("closed")
    yield "refined", f"`--refine {args.refine}`", ours("refined", *refine)
    for share in (15, 30):
        keep = ["--keep-share", str(share / 100)]
        yield f"kept{share}-alone", f"{share} % of the tokens kept, alone", lambda: kept_alone(share)
        yield f"kept{share}", f"`--keep-share {share / 100}`", ours(f"kept{share}", *keep)
        yield (f"kept{share}-refined", f"`--keep-share {share / 100} --refine {args.refine}`",
               ours(f"kept{share}-refined", *keep, *refine))
    for count in (16, 32):
        yield f"entries{count}", f"`--entries {count}`", ours(f"entries{count}", "--entries", str(count))
    yield "patchkv", "ridge of W_down (PatchKV)", lambda: down(False)
    yield "mean", "mean of token patches", lambda: down(True)
    yield "lora-equal", "LoRA by Adam, equal time", lambda: by_adam(True)
    yield "lora", "LoRA by Adam, until it stops improving", lambda: by_adam(False)
    yield "half", "the context's second half", lambda: judge(fresh(args), half)


def tables(lines):
    """The methods' means over their contexts, and every context's share."""
    names = list(dict.fromkeys(line["method"] for line in lines))
    contexts = list(dict.fromkeys(line["context"] for line in lines))
    means, shares = [], []
    for name in names:
        own = {line["context"]: line for line in lines if line["method"] == name}
        mean = lambda key: sum(line[key] for line in own.values()) / len(own)  # noqa: E731
        timed = all("seconds" in line for line in own.values())
        means.append([name, len(own), f"{100 * mean('share'):.1f} %",
                      f"{100 * min(line['share'] for line in own.values()):.1f} %", f"{100 * mean('dependent'):.1f} %",
                      f"{mean('drift'):.2f}", f"{mean('seconds'):.0f}" if timed else ""])
        shares.append([name] + [f"{100 * own[context]['share']:.1f}" if context in own else "" for context in contexts])
    head = ["", "contexts", "share recovered", "worst", "of the most dependent tokens", "drift, of the context's own",
            "processor seconds"]
    return table(head, means) + "\n\n" + table(["share recovered, %", *contexts], shares)


def plot(lines, path):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    names = list(dict.fromkeys(line["method"] for line in lines))
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(names) + 1.2))
    for row, name in enumerate(reversed(names)):
        shares = [100 * max(line["share"], -0.5) for line in lines if line["method"] == name]
        axes.plot(shares, [row] * len(shares), "o", color="#7aa6c2", alpha=0.7)
        axes.plot([sum(shares) / len(shares)], [row], "|", color="#1b4965", markersize=18, markeredgewidth=2.5)
    axes.set_yticks(range(len(names)), [name.replace("`", "") for name in reversed(names)])
    axes.set_xlabel("share of the context's effect recovered, % (each context, and the mean)")
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


HEADING = "## Methods side by side"
TEXT = HEADING + """

{model} in float32, rank {rank}, one run of each method on the same texts, {note}. All shares are of transformers' own
logits, which are asked for the tokens of answers that nothing was fitted on.

```sh
build/judges/bin/python bench/lasting.py build/bin/ctxc MODEL OUT --page docs/distil-measurements.md
```

{tables}

![each method's shares](lasting.svg)
"""


def run(args, lines, add):
    """Measures what `lines` has not."""
    for name in args.contexts.split(","):
        case = Case(args, name)
        judge = None
        for key, method, function in methods(args, case, lambda *a: judge(*a)):
            wanted = not args.methods or key in args.methods.split(",")
            if not wanted or any(line["context"] == name and line["method"] == method for line in lines):
                continue
            judge = judge or Judge(fresh(args), case)
            add({"context": name, "method": method, **function()})


def main(args):
    results = args.out / "results.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []

    def add(line):
        print(json.dumps(line), flush=True)
        lines.append(line)
        with results.open("a") as file:
            file.write(json.dumps(line) + "\n")

    run(args, lines, add)
    (args.out / "table.md").write_text(tables(lines) + "\n")
    plot(lines, args.out / "plot.svg")
    if args.page:
        write_section(args.page, HEADING, TEXT.format(
            model=args.model.name, rank=RANK, note=args.note, tables=tables(lines)))
        plot(lines, args.page.parent / "lasting.svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--contexts", metavar="NAME,...")
    parser.add_argument("--methods", metavar="KEY,...", help="closed, refined, kept15-alone, kept15, ..., lora, half")
    parser.add_argument("--given", type=Path, metavar="FOLDER", help="texts in place of those that the model writes")
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--refine", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--note", default="one thread", help="what to say of the machine")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="docs/distil-measurements.md")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    given = arguments.given.glob("*.context") if arguments.given else CONTEXTS.glob("*.txt")
    arguments.contexts = arguments.contexts or ",".join(sorted(path.stem for path in given))
    sys.exit(main(arguments))
