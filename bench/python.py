#!/usr/bin/env python3
"""Measures the Python package beside the programs of the same build.

  PYTHONPATH=build/python build/judges/bin/python bench/python.py build/bin/ctxc build/bin/ctxc-bench MODEL [--rounds N]

MODEL is a Hugging Face directory. Everything runs with one thread, and in processor time, so that what else the machine does
counts little; what is compared is measured in turn. Prints a table:

  a patch         Context.patch() beside ctxc-bench's Algorithm 1, after the same number of tokens
  20 tokens       ctxc.hf.generate on the live module beside `ctxc verify --generate 20`, which makes the same patches and also
                  runs the full model and the control; kernels are compiled before
  memory          what from_module, a context and a patch add to the process, beside the size of the weights
  exactness       largest difference of the patched module's logits from those of the module with the context, and of the
                  unpatched module's; and whether the saved patch is the command's, bit for bit
  start           `import ctxc`, without what ctxc.hf needs, in a process of its own
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CONTEXT = 64


def child_seconds(process):
    """Processor time of a running process."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident():
    """Bytes of this process's own memory: files that it maps do not count."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def patches(arguments, rounds):
    """Seconds of a patch: of the package, of ctxc-bench."""
    import ctxc

    model = ctxc.load(arguments.model, threads=1)
    vocabulary = ctxc.Context(model, [2, 5]).logits().size
    context = ctxc.Context(model, [(7 + 131 * i) % vocabulary for i in range(CONTEXT)] + [5])
    bench = subprocess.Popen([arguments.bench, arguments.model, "--ask", "--threads", "1", "--tokens", "16", "--context",
                              str(CONTEXT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    bench.stdout.readline()
    for _ in range(16):
        context.patch()
    ours, theirs = [], []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(16):
            context.patch()
        ours.append((time.process_time() - start) / 16)
        start = child_seconds(bench)
        print("patch", file=bench.stdin, flush=True)
        bench.stdout.readline()
        theirs.append((child_seconds(bench) - start) / 16)
    bench.stdin.close()
    bench.wait()
    return ours, theirs


def exactness(arguments, module, prompt, folder):
    """What the patched module is off by, what the unpatched one is, and whether the command makes the same patch."""
    import ctxc
    import ctxc.hf
    import torch

    with torch.no_grad():
        full = module(torch.tensor([prompt])).logits[0, -1]
        control = module(torch.tensor([prompt[-1:]]), position_ids=torch.tensor([[len(prompt) - 1]])).logits[0, -1]
    patch = ctxc.Context(ctxc.hf.from_module(module, threads=1), prompt).patch()
    off = [float((logits - full).abs().max()) for logits in (ctxc.hf.patched_logits(module, patch), control)]
    files = [os.path.join(folder, name) for name in ("ours.safetensors", "theirs.safetensors")]
    ctxc.Context(ctxc.load(arguments.model, dtype="f32", threads=1), prompt).patch().save(files[0])
    subprocess.run([arguments.ctxc, "patch", arguments.model, "--dtype", "f32", "--threads", "1", "--tokens",
                    ",".join(map(str, prompt)), "-o", files[1]], capture_output=True, check=True)
    contents = []
    for name in files:
        with open(name, "rb") as file:
            contents.append(file.read())
    same = "is" if contents[0] == contents[1] else "is NOT"
    return f"hf.patched L∞ {off[0]:.1e}, the control {off[1]:.1f}; the saved patch {same} the command's, bit for bit"


def tokens(arguments, rounds, folder):
    """Seconds of 20 tokens: of hf.generate, of the command; what the package adds to memory; how exact it is."""
    import ctxc
    import ctxc.hf
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    module = transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32,
                                                               attn_implementation="eager").eval()
    prompt = [2] + [(7 + 131 * i) % module.config.vocab_size for i in range(CONTEXT)]
    size = sum(tensor.nbytes for tensor in module.parameters())
    with torch.no_grad():
        module(torch.tensor([prompt]))
    list(ctxc.hf.generate(module, None, prompt, tokens=1, threads=1))
    exact = exactness(arguments, module, prompt, folder)
    before = resident()
    model = ctxc.hf.from_module(module, threads=1)
    context = ctxc.Context(model, prompt)
    patch = context.patch()
    added = resident() - before
    del model, context, patch
    ours, theirs = [], []
    for _ in range(rounds):
        start = time.process_time()
        made = [token for token, _ in ctxc.hf.generate(module, None, prompt, tokens=20, threads=1)]
        ours.append(time.process_time() - start)
        begin = os.times()
        report = os.path.join(folder, "report.json")
        subprocess.run([arguments.ctxc, "verify", arguments.model, "--dtype", "f32", "--threads", "1", "--generate", "20",
                        "--tokens", ",".join(map(str, prompt)), "--json", report], capture_output=True, check=True)
        end = os.times()
        theirs.append(end.children_user + end.children_system - begin.children_user - begin.children_system)
        with open(report) as file:
            found = [step["next"] for step in json.load(file)["steps"]]
        if found != made:
            sys.exit(f"the tokens differ: {made}, and {found} of the command")
    memory = (f"from_module, a context of {CONTEXT + 1} tokens and a patch add {added / 1e6:.1f} MB to a process whose weights "
              f"take {size / 1e6:.1f} MB")
    return ours, theirs, [memory, exact]


def start(rounds):
    program = "import time; t = time.perf_counter(); import ctxc; print(time.perf_counter() - t)"
    return statistics.median(float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                                  check=True).stdout) for _ in range(rounds))


def row(name, ours, theirs):
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    return (f"| {name} | {1e3 * statistics.median(ours):.1f} ms | {1e3 * statistics.median(theirs):.1f} ms | {ratio:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ctxc")
    parser.add_argument("bench")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    print("| | in Python | the program | ratio |\n|---|---:|---:|---:|")
    print(row("a patch", *patches(arguments, arguments.rounds)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, notes = tokens(arguments, max(3, arguments.rounds // 2), folder)
    print(row("20 tokens", ours, theirs))
    print("", *notes, f"`import ctxc`: {start(arguments.rounds):.2f} s", sep="\n")


if __name__ == "__main__":
    main()
