#!/usr/bin/env python3
"""Changes every key of a checkpoint's config.json, one by one, and compares ctxc with transformers.

  config_keys.py READER CHECKPOINT... [--shard I/N] [--modules] [--verbose]

For each change (a bool negated, a number changed, a name replaced by another, a key removed; also nested
keys), either ctxc must refuse it with a message that names the key; or both must read the same
weights under the changed config, and their logits must agree. Where transformers itself fails, or finds no
tensor for a parameter, ctxc must refuse too, with any message; where ctxc finds no plan for the
block, there are no logits to compare; and where a stored tensor is not read under the changed config, ctxc
refuses, and transformers computes without it. Thus no key that changes results is overlooked.

With --modules, the imported module is compared instead of
ctxc's logits: where a change leaves the module unchanged, transformers' logits must not change either.
--shard takes only every N-th checkpoint from the I-th on. The results of transformers are cached in the
judges' Python environment, under a digest of everything that they depend on: the versions of transformers and
torch, this program, the checkpoint and the changed config. Exit code: 0 if all of this holds, otherwise 1.
"""

import argparse
import copy
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import format_keys
import judge
import masks
import torch
import transformers

TOKENS = [5, 17, 3, 60, 22, 41, 9, 33, 12, 71, 2, 6]
TOLERANCE = 1e-4
NO_PLAN = "no plan for a block"
UNREAD = "that this family does not read"
# Names that replace a key's value, by the end of the key.
NAMES = {
    "_act": ["relu", "gelu"], "activation": ["relu", "silu"], "_function": ["relu", "silu"],
    "model_type": ["llama", "gpt2"], "rope_type": ["default", "linear", "dynamic", "yarn"],
    "type": ["default", "linear", "dynamic"], "dtype": ["float16"],
}


def other_names(key, value):
    ends = [end for end in NAMES if key.endswith(end)]
    return [name for name in NAMES[max(ends, key=len)] if name != value] if ends else ["other"]


def others(key, value):
    """Values that replace `value`; they are legal as far as the key's name tells."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [3 if key.endswith("token_id") else value + 1, 2 * value + 2]
    if isinstance(value, float):
        return [value * 0.5 + 0.25]
    if isinstance(value, str):
        return other_names(key, value)
    if value is None:
        return [3] if key.endswith("token_id") else [3, 3.5, True]
    if isinstance(value, list) and value:
        first = "sliding_attention" if value[0] == "full_attention" else \
                "full_attention" if value[0] == "sliding_attention" else \
                "local" if value[0] == "global" else \
                others(key, value[0])[0] if others(key, value[0]) else value[0]
        return [[first] + value[1:], value[:-1]]
    return []


def changes(config):
    """(path of keys, changed config) for every change of every key."""
    def walk(path, node):
        for key, value in node.items():
            for new in others(key, value):
                yield path + (key,), new
            if isinstance(value, dict) and key not in ("id2label", "label2id"):
                yield from walk(path + (key,), value)
            yield path + (key,), None

    for path, new in walk((), config):
        changed = copy.deepcopy(config)
        node = changed
        for key in path[:-1]:
            node = node[key]
        if new is None:
            del node[path[-1]]
        else:
            node[path[-1]] = new
        yield path, new, changed


class Answers:
    """The transformers_logits of one checkpoint under many configs, each computed once and kept in a file.
    A file that cannot be read or written costs time, but is not an error."""

    def __init__(self, source):
        digest = hashlib.sha256(f"{transformers.__version__} {torch.__version__}".encode())
        programs = [Path(module.__file__) for module in (judge, masks)] + [Path(__file__)]
        for file in programs + sorted(f for f in source.iterdir() if f.name != "config.json"):
            digest.update(file.read_bytes())
        self.path = Path(os.environ["XDG_CACHE_HOME"]) / "answers" / digest.hexdigest()
        self.new = False
        try:
            self.kept = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.kept = {}

    def of(self, folder):
        key = hashlib.sha256((Path(folder) / "config.json").read_bytes()).hexdigest()
        if key not in self.kept:
            logits, reason = transformers_logits(folder)
            self.kept[key] = [None if logits is None else logits.tolist(), reason]
            self.new = True
        logits, reason = self.kept[key]
        return None if logits is None else torch.tensor(logits), reason

    def keep(self):
        if not self.new:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False) as file:
                file.write(json.dumps(self.kept))
            Path(file.name).replace(self.path)
        except OSError:
            pass


@torch.no_grad()
def transformers_logits(folder):
    """The last token's logits in transformers; None and the reason where it cannot run this."""
    try:
        model, info = judge.load_checkpoint(folder, output_loading_info=True)
        if info["missing_keys"] or info["mismatched_keys"]:
            return None, "parameters without tensors"
        return judge.full_run(model, TOKENS), ""
    except Exception as error:  # a config can cause any exception
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


class Reader:
    """How ctxc reads one checkpoint after another, in one process (read_configs.cpp)."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def read(self, folder):
        """The last token's logits, or the text of the module; None and the message where ctxc refuses. Where
        it finds no plan, the message is NO_PLAN."""
        self.process.stdin.write(f"{folder}\n".encode())
        self.process.stdin.flush()
        kind, _, size = self.process.stdout.readline().decode().partition(" ")
        if not size:
            sys.exit(f"config_keys.py: ctxc ends while it reads {folder}")
        data = self.process.stdout.read(int(size))
        if kind == "logits":
            return torch.frombuffer(bytearray(data), dtype=torch.float64), ""
        if kind == "module":
            return data, ""
        return None, NO_PLAN if kind == "unpatched" else data.decode(errors="replace")


def names_of(path, config):
    """The keys that a message may name: the changed one, one below it, one beside it in a nested object; and
    any key if it is model_type, which determines the meaning of all keys."""
    def below(keys):
        node = config
        for key in keys:
            node = node[key]
        return [".".join(keys + (key,)) for key in node] if isinstance(node, dict) else []

    beside = below(path[:-1]) if len(path) > 1 or path == ("model_type",) else []
    inside = below(path)
    return [path[-1], ".".join(path)] + beside + inside + [name.split(".")[-1] for name in inside]


def is_no_matter(path, reason):
    """Failures of transformers that ctxc need not share: those about a value's type, which only its newest
    versions check, and about the roles of tokens."""
    return reason.startswith("StrictDataclass") or path[-1].endswith("token_id")


def verdict(path, found, message, config, transformers_run, differ):
    """The error in how ctxc reads a change (format_keys.fault). transformers_run() gives transformers' result, or None and a
    reason where it fails; `differ` says in words how the two differ."""
    if found is None and (message == NO_PLAN or UNREAD in message):
        return None
    return format_keys.fault(names_of(path, config), found, message, transformers_run, differ,
                             lambda reason: is_no_matter(path, reason), must_name=False)


def fault(path, folder, reader, config, answers):
    """For a family that ctxc runs: compares the logits."""
    def differ(found, expected):
        linf = (found - expected).abs().max().item()
        return None if linf <= TOLERANCE else f"logits differ by {linf:.3g} from transformers'"

    found, message = reader.read(folder)
    return verdict(path, found, message, config, lambda: answers.of(folder), differ)


def modules_fault(source, reader):
    """For a family that ctxc only checks: either the module changes, or transformers' logits do not."""
    module, message = reader.read(source)
    logits, reason = transformers_logits(source)
    if module is None or logits is None:
        sys.exit(f"config_keys.py: {source}: {message}{reason}")

    def find(path, folder, reader, config, answers):
        def differ(found, expected):
            linf = (expected - logits).abs().max().item()
            return None if found != module or linf <= TOLERANCE else \
                f"the same module, and transformers' logits change by {linf:.3g}"

        found, message = reader.read(folder)
        return verdict(path, found, message, config, lambda: answers.of(folder), differ)

    return find


def faults_of(reader, checkpoint, verbose, modules):
    """The number of changes, and the errors with the changes that caused them."""
    source = Path(checkpoint)
    config = json.loads((source / "config.json").read_text())
    count, faults, answers = 0, [], Answers(source)
    find = modules_fault(checkpoint, reader) if modules else fault
    with tempfile.TemporaryDirectory() as folder:
        for file in source.iterdir():
            if file.name != "config.json":
                (Path(folder) / file.name).symlink_to(file.resolve())
        for path, new, changed in changes(config):
            (Path(folder) / "config.json").write_text(json.dumps(changed))
            count += 1
            what = find(path, folder, reader, config, answers)
            shown = f"{source.name}: {'.'.join(path)}" + \
                    (" taken away" if new is None else f" = {json.dumps(new)}")
            if verbose:
                print(f"{shown}: {what or 'fine'}", flush=True)
            if what:
                faults.append(f"{shown}: {what}")
    answers.keep()
    return count, faults


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", metavar="READER")
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    parser.add_argument("--shard", default="0/1", metavar="I/N")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    transformers.utils.logging.set_verbosity(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    index, parts = map(int, args.shard.split("/"))
    reader = Reader(args.reader, *(["--import"] if args.modules else []))
    bad = 0
    for checkpoint in args.checkpoints[index::parts]:
        count, faults = faults_of(reader, checkpoint, args.verbose, args.modules)
        print(f"{Path(checkpoint).name}: {count} changes, {len(faults)} faults", flush=True)
        for text in faults:
            print("  " + text, flush=True)
        bad += len(faults) + (count == 0)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
