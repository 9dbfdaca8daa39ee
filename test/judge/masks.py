"""What a token sees, by absolute positions: transformers goes by cache slots, which differ from
positions once tokens between are left out."""

import sys

import torch


def masks(config, queries, keys):
    """Additive masks from absolute positions, as the model's forward takes them.

    transformers' own masks count cache slots: where tokens between are left out, a window would reach
    too far back.
    """
    distance = torch.tensor(queries)[:, None] - torch.tensor(keys)[None, :]

    def additive(seen):
        blocked = torch.finfo(torch.float32).min
        return torch.where(seen, 0.0, blocked)[None, None]

    full = additive(distance >= 0)
    types = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None)
    if not window or (types and "sliding_attention" not in types):
        return full
    window = additive((distance >= 0) & (distance < window))
    if not types:  # as in Mistral: all layers have the window
        return window
    return {"full_attention": full, "sliding_attention": window}


def place_local_masks(model, positions, cached):
    """GPT-Neo's local layers have a mask of slots, of which a run takes its last rows: here, of
    positions."""
    keys = torch.tensor(cached + positions)
    distance = keys[:, None] - keys[None, :]
    for layer in model.modules():
        if getattr(layer, "attention_type", None) == "local" and hasattr(layer, "bias"):
            layer.bias = ((distance >= 0) & (distance < layer.config.window_size))[None, None]


def place_slopes(model, keys):
    """ALiBi counts slots; here, positions."""
    if hasattr(model, "get_base_model"):  # a model with an adapter around it
        model = model.get_base_model()
    module = sys.modules[type(model).__module__]
    if not hasattr(module, "build_alibi_tensor"):
        return
    original = getattr(module.build_alibi_tensor, "original", module.build_alibi_tensor)

    def build(mask, heads, dtype):
        every = torch.ones((1, max(keys) + 1), dtype=torch.long)
        return original(every, heads, dtype)[..., keys]

    build.original = original
    module.build_alibi_tensor = build
