"""Algorithm 1 of arXiv 2511.17864 in PyTorch, as it would be written on top of transformers.

Three runs of one token: with the context, which records what each layer computes; without it, where
forward hooks compute each layer's patch and apply it on the spot; and a verification that sees the
patches only. Two forms:

  factored      the hooks add u (v^T z) to what a linear layer gives
  materialised  the rank-1 patch is added to the weights, the layer is run again with them, and the
                weights are put back at the end

It handles blocks whose MLP consists of gate, up and down: with pre-norms only (Llama), or with a norm
after the MLP whose scale is patched too (Gemma 3). There the update is the cheapest exact one that keeps
both factors small: n^2 in proportion to |g|, in closed form.

Factors and sums are float32, and are rounded where they meet the model's own type. Only the runs
themselves and the patch of the materialised form read weights. Each form also has a tuned variant: the
reduced run leaves out the head, whose logits are not needed, and patched weights are written in one
operation to buffers of their own, so that nothing needs to be restored.
"""

import contextlib
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

# The largest difference of a logit from the full run's, relative to what the context changes, and
# in absolute terms.
TOLERANCE = {torch.float32: (1e-3, 1e-2), torch.bfloat16: (0.25, 1.0)}


class NotExact(Exception):
    """The patched model's logits differ from the full run's, so that its times would be meaningless."""


@dataclass
class Block:
    """The parts of a decoder layer that Algorithm 1 uses, and the values that it keeps for a token."""
    layer: torch.nn.Module
    mlp_norm: torch.nn.Module               # before the MLP; its input is the residual stream v
    post_norm: torch.nn.Module = None       # after it, if there is one
    target: torch.Tensor = None             # T_C, the full run's output
    wanted: dict = field(default_factory=dict)   # linear: its output in the full run
    stream: torch.Tensor = None             # v of the reduced run
    factors: dict = field(default_factory=dict)  # linear: (u, v), float32
    scale: torch.Tensor = None              # of the post-norm, patched, float32

    def __post_init__(self):
        mlp = self.layer.mlp
        self.gate, self.up, self.down = mlp.gate_proj, mlp.up_proj, mlp.down_proj

    @property
    def linears(self):
        return self.gate, self.up, self.down


def blocks_of(model):
    blocks = []
    for layer in model.model.layers:
        post = getattr(layer, "post_feedforward_layernorm", None)
        before = layer.pre_feedforward_layernorm if post is not None else \
            layer.post_attention_layernorm
        blocks.append(Block(layer, before, post))
    return blocks


def balanced_target(block, d):
    """g, and the target for the output of W_down with which a small change of the post-norm's scale reaches g."""
    g = (block.target - block.stream).float()
    d = d.float()
    mean_square = d.square().mean()
    energy = mean_square + block.post_norm.eps
    a = g.abs()
    n = (a * (mean_square / energy / a.mean())).sqrt()
    sign = torch.where(g * (1 + block.post_norm.weight.float()) < 0, -1.0, 1.0)
    return n * sign * energy.sqrt()


class Algorithm1:
    """`cache` holds `context` tokens; a step takes one more token at the next position."""

    def __init__(self, model, materialised, tuned):
        self.model, self.materialised, self.tuned = model, materialised, tuned
        self.reduced = model.model if tuned else model
        self.blocks = blocks_of(model)
        if materialised:  # a copy of each matrix: the original, or space for the patched one
            self.weights = {linear: linear.weight.data for b in self.blocks for linear in b.linears}
            self.copies = {linear: weight.clone() for linear, weight in self.weights.items()}

    # The runs

    def full_run(self, token, cache, position):
        with self.hooks(self.recording):
            return self.model(token, past_key_values=cache, position_ids=position,
                              logits_to_keep=1).logits[0, -1]

    def reduced_run(self, token, position):
        options = {} if self.tuned else {"logits_to_keep": 1}
        with self.hooks(self.patching):
            self.reduced(token, position_ids=position, use_cache=False, **options)

    def verification(self, token, position):
        with self.hooks(self.applying):
            return self.model(token, position_ids=position, use_cache=False,
                              logits_to_keep=1).logits[0, -1]

    @torch.inference_mode()
    def step(self, token, cache, position):
        """The logits of the full and of the patched run."""
        full = self.full_run(token, cache, position)
        try:
            self.reduced_run(token, position)
            return full, self.verification(token, position)
        finally:
            self.restore()

    def materialise(self, linear, u, v):
        """W + u vᵀ becomes the layer's weight."""
        weight = self.weights[linear]
        u, v = u.to(weight.dtype), v.to(weight.dtype)
        if self.tuned:
            linear.weight.data = torch.addcmul(weight, u[:, None], v, out=self.copies[linear])
        else:
            weight.add_(torch.outer(u, v))

    def restore(self):
        if not self.materialised:
            return
        for linear, weight in self.weights.items():
            if self.tuned:
                linear.weight.data = weight
            else:
                weight.copy_(self.copies[linear])

    @torch.inference_mode()
    def check(self, token, cache, position):
        """Raises NotExact unless a step's patched logits are the full run's."""
        full, patched = self.step(token, cache, position)
        control = self.model(token, position_ids=position, use_cache=False, logits_to_keep=1)
        error = (patched - full).abs().max().item()
        effect = (control.logits[0, -1] - full).abs().max().item()
        relative, absolute = TOLERANCE[full.dtype]
        # Written such that NaN fails.
        if not (error <= min(relative * effect, absolute) and effect > 0.1):
            raise NotExact(f"patched logits differ by {error:.3g} from the full run's; without the "
                           f"patch they differ by {effect:.3g}")
        return {"linf_patched": error, "linf_control": effect,
                "same_token": bool(patched.argmax() == full.argmax())}

    # The hooks

    @contextlib.contextmanager
    def hooks(self, place):
        handles = [handle for block in self.blocks for handle in place(block)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def recording(self, block):
        def keep(linear, inputs, output):
            block.wanted[linear] = output

        def keep_target(layer, inputs, output):
            block.target = output

        yield block.gate.register_forward_hook(keep)
        yield block.up.register_forward_hook(keep)
        yield block.layer.register_forward_hook(keep_target)

    def patching(self, block):
        def keep_stream(norm, inputs):
            block.stream = inputs[0]

        def reach_recorded(linear, inputs, output):
            return self.patch(block, linear, inputs[0], output, block.wanted[linear])

        def reach_output(linear, inputs, output):
            wanted = block.target - block.stream if block.post_norm is None else \
                balanced_target(block, output)
            return self.patch(block, linear, inputs[0], output, wanted)

        def reach_scale(norm, inputs, output):
            n = norm._norm(inputs[0].float())
            g = (block.target - block.stream).float()
            block.scale = torch.where(n == 0, 1 + norm.weight.float(), g / n)
            return (n * block.scale).to(output.dtype)

        yield block.mlp_norm.register_forward_pre_hook(keep_stream)
        yield block.gate.register_forward_hook(reach_recorded)
        yield block.up.register_forward_hook(reach_recorded)
        yield block.down.register_forward_hook(reach_output)
        if block.post_norm is not None:
            yield block.post_norm.register_forward_hook(reach_scale)

    def patch(self, block, linear, z, output, wanted):
        """ΔW = (t − W z) zᵀ / ‖z‖²; returns (W + ΔW) z."""
        v = z.flatten().float()
        u = (wanted - output).flatten().float() / v.dot(v)
        block.factors[linear] = u, v
        if not self.materialised:
            return self.applied(linear, z, output, u, v)
        self.materialise(linear, u, v)
        return F.linear(z, linear.weight)

    @staticmethod
    def applied(linear, z, output, u, v):
        return output + (u * v.dot(z.flatten().float())).to(output.dtype)

    def applying(self, block):
        def apply(linear, inputs, output):
            return self.applied(linear, inputs[0], output, *block.factors[linear])

        def apply_scale(norm, inputs, output):
            return (norm._norm(inputs[0].float()) * block.scale).to(output.dtype)

        if not self.materialised:
            for linear in block.linears:
                yield linear.register_forward_hook(apply)
        if block.post_norm is not None:
            yield block.post_norm.register_forward_hook(apply_scale)
