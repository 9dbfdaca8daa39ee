"""GPT-2 with 124 million parameters, written with Flax, from random numbers: for `python -m ctxc.jax bench.jax_gpt2:build -o gpt2.ctxc`."""
import flax.linen as nn
import jax
import jax.numpy as jnp

LAYERS, WIDTH, HEADS, WORDS, MOST = 12, 768, 12, 50257, 1024


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS)(nn.LayerNorm()(x), mask=mask)
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))


class Gpt(nn.Module):
    @nn.compact
    def __call__(self, ids, positions):
        embed = nn.Embed(WORDS, WIDTH)
        x = embed(ids) + nn.Embed(MOST, WIDTH)(positions)
        mask = nn.make_causal_mask(ids)
        for _ in range(LAYERS):
            x = Block()(x, mask)
        return embed.attend(nn.LayerNorm()(x))


def build():
    model, ids = Gpt(), jnp.zeros((1, 5), jnp.int32)
    return model.apply, model.init(jax.random.key(0), ids, ids)
