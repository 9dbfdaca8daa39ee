"""A block of a model, as it may stand in a project of yours."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.mlp_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.attn_norm(x))
        return x + self.down(nn.functional.silu(self.up(self.mlp_norm(x))))


class Normed(Block):
    """The same, with a norm on the MLP's branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.attn_norm(x))
        return x + nn.functional.rms_norm(self.down(nn.functional.silu(self.up(x))), x.shape[-1:])
