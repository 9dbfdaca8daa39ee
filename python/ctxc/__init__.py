"""ctxc, the context compiler: what a context does to a transformer, as a change of its weights.

>>> import ctxc
>>> model = ctxc.load("examples/models/gemma3-kjv-1m")
>>> ctxc.check(model).patchable
True
>>> patch = ctxc.Context(model, "And David said").patch()
>>> ctxc.verify(model, "And David said").verified
True

A patch is exact for one token at one position: the patched model, which sees that token alone, gives the logits
of the model that sees the whole context. It goes stale with the next token.
"""

try:
    from ctxc._core import __version__
    from ctxc._errors import BadInput, Error, Mismatch, Refused, Undecided
    from ctxc._distil import Distilled, distil
    from ctxc._joint import JointPatch, joint_patch
    from ctxc._context import Context, inspect, positions, verify
    from ctxc._model import Model, check, check_jax, from_module, from_tensors, load
    from ctxc._patch import Origin, ParameterPatch, Patch
    from ctxc._report import CheckReport, Inspection, Verification
    from ctxc import testing
except ImportError as _error:
    # Without the compiled part only ctxc.export and ctxc.jax work, which need none of it; all else says what is missing.
    _missing = "nanobind-backend" if "nanobind" in str(_error) else _error.name or ""
    if _missing not in ("ctxc._core", "nanobind-backend", "numpy"):
        raise

    def __getattr__(name: str) -> object:
        import sys
        if name not in __all__ and name != "testing":
            raise AttributeError(f"module 'ctxc' has no attribute {name!r}")
        instead = ("the package is not compiled here: pip install a wheel, or build it (tools/setup.sh --python && tools/build.sh) and "
                   "set PYTHONPATH=build/python" if _missing == "ctxc._core" else
                   f"{_missing} is not installed for {sys.executable}: pip install 'nanobind-backend>=1.0,<2' 'numpy>=1.26'")
        raise ImportError(f"ctxc.{name}: {instead}", name=_missing)

__all__ = [
    "BadInput", "CheckReport", "Context", "Distilled", "Error", "Inspection", "JointPatch", "Mismatch", "Model", "Origin",
    "ParameterPatch", "Patch", "Refused", "Undecided", "Verification", "__version__", "check", "check_jax", "distil", "from_module",
    "from_tensors", "inspect", "joint_patch", "load", "positions", "verify",
]
