"""Modules as their authors write them, none of which ctxc has an importer for. Each function returns a module and an
example of its input, (1, tokens, width); a module that takes input_ids is a whole model."""
import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, TOKENS = 32, 4, 13


class Attention(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.causal = causal

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // HEADS)
        if self.causal:
            scores = scores.masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(), float("-inf"))
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.proj(F.gelu(self.fc(x)))


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """After nanoGPT: learned positions, a head that is tied to the embedding."""
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, WIDTH), nn.Embedding(64, WIDTH)
        self.h = nn.ModuleList(GptBlock() for _ in range(2))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, 50, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class VitBlock(nn.Module):
    """A vision transformer's: patches see each other in both directions, and each branch has a scale of its own."""
    def __init__(self):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), Attention(causal=False)
        self.norm2, self.mlp = nn.LayerNorm(WIDTH), MLP()
        self.gamma1, self.gamma2 = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        x = x + self.gamma1 * self.attn(self.norm1(x))
        return x + self.gamma2 * self.mlp(self.norm2(x))


class PostNorm(nn.Module):
    """The encoder of 2017: a norm behind each sum."""
    def __init__(self, trained=True):
        super().__init__()
        self.attention, self.mlp = Attention(causal=False), MLP()
        self.first = nn.LayerNorm(WIDTH)
        self.last = nn.LayerNorm(WIDTH, elementwise_affine=trained)

    def forward(self, x):
        x = self.first(x + self.attention(x))
        return self.last(x + self.mlp(x))


class Parallel(nn.Module):
    """Attention and MLP beside each other, behind one norm."""
    def __init__(self):
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(WIDTH), Attention(), MLP()

    def forward(self, x):
        z = self.norm(x)
        return x + self.attention(z) + self.mlp(z)


class DiffusionBlock(nn.Module):
    """A diffusion transformer's: a condition shifts, scales and gates both branches."""
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.attn, self.mlp = Attention(causal=False), MLP()
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x, condition):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(condition).chunk(6, dim=-1)
        x = x + gate1 * self.attn(self.norm1(x) * (1 + scale1) + shift1)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class Retention(nn.Module):
    """RetNet's mixer: no softmax, a decay for each head, a norm of each head's output and a gate."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.gate, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.register_buffer("decay", 1 - 2.0 ** (-5 - torch.arange(HEADS)))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (layer(x).view(b, t, HEADS, c // HEADS).transpose(1, 2) for layer in (self.q, self.k, self.v))
        distance = torch.arange(t)[:, None] - torch.arange(t)
        decay = torch.where(distance >= 0, self.decay[:, None, None] ** distance.clamp(min=0), 0.0)
        heads = ((q @ k.transpose(-2, -1)) * decay) @ v
        heads = heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + 1e-5)
        return self.out(F.silu(self.gate(x)) * heads.transpose(1, 2).reshape(b, t, c))


class LongConvolution(nn.Module):
    """Hyena's mixer: a filter as long as the text, by the Fourier transform, between two gates."""
    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.filter = nn.Parameter(torch.randn(WIDTH, 64))

    def forward(self, x):
        gate, value, end = self.into(x).transpose(1, 2).chunk(3, 1)
        count = x.shape[1]
        spectrum = torch.fft.rfft(gate * value, n=2 * count) * torch.fft.rfft(self.filter[:, :count], n=2 * count)
        mixed = torch.fft.irfft(spectrum, n=2 * count)[..., :count]
        return self.out((mixed * end).transpose(1, 2))


class LinearAttention(nn.Module):
    """Sums over the text instead of a softmax."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        state = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
        norm = (q * k.cumsum(1)).sum(-1, keepdim=True)
        return self.out((q.unsqueeze(-2) @ state).squeeze(-2) / norm)


class Fourier(nn.Module):
    """FNet's mixer: the real part of the Fourier transform, along tokens and features, without a parameter."""
    def forward(self, x):
        return torch.fft.fft2(x, dim=(-2, -1)).real


class GatedBlock(nn.Module):
    """Pre-norm with a gated MLP, around any mixer."""
    def __init__(self, mixer):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.mixer = mixer
        self.gate, self.up = nn.Linear(WIDTH, 64, bias=False), nn.Linear(WIDTH, 64, bias=False)
        self.down = nn.Linear(64, WIDTH, bias=False)

    def forward(self, x):
        x = x + self.mixer(self.norm1(x))
        z = self.norm2(x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z))


class SoftExperts(nn.Module):
    """Every expert takes part, weighted by a softmax."""
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.router = nn.Linear(WIDTH, 3, bias=False)
        self.experts = nn.ModuleList(MLP() for _ in range(3))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        weights = self.router(x).softmax(-1)
        return x + sum(weights[..., i:i + 1] * expert(x) for i, expert in enumerate(self.experts))


class HyperConnections(nn.Module):
    """Two streams beside each other, of which each layer reads a mixture and to which it writes."""
    def __init__(self):
        super().__init__()
        self.attention, self.mlp, self.norm = Attention(), MLP(), nn.LayerNorm(WIDTH)
        self.read = nn.Parameter(torch.rand(2, 2))
        self.write = nn.Parameter(torch.rand(2, 2))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        for i, layer in enumerate((self.attention, self.mlp)):
            y = layer(self.norm(self.read[i, 0] * a + self.read[i, 1] * b))
            a, b = a + self.write[i, 0] * y, b + self.write[i, 1] * y
        return torch.cat([a, b], -1)


class NormedBranch(nn.Module):
    """A norm behind the MLP, before the sum, without a scale of its own."""
    def __init__(self):
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(WIDTH), Attention(), MLP()
        self.last = nn.RMSNorm(WIDTH, elementwise_affine=False)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.last(self.mlp(x))


class OneNumber(NormedBranch):
    """The same norm, and a trained number that multiplies its result."""
    def __init__(self):
        super().__init__()
        self.length = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.length * self.last(self.mlp(x))


class Squeezed(nn.Module):
    """The MLP's result passes a bounded function on its way back to the stream."""
    def __init__(self):
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(WIDTH), Attention(), MLP()

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + torch.tanh(self.mlp(x))


def alone(module, width=WIDTH):
    return module, torch.zeros(1, TOKENS, width)


MODULES = {
    "nanogpt": Gpt,
    "vit": lambda: alone(VitBlock()),
    "encoder": lambda: alone(PostNorm()),
    "encoder-without-scale": lambda: alone(PostNorm(trained=False)),
    "parallel": lambda: alone(Parallel()),
    "diffusion": lambda: (DiffusionBlock(), (torch.zeros(1, TOKENS, WIDTH), torch.zeros(1, TOKENS, WIDTH))),
    "retention": lambda: alone(GatedBlock(Retention())),
    "long-convolution": lambda: alone(GatedBlock(LongConvolution())),
    "linear-attention": lambda: alone(GatedBlock(LinearAttention())),
    "fourier": lambda: alone(GatedBlock(Fourier())),
    "soft-experts": lambda: alone(SoftExperts()),
    "hyper-connections": lambda: alone(HyperConnections(), 2 * WIDTH),
    "normed-branch": lambda: alone(NormedBranch()),
    "one-number": lambda: alone(OneNumber()),
    "squeezed": lambda: alone(Squeezed()),
}
