"""Runs the example's NumPy program on models of many families; it needs nothing but their manifests.

Its logits must be those of the goldens, which are transformers'; and Algorithm 1's patches, applied without the
context, must give the same logits.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

TOLERANCE = 1e-4


def main():
    parser = argparse.ArgumentParser()
    for option in ("ctxc", "example", "goldens", "work"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("families", nargs="+")
    options = parser.parse_args()
    sys.path.insert(0, options.example)
    from ctxc_kernels import Kernels
    from with_numpy import Model, safetensors

    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    failures = 0
    for family in options.families:
        folder, library = pathlib.Path(options.goldens) / family, work / f"{family}.so"
        subprocess.run([options.ctxc, "compile", folder, "--emit=shared", "-o", library], check=True)
        model = Model(Kernels(library), safetensors(folder / "model.safetensors"))
        golden = safetensors(folder / "golden.safetensors")
        tokens, expected = golden["tokens"].tolist(), golden["logits"]

        logits, _ = model.run(tokens, 0)
        errors = {"plain": np.abs(logits - expected).max()}
        *context, token = tokens
        _, states = model.run(context, 0)
        (full, reduced), patches, exact = model.dual(token, len(context), states)
        patched, _ = model.run([token], len(context), patches)
        unpatched, _ = model.run([token], len(context))
        errors |= {"full": np.abs(full - expected[-1]).max(),
                   "reduced": np.abs(reduced - expected[-1]).max(),
                   "patched": np.abs(patched[0] - expected[-1]).max()}
        told = np.abs(unpatched[0] - expected[-1]).max()
        good = exact and all(e <= TOLERANCE for e in errors.values()) and told > 100 * TOLERANCE
        print(family, {name: f"{e:.1e}" for name, e in errors.items()}, f"unpatched {told:.2g}",
              "" if good else "FAILS")
        failures += not good
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
