"""What published configs say that transformers' config classes do not."""
from __future__ import annotations

from typing import Any

# Keys that no code reads, by type: with the one value that such configs have, where another could mean another model.
KEYS: dict[str, dict[str, Any]] = {
    # What the first checkpoints keep of the code that trained them.
    "starcoder2": {"activation_function": None, "layer_norm_epsilon": None, "mlp_type": "default", "norm_type": "layer_norm"},
}

# What transformers 4 and 5 take differently where it is left out: a config must say it.
AMBIGUOUS = {"cohere": ("theta",)}
