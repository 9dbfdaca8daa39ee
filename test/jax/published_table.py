"""The table of docs/jax.md: what ctxc says of the programs of published_programs.py, and its patches in JAX itself.

  published_table.py CTXC FOLDER [PROGRAM…]"""
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

import ctxc.jax
import published_programs
from ctxc._places import tensors_of

CTXC, FOLDER = sys.argv[1], Path(sys.argv[2])
IDS = np.array([[5, 17, 3, 60, 22, 41, 9, 33]])
POSITIONS = np.arange(IDS.shape[1])[None]


def command(*words):
    return subprocess.run([CTXC, *map(str, words)], capture_output=True, text=True)


def verdicts(checked):
    return sorted(set(re.findall(r"layers? [\d-]+.*: (controllable|output-only|rejected|undecided)", checked.stdout)))


def row(build):
    """Verdict, what runs it, and the largest differences of a logit: ctxc's from JAX's, the patch's in JAX, and without the patch."""
    f, params = build()
    path, patch, logits = (FOLDER / f"{build.__name__}.{end}" for end in ("ctxc", "safetensors", "logits"))
    exported = ctxc.jax.export(f, params, IDS, path)
    checked, sites, said = command("check", path), (), exported.layers
    found = verdicts(checked)
    if checked.returncode == 1:
        sites = "--sites", "all"
        found.append(f"with all {', '.join(verdicts(command('check', path, *sites)))}")
    if exported.tokens:
        said += f", {exported.tokens} tokens"
    by = "program" if "graph.body" in command("import", path).stdout else "kernels"
    read = command("verify", path, "--tokens", ",".join(map(str, IDS[0])), *sites, "--logits", logits, "--force")
    made = command("patch", path, "--tokens", ",".join(map(str, IDS[0])), *sites, "-o", patch, "--force")
    if any(each.returncode == 2 for each in (checked, read, made)):
        return *found, by, said, next(each.stderr.strip().split("\n") for each in (checked, read, made) if each.returncode == 2)

    def last(params, since):
        inputs = [IDS[:, since:], POSITIONS[:, since:]]
        try:
            return np.asarray(jax.jit(f)(params, *inputs)[0, -1]).astype(np.float32)
        except TypeError:
            return np.asarray(jax.jit(f)(params, *inputs[:1])[0, -1]).astype(np.float32)
    wanted, far = last(params, 0), lambda found: f"{np.abs(found - wanted).max():.1e}"
    if made.returncode:
        return *found, by, said, (checked.stdout + checked.stderr + made.stderr).strip().split("\n")
    patched = ctxc.jax.apply_patch(params, patch, path)
    far_of = [far(each) for each in (tensors_of(logits)["full"][0], last(patched, -1), last(params, -1))]
    return (*found, by, said, f"verify {read.returncode}", *far_of)


FOLDER.mkdir(parents=True, exist_ok=True)
for each in published_programs.PROGRAMS:
    if each.__name__ in sys.argv[3:] or len(sys.argv) == 3:
        try:
            made = row(each)
        except Exception as error:
            made = type(error).__name__, str(error)
        expected = published_programs.EXPECTED.get(each, "controllable")
        print("|", each.__name__, "|", expected, "|", *(f"{cell} |" for cell in made), flush=True)
