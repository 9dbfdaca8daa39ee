"""Writes weights of a JAX program as `--weights` reads them:

    python -m ctxc.jax.weights CHECKPOINT model.ctxc -o FOLDER     # then: ctxc verify model.ctxc --weights FOLDER

CHECKPOINT is a directory of Orbax, or a .msgpack file of Flax; model.ctxc was exported from the same model, with or without numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Iterable

from ctxc.jax import save_weights


def read_checkpoint(path: str) -> Any:
    """The tree of a checkpoint of Orbax or Flax."""
    if not os.path.exists(path):
        raise SystemExit(f"ctxc.jax.weights: {path}: no such file or directory; expected a directory of Orbax, or a .msgpack file of Flax")
    needed = "orbax.checkpoint" if os.path.isdir(path) else "flax"
    try:
        if os.path.isdir(path):
            import orbax.checkpoint as orbax
            return orbax.PyTreeCheckpointer().restore(os.path.abspath(path))
        from flax import serialization
        return serialization.msgpack_restore(Path(path).read_bytes())
    except ModuleNotFoundError as missing:
        raise SystemExit(f"ctxc.jax.weights: {missing.name} is not installed; expected {needed} for {path}") from None
    except Exception as problem:  # each library says it by many types
        said = str(problem).strip().partition("\n")[0] or type(problem).__name__
        raise SystemExit(f"ctxc.jax.weights: {path}: {needed} does not read it: {said}") from None


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m ctxc.jax.weights", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a directory of Orbax, or a .msgpack file of Flax")
    parser.add_argument("program", help="the .ctxc file that was exported from the same model")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder to write")
    given = parser.parse_args(None if arguments is None else list(arguments))
    try:
        save_weights(read_checkpoint(given.checkpoint), given.program, given.output)
    except (ValueError, OSError) as problem:
        raise SystemExit(f"ctxc.jax.weights: {problem}") from None
    print(f"{given.output}: weights for {given.program}")


if __name__ == "__main__":
    main(sys.argv[1:])
