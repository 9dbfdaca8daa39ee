"""Functions of JAX for ctxc: written as a file that it reads, and patches put back into their parameters.

    ctxc.jax.export(f, params, example_ids, "model.ctxc")       # then: ctxc check model.ctxc, ctxc verify, ctxc patch
    ctxc.jax.apply_patch(params, "patch.safetensors", "model.ctxc")

f(params, input_ids) or f(params, input_ids, position_ids) gives logits; params is any tree of arrays, as those of Flax, Haiku and
Equinox are. This needs jax, and neither torch nor ctxc's compiled part. `python -m ctxc.jax my.module:build -o model.ctxc` does the
same from a shell.
"""

from ctxc._program import Unsupported
from ctxc.jax._export import Exported, export
from ctxc.jax._patch import apply_patch
from ctxc.jax._weights import save_weights

__all__ = ["Exported", "Unsupported", "apply_patch", "export", "save_weights"]
