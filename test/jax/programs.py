"""Small decoders in JAX, each as its library's users write it: a function gives f(params, input_ids, position_ids) and params.

These were written before the exporter was; later_programs.py has those that were written after it."""
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

WORDS, WIDTH, HEADS, KEYS, LAYERS, MOST = 96, 32, 4, 2, 2, 64
HEAD = WIDTH // HEADS


class Draw:
    """Random parameters, one after the other."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def __call__(self, *shape, about=0.0, scale=0.2):
        return jnp.asarray(about + scale * self.random.standard_normal(shape), jnp.float32)


def shaken(params, seed=1):
    """Parameters as after training: no scale is 1, no bias 0."""
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda x: x + jnp.asarray(0.1 * random.standard_normal(x.shape), x.dtype), params)


# Plain functions on dictionaries.

def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + bias


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def halves_rotated(x, positions):
    """x: (…, tokens, heads, HEAD)."""
    rates = 10000.0 ** (-jnp.arange(0, HEAD // 2) / (HEAD // 2))
    angle = positions[..., None, None] * rates
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1)


def gpt2_plain():
    w = Draw()
    block = lambda: {"ln1": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}, "ln2": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)},
                     "qkv": {"w": w(WIDTH, 3 * WIDTH), "b": w(3 * WIDTH)}, "out": {"w": w(WIDTH, WIDTH), "b": w(WIDTH)},
                     "up": {"w": w(WIDTH, 4 * WIDTH), "b": w(4 * WIDTH)}, "down": {"w": w(4 * WIDTH, WIDTH), "b": w(WIDTH)}}
    params = {"wte": w(WORDS, WIDTH, scale=1), "wpe": w(MOST, WIDTH), "blocks": [block() for _ in range(LAYERS)],
              "final": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}}

    def attention(p, x):
        b, t, _ = x.shape
        q, k, v = jnp.split(x @ p["qkv"]["w"] + p["qkv"]["b"], 3, axis=-1)
        heads = lambda y: y.reshape(b, t, HEADS, HEAD).transpose(0, 2, 1, 3)
        scores = heads(q) @ heads(k).swapaxes(-1, -2) / math.sqrt(HEAD)
        seen = jnp.tril(jnp.ones((t, t), bool))
        y = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1) @ heads(v)
        return y.transpose(0, 2, 1, 3).reshape(b, t, WIDTH) @ p["out"]["w"] + p["out"]["b"]

    def f(params, ids, positions):
        x = params["wte"][ids] + params["wpe"][positions]
        for p in params["blocks"]:
            x = x + attention(p, layer_norm(x, **p["ln1"]))
            h = jax.nn.gelu(layer_norm(x, **p["ln2"]) @ p["up"]["w"] + p["up"]["b"])
            x = x + h @ p["down"]["w"] + p["down"]["b"]
        return layer_norm(x, **params["final"]) @ params["wte"].T
    return f, params


def llama_scanned():
    """Stacked layers, kernels of three axes, groups of queries, remat."""
    w = Draw(1)
    n = LAYERS
    layers = {"norm1": w(n, WIDTH, about=1), "norm2": w(n, WIDTH, about=1), "q": w(n, WIDTH, HEADS, HEAD), "k": w(n, WIDTH, KEYS, HEAD),
              "v": w(n, WIDTH, KEYS, HEAD), "o": w(n, HEADS, HEAD, WIDTH), "gate": w(n, WIDTH, 48), "up": w(n, WIDTH, 48),
              "down": w(n, 48, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": layers, "norm": w(WIDTH, about=1), "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        t = ids.shape[1]
        seen = jnp.tril(jnp.ones((t, t), bool))

        @jax.checkpoint
        def layer(x, p):
            h = rms_norm(x, p["norm1"])
            q = halves_rotated(jnp.einsum("btd,dnh->btnh", h, p["q"]), positions)
            k = halves_rotated(jnp.einsum("btd,dnh->btnh", h, p["k"]), positions)
            v = jnp.einsum("btd,dnh->btnh", h, p["v"])
            k, v = (jnp.repeat(y, HEADS // KEYS, axis=2) for y in (k, v))
            scores = jnp.einsum("btnh,bsnh->bnts", q, k) / jnp.sqrt(HEAD)
            scores = jnp.where(seen, scores, jnp.finfo(scores.dtype).min)
            y = jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(scores, -1), v)
            x = x + jnp.einsum("btnh,nhd->btd", y, p["o"])
            h = rms_norm(x, p["norm2"])
            return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], None
        x, _ = jax.lax.scan(layer, params["embed"][ids], params["layers"])
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def mixture_dense():
    """Two of four experts for each token, all computed, weighted by one-hot weights."""
    w = Draw(2)
    experts = 4
    block = lambda: {"norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), "qkv": w(3, WIDTH, HEADS, HEAD), "o": w(HEADS, HEAD, WIDTH),
                     "router": w(WIDTH, experts), "w1": w(experts, WIDTH, 48), "w2": w(experts, 48, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [block() for _ in range(LAYERS)], "norm": w(WIDTH, about=1),
              "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        t, x = ids.shape[1], params["embed"][ids]
        seen = jnp.tril(jnp.ones((t, t), bool))
        for p in params["layers"]:
            q, k, v = jnp.einsum("btd,cdnh->cbtnh", rms_norm(x, p["norm1"]), p["qkv"])
            scores = jnp.einsum("btnh,bsnh->bnts", halves_rotated(q, positions), halves_rotated(k, positions)) * HEAD ** -0.5
            y = jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(jnp.where(seen, scores, -1e30), -1), v)
            x = x + jnp.einsum("btnh,nhd->btd", y, p["o"])
            h = rms_norm(x, p["norm2"])
            chosen, which = jax.lax.top_k(h @ p["router"], 2)
            share = (jax.nn.one_hot(which, experts) * jax.nn.softmax(chosen, -1)[..., None]).sum(-2)
            y = jnp.einsum("btef,efd->bted", jax.nn.silu(jnp.einsum("btd,edf->btef", h, p["w1"])), p["w2"])
            x = x + jnp.einsum("bted,bte->btd", y, share)
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def t5_bias():
    """A learned bias by distance, in buckets."""
    w = Draw(3)
    block = lambda: {"norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), "q": w(WIDTH, WIDTH), "k": w(WIDTH, WIDTH), "v": w(WIDTH, WIDTH),
                     "o": w(WIDTH, WIDTH), "wi": w(WIDTH, 64), "wo": w(64, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "bias": w(8, HEADS), "layers": {str(i): block() for i in range(LAYERS)},
              "norm": w(WIDTH, about=1), "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        b, t = ids.shape
        distance = jnp.clip(positions[0][:, None] - positions[0][None, :], 0, 7)
        bias = params["bias"][distance].transpose(2, 0, 1)[None]
        seen = positions[0][:, None] >= positions[0][None, :]
        x = params["embed"][ids]
        for i in range(LAYERS):
            p = params["layers"][str(i)]
            h = rms_norm(x, p["norm1"])
            q, k, v = ((h @ p[n]).reshape(b, t, HEADS, HEAD) for n in "qkv")
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) + bias
            y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(seen, scores, -1e9), -1), v)
            x = x + y.reshape(b, t, WIDTH) @ p["o"]
            x = x + jax.nn.relu(rms_norm(x, p["norm2"]) @ p["wi"]) @ p["wo"]
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def mamba():
    w = Draw(4)
    inner, state = 48, 4
    block = lambda: {"norm": w(WIDTH, about=1), "in": w(WIDTH, 2 * inner), "conv": w(4, inner), "conv_bias": w(inner), "bc": w(inner, 2 * state),
                     "dt": w(inner, inner), "dt_bias": w(inner), "a_log": w(inner, state), "d": w(inner), "out": w(inner, WIDTH),
                     "norm2": w(WIDTH, about=1), "up": w(WIDTH, 64), "down": w(64, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [block() for _ in range(LAYERS)], "norm": w(WIDTH, about=1)}

    def mixed(p, x):
        u, z = jnp.split(x @ p["in"], 2, -1)
        u = jax.lax.conv_general_dilated(u, p["conv"][:, None, :], (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
                                         feature_group_count=inner)
        u = jax.nn.silu(u + p["conv_bias"])
        b, c = jnp.split(u @ p["bc"], 2, -1)
        dt = jax.nn.softplus(u @ p["dt"] + p["dt_bias"])
        decay = jnp.exp(dt[..., None] * -jnp.exp(p["a_log"]))
        step = (dt * u)[..., None] * b[:, :, None, :]
        _, h = jax.lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (decay, step), axis=1)
        y = jnp.einsum("btds,bts->btd", h, c) + u * p["d"]
        return (y * jax.nn.silu(z)) @ p["out"]

    def f(params, ids, positions):
        x = params["embed"][ids]
        for p in params["layers"]:
            x = x + mixed(p, rms_norm(x, p["norm"]))
            x = x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
        return rms_norm(x, params["norm"]) @ params["embed"].T
    return f, params


def parallel_block():
    """GPT-J's: attention and MLP read one norm; pairs of entries are rotated."""
    w = Draw(5)
    block = lambda: {"ln": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}, "q": w(WIDTH, WIDTH), "k": w(WIDTH, WIDTH), "v": w(WIDTH, WIDTH),
                     "o": w(WIDTH, WIDTH), "up": w(WIDTH, 64), "up_bias": w(64), "down": w(64, WIDTH), "down_bias": w(WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "h": [block() for _ in range(LAYERS)], "ln_f": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)},
              "head": w(WIDTH, WORDS), "head_bias": w(WORDS)}

    def pairs_rotated(x, positions):
        angle = positions[..., None, None] * 10000.0 ** (-jnp.arange(0, HEAD, 2) / HEAD)
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1).reshape(x.shape)

    def f(params, ids, positions):
        b, t = ids.shape
        x = params["embed"][ids]
        for p in params["h"]:
            h = layer_norm(x, **p["ln"])
            q, k, v = ((h @ p[n]).reshape(b, t, HEADS, HEAD) for n in "qkv")
            y = jax.nn.dot_product_attention(pairs_rotated(q, positions), pairs_rotated(k, positions), v, is_causal=True)
            x = x + y.reshape(b, t, WIDTH) @ p["o"] + jax.nn.gelu(h @ p["up"] + p["up_bias"], approximate=False) @ p["down"] + p["down_bias"]
        return layer_norm(x, **params["ln_f"]) @ params["head"] + params["head_bias"]
    return f, params


# Flax.

def linen_gpt():
    import flax.linen as nn

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
    model = Gpt()
    ids = jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


def nnx_function(model):
    from flax import nnx
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    f = lambda params, ids, positions: nnx.merge(graph, params, rest)(ids, positions)
    return f, shaken(params)


def nnx_llama():
    from flax import nnx
    Linear = functools.partial(nnx.Linear, use_bias=False)

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm1, self.norm2 = nnx.RMSNorm(WIDTH, rngs=rngs), nnx.RMSNorm(WIDTH, rngs=rngs)
            self.q, self.o = Linear(WIDTH, WIDTH, rngs=rngs), Linear(WIDTH, WIDTH, rngs=rngs)
            self.k, self.v = Linear(WIDTH, KEYS * HEAD, rngs=rngs), Linear(WIDTH, KEYS * HEAD, rngs=rngs)
            self.gate, self.up, self.down = Linear(WIDTH, 48, rngs=rngs), Linear(WIDTH, 48, rngs=rngs), Linear(48, WIDTH, rngs=rngs)

        def __call__(self, x, positions):
            h, (b, t, _) = self.norm1(x), x.shape
            q = halves_rotated(self.q(h).reshape(b, t, HEADS, HEAD), positions)
            k = halves_rotated(self.k(h).reshape(b, t, KEYS, HEAD), positions)
            y = jax.nn.dot_product_attention(q, k, self.v(h).reshape(b, t, KEYS, HEAD), is_causal=True)
            x = x + self.o(y.reshape(b, t, WIDTH))
            h = self.norm2(x)
            return x + self.down(nnx.silu(self.gate(h)) * self.up(h))

    class Llama(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(WORDS, WIDTH, rngs=rngs)
            self.layers = nnx.List([Block(rngs) for _ in range(LAYERS)])
            self.norm, self.head = nnx.RMSNorm(WIDTH, rngs=rngs), Linear(WIDTH, WORDS, rngs=rngs)

        def __call__(self, ids, positions):
            x = self.embed(ids)
            for layer in self.layers:
                x = layer(x, positions)
            return self.head(self.norm(x))
    return nnx_function(Llama(nnx.Rngs(0)))


def gemma():
    """Linen as google-deepmind/gemma's users know it: [heads, width, head] kernels, post-norms, soft caps, windows."""
    import flax.linen as nn

    class Norm(nn.Module):
        @nn.compact
        def __call__(self, x):
            scale = self.param("scale", nn.initializers.zeros_init(), (x.shape[-1],))
            return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * (1 + scale)

    class Block(nn.Module):
        window: int

        @nn.compact
        def __call__(self, x, positions, seen):
            draw = nn.initializers.normal(0.2)
            q_kernel = self.param("q_einsum", draw, (HEADS, WIDTH, HEAD))
            kv_kernel = self.param("kv_einsum", draw, (2, KEYS, WIDTH, HEAD))
            o_kernel = self.param("attn_vec_einsum", draw, (HEADS, HEAD, WIDTH))
            gating, linear = self.param("gating_einsum", draw, (2, WIDTH, 64)), self.param("linear", draw, (64, WIDTH))
            h, (b, t, _) = Norm(name="pre_attention_norm")(x), x.shape
            q = halves_rotated(jnp.einsum("BTD,NDH->BTNH", h, q_kernel), positions) * HEAD ** -0.5
            k, v = jnp.einsum("BSD,CKDH->CBSKH", h, kv_kernel)
            k = halves_rotated(k, positions)
            scores = jnp.einsum("BTKGH,BSKH->BTKGS", q.reshape(b, t, KEYS, HEADS // KEYS, HEAD), k).reshape(b, t, HEADS, t)
            scores = jnp.tanh(scores / 50.0) * 50.0
            if self.window:
                seen = seen & jnp.triu(jnp.ones_like(seen), 1 - self.window)
            shares = jax.nn.softmax(jnp.where(seen[:, None, :], scores, -2.3819763e38), -1)
            y = jnp.einsum("BTKGS,BSKH->BTKGH", shares.reshape(b, t, KEYS, HEADS // KEYS, t), v).reshape(b, t, HEADS, HEAD)
            x = x + Norm(name="post_attention_norm")(jnp.einsum("BTNH,NHD->BTD", y, o_kernel))
            h = Norm(name="pre_ffw_norm")(x)
            h = (nn.gelu(h @ gating[0]) * (h @ gating[1])) @ linear
            return x + Norm(name="post_ffw_norm")(h)

    class Gemma(nn.Module):
        @nn.compact
        def __call__(self, ids, positions):
            table = self.param("input_embedding", nn.initializers.normal(0.5), (WORDS, WIDTH))
            x, t = table[ids] * jnp.sqrt(WIDTH).astype(jnp.float32), ids.shape[1]
            seen = jnp.tril(jnp.ones((t, t), bool))
            for i in range(LAYERS):
                x = Block(window=4 if i % 2 == 0 else 0, name=f"layer_{i}")(x, positions, seen)
            logits = Norm(name="final_norm")(x) @ table.T
            return jnp.tanh(logits / 30.0) * 30.0
    model, ids = Gemma(), jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


# Equinox and Haiku.

def equinox_gpt():
    import equinox as eqx

    class Block(eqx.Module):
        norm1: eqx.nn.LayerNorm
        norm2: eqx.nn.LayerNorm
        qkv: eqx.nn.Linear
        out: eqx.nn.Linear
        mlp: eqx.nn.MLP

        def __init__(self, key):
            a, b, c = jax.random.split(key, 3)
            self.norm1, self.norm2 = eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)
            self.qkv, self.out = eqx.nn.Linear(WIDTH, 3 * WIDTH, key=a), eqx.nn.Linear(WIDTH, WIDTH, key=b)
            self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 64, 1, activation=jax.nn.gelu, key=c)

        def __call__(self, x):
            t = x.shape[0]
            q, k, v = jnp.split(jax.vmap(self.qkv)(jax.vmap(self.norm1)(x)), 3, -1)
            q, k, v = (y.reshape(t, HEADS, HEAD) for y in (q, k, v))
            scores = jnp.einsum("qhd,khd->hqk", q, k) / math.sqrt(HEAD)
            shares = jax.nn.softmax(scores, axis=-1, where=jnp.tril(jnp.ones((t, t), bool)))
            y = jnp.einsum("hqk,khd->qhd", shares, v).reshape(t, WIDTH)
            x = x + jax.vmap(self.out)(y)
            return x + jax.vmap(self.mlp)(jax.vmap(self.norm2)(x))

    class Gpt(eqx.Module):
        words: eqx.nn.Embedding
        places: eqx.nn.Embedding
        blocks: list
        norm: eqx.nn.LayerNorm
        head: eqx.nn.Linear

        def __init__(self, key):
            keys = jax.random.split(key, LAYERS + 3)
            self.words, self.places = eqx.nn.Embedding(WORDS, WIDTH, key=keys[0]), eqx.nn.Embedding(MOST, WIDTH, key=keys[1])
            self.blocks = [Block(key) for key in keys[3:]]
            self.norm, self.head = eqx.nn.LayerNorm(WIDTH), eqx.nn.Linear(WIDTH, WORDS, key=keys[2])

        def __call__(self, ids, positions):
            x = jax.vmap(self.words)(ids) + jax.vmap(self.places)(positions)
            for block in self.blocks:
                x = block(x)
            return jax.vmap(self.head)(jax.vmap(self.norm)(x))
    params, static = eqx.partition(Gpt(jax.random.key(0)), eqx.is_array)
    return lambda params, ids, positions: jax.vmap(eqx.combine(params, static))(ids, positions), shaken(params)


def haiku_gpt():
    import haiku as hk

    def gpt(ids, positions):
        b, t = ids.shape
        embed = hk.Embed(WORDS, WIDTH)
        x = embed(ids) + hk.get_parameter("positions", [MOST, WIDTH], init=hk.initializers.RandomNormal(0.2))[positions]
        norm = lambda x: hk.LayerNorm(-1, True, True)(x)
        for _ in range(LAYERS):
            h = norm(x)
            q, k, v = (hk.Linear(WIDTH)(h).reshape(b, t, HEADS, HEAD) for _ in range(3))
            scores = jnp.einsum("bthd,bThd->bhtT", q, k) / np.sqrt(HEAD)
            scores = jnp.where(np.tril(np.ones((1, 1, MOST, MOST)))[:, :, :1, :1] * jnp.tril(jnp.ones((1, 1, t, t))), scores, -1e30)
            y = jnp.einsum("bhtT,bThd->bthd", jax.nn.softmax(scores), v).reshape(b, t, WIDTH)
            x = x + hk.Linear(WIDTH)(y)
            x = x + hk.Linear(WIDTH)(jax.nn.gelu(hk.Linear(64)(norm(x))))
        return hk.Linear(WORDS)(norm(x))
    model = hk.without_apply_rng(hk.transform(gpt))
    ids = jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


PROGRAMS = [gpt2_plain, llama_scanned, mixture_dense, t5_bias, mamba, parallel_block, linen_gpt, nnx_llama, gemma, equinox_gpt, haiku_gpt]
