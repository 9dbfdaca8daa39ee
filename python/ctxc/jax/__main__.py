"""Writes a function of JAX as a .ctxc file, for `ctxc check model.ctxc`:

    python -m ctxc.jax my_package.my_file:build -o model.ctxc

`build()` returns f and its parameters, or f, parameters and example ids of shape (1, tokens): f(params, input_ids) or
f(params, input_ids, position_ids) gives logits of shape (1, tokens, words). Activations (1, tokens, …) as an example make a block.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np

EXAMPLE = np.arange(1, 9)[None]


def main() -> None:
    sys.path.insert(0, ".")
    parser = argparse.ArgumentParser(prog="python -m ctxc.jax", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="MODULE:FUNCTION", help="a function of Python that returns f, its parameters, and maybe an example")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write, a .ctxc")
    given = parser.parse_args()
    module, _, name = given.source.partition(":")
    if not name or not given.output.endswith(".ctxc"):
        parser.error(f"found {given.source!r} and {given.output!r}; expected MODULE:FUNCTION, and a file that ends in .ctxc")
    try:
        from ctxc.jax import Unsupported, export
    except ModuleNotFoundError as missing:
        raise SystemExit(f"ctxc.jax: {missing.name} is not installed; expected jax: pip install 'ctxc[jax]'") from None
    try:
        build = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as missing:
        raise SystemExit(f"ctxc.jax: {given.source}: {missing}") from None
    made = build()
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise SystemExit(f"ctxc.jax: {given.source} returned a {type(made).__name__}; expected (f, params) or (f, params, example)")
    try:
        exported = export(made[0], made[1], made[2] if len(made) == 3 else EXAMPLE, given.output)
    except Unsupported as refusal:
        raise SystemExit(f"ctxc.jax: {refusal}") from None
    length = f", for {exported.tokens} tokens alone" if exported.tokens else ""
    apart = "; no value separates its layers, which are judged as one" if exported.layers == "nothing" else ""
    print(f"{exported.path}: {exported.ops} ops{length}{apart}")


if __name__ == "__main__":
    main()
