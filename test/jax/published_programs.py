"""Twenty decoders as people publish them, written without knowledge of the exporter's code.

Each states in its last line what ctxc should say of it by the mathematics alone, and why."""
import dataclasses
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np

from programs import HEAD, HEADS, KEYS, LAYERS, MOST, WIDTH, WORDS, Draw, halves_rotated, layer_norm, nnx_function, rms_norm, shaken


# Equinox.

def equinox_function(model):
    import equinox as eqx
    params, static = eqx.partition(model, eqx.is_inexact_array)
    return lambda params, ids: jax.vmap(eqx.combine(params, static))(ids), shaken(params)


def equinox_stacked():
    """Layers made by filter_vmap and run by lax.scan, with the library's own attention and rotary embedding.

    controllable: pre-norm SwiGLU, whose up, gate and down are matrices between a norm and the residual sum."""
    import equinox as eqx

    class Block(eqx.Module):
        norm1: eqx.nn.RMSNorm
        norm2: eqx.nn.RMSNorm
        attention: eqx.nn.MultiheadAttention
        rope: eqx.nn.RotaryPositionalEmbedding
        gate: eqx.nn.Linear
        up: eqx.nn.Linear
        down: eqx.nn.Linear

        def __init__(self, key):
            a, b, c, d = jax.random.split(key, 4)
            self.norm1, self.norm2 = (eqx.nn.RMSNorm(WIDTH, use_bias=False) for _ in range(2))
            self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=a)
            self.rope = eqx.nn.RotaryPositionalEmbedding(HEAD)
            self.gate, self.up = eqx.nn.Linear(WIDTH, 48, use_bias=False, key=b), eqx.nn.Linear(WIDTH, 48, use_bias=False, key=c)
            self.down = eqx.nn.Linear(48, WIDTH, use_bias=False, key=d)

        def mlp(self, x):
            h = self.norm2(x)
            return self.down(jax.nn.silu(self.gate(h)) * self.up(h))

        def __call__(self, x):
            def turned(q, k, v):
                turn = jax.vmap(self.rope, in_axes=1, out_axes=1)
                return turn(q), turn(k), v
            h = jax.vmap(self.norm1)(x)
            x = x + self.attention(h, h, h, mask=jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)), process_heads=turned)
            return x + jax.vmap(self.mlp)(x)

    class Decoder(eqx.Module):
        words: eqx.nn.Embedding
        blocks: Block
        norm: eqx.nn.RMSNorm
        head: eqx.nn.Linear

        def __init__(self, key):
            a, b, c = jax.random.split(key, 3)
            self.words, self.norm = eqx.nn.Embedding(WORDS, WIDTH, key=a), eqx.nn.RMSNorm(WIDTH, use_bias=False)
            self.blocks = eqx.filter_vmap(Block)(jax.random.split(b, LAYERS))
            self.head = eqx.nn.Linear(WIDTH, WORDS, use_bias=False, key=c)

        def __call__(self, ids):
            arrays, static = eqx.partition(self.blocks, eqx.is_array)
            x, _ = jax.lax.scan(lambda x, layer: (eqx.combine(layer, static)(x), None), jax.vmap(self.words)(ids), arrays)
            return jax.vmap(self.head)(jax.vmap(self.norm)(x))
    return equinox_function(Decoder(jax.random.key(0)))


def equinox_differential():
    """The Differential Transformer: the difference of two softmaxes, a norm without a scale for each head, a lambda from four vectors.

    controllable: the norm without a scale is within attention, before its output matrix; the SwiGLU behind it is as any."""
    import equinox as eqx
    half = HEAD // 2

    class Block(eqx.Module):
        scales: jax.Array
        q: jax.Array
        k: jax.Array
        v: jax.Array
        o: eqx.nn.Linear
        lambdas: jax.Array
        mlp: list
        first: float = eqx.field(static=True)

        def __init__(self, depth, w, key):
            keys = jax.random.split(key, 4)
            self.scales, self.lambdas = w(2, WIDTH, about=1), w(4, half)
            self.q, self.k, self.v = w(HEADS, 2, WIDTH, half), w(HEADS, 2, WIDTH, half), w(HEADS, WIDTH, HEAD)
            self.o = eqx.nn.Linear(WIDTH, WIDTH, use_bias=False, key=keys[0])
            self.mlp = [eqx.nn.Linear(*sizes, use_bias=False, key=key) for sizes,
                        key in zip([(WIDTH, 48), (WIDTH, 48), (48, WIDTH)], keys[1:])]
            self.first = 0.8 - 0.6 * float(np.exp(-0.3 * depth))

        def __call__(self, x):
            t = x.shape[0]
            h = rms_norm(x, self.scales[0])
            share = jnp.exp(self.lambdas[0] @ self.lambdas[1]) - jnp.exp(self.lambdas[2] @ self.lambdas[3]) + self.first

            @jax.vmap
            def head(q, k, v):
                q, k = jnp.einsum("td,cdh->cth", h, q), jnp.einsum("td,cdh->cth", h, k)
                scores = jnp.einsum("cth,csh->cts", q, k) / jnp.sqrt(half)
                one, other = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf), -1)
                return rms_norm((one - share * other) @ (h @ v), 1.0) * (1 - self.first)
            x = x + jax.vmap(self.o)(head(self.q, self.k, self.v).swapaxes(0, 1).reshape(t, WIDTH))
            gate, up, down = (jax.vmap(each) for each in self.mlp)
            h = rms_norm(x, self.scales[1])
            return x + down(jax.nn.swish(gate(h)) * up(h))

    class Decoder(eqx.Module):
        words: jax.Array
        blocks: list
        head: eqx.nn.Linear

        def __init__(self, w, key):
            keys = jax.random.split(key, LAYERS + 1)
            self.words = w(WORDS, WIDTH, scale=1)
            self.blocks = [Block(depth, w, key) for depth, key in enumerate(keys[1:])]
            self.head = eqx.nn.Linear(WIDTH, WORDS, key=keys[0])

        def __call__(self, ids):
            x = self.words[ids]
            for block in self.blocks:
                x = block(x)
            return jax.vmap(self.head)(x)
    return equinox_function(Decoder(Draw(20), jax.random.key(1)))


# Flax.

def linen_shared_experts():
    """DeepSeek's mixture: routed experts by nn.vmap, weighted by their normed top-2 shares, and one that all tokens take; nn.remat.

    controllable: whatever the router chooses, the shared expert's matrices take the context."""
    import flax.linen as nn
    experts = 4

    class Expert(nn.Module):
        @nn.compact
        def __call__(self, h):
            dense = functools.partial(nn.Dense, use_bias=False)
            return dense(WIDTH, name="down")(nn.silu(dense(24, name="gate")(h)) * dense(24, name="up")(h))

    class Experts(nn.Module):
        @nn.compact
        def __call__(self, h):
            shares, chosen = jax.lax.top_k(nn.softmax(nn.Dense(experts, use_bias=False, name="router")(h)), 2)
            shares = shares / shares.sum(-1, keepdims=True)
            gates = jnp.sum(jax.nn.one_hot(chosen, experts) * shares[..., None], axis=-2)
            each = nn.vmap(Expert, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, out_axes=0, axis_size=experts)
            return jnp.einsum("ebtd,bte->btd", each(name="routed")(h), gates) + Expert(name="shared")(h)

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, positions):
            h, (b, t, _) = nn.RMSNorm()(x), x.shape
            q, k, v = jnp.split(nn.DenseGeneral((HEADS, 3 * HEAD), use_bias=False, name="qkv")(h), 3, -1)
            y = nn.dot_product_attention(halves_rotated(q, positions), halves_rotated(k, positions), v, mask=nn.make_causal_mask(x[..., 0]))
            x = x + nn.Dense(WIDTH, use_bias=False, name="out")(y.reshape(b, t, WIDTH))
            return x + Experts(name="experts")(nn.RMSNorm()(x))

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, ids, positions):
            x = nn.Embed(WORDS, WIDTH)(ids)
            for i in range(LAYERS):
                x = nn.remat(Block)(name=f"block_{i}")(x, positions)
            return nn.Dense(WORDS, use_bias=False)(nn.RMSNorm()(x))
    model, ids = Decoder(), jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


def linen_retnet():
    """RetNet with modules made in setup: scores times a decay instead of a softmax, a norm for each head, a gate.

    controllable: the GELU MLP behind retention is pre-norm with biases."""
    import flax.linen as nn

    class Retention(nn.Module):
        def setup(self):
            self.q, self.k, self.v, self.gate, self.out = (nn.Dense(WIDTH, use_bias=False) for _ in range(5))
            self.norm = nn.RMSNorm(use_scale=False)

        def __call__(self, x):
            b, t, _ = x.shape
            heads = lambda y: y.reshape(b, t, HEADS, HEAD)
            log_decay = jnp.log(1 - 2.0 ** (-5.0 - jnp.arange(HEADS)))
            distance = jnp.arange(t)[:, None] - jnp.arange(t)[None]
            decay = jnp.where(distance >= 0, jnp.exp(distance * log_decay[:, None, None]), 0)
            scores = jnp.einsum("bthd,bshd->bhts", heads(self.q(x)), heads(self.k(x)) * HEAD ** -0.5) * decay
            y = self.norm(jnp.einsum("bhts,bshd->bthd", scores, heads(self.v(x))))
            return self.out(nn.swish(self.gate(x)) * y.reshape(b, t, WIDTH))

    class Decoder(nn.Module):
        def setup(self):
            self.words = nn.Embed(WORDS, WIDTH)
            self.norms = [nn.LayerNorm() for _ in range(2 * LAYERS)]
            self.retentions = [Retention() for _ in range(LAYERS)]
            self.ups, self.downs = [nn.Dense(64) for _ in range(LAYERS)], [nn.Dense(WIDTH) for _ in range(LAYERS)]
            self.last = nn.LayerNorm()

        def __call__(self, ids):
            x = self.words(ids)
            for i in range(LAYERS):
                x = x + self.retentions[i](self.norms[2 * i](x))
                x = x + self.downs[i](nn.gelu(self.ups[i](self.norms[2 * i + 1](x))))
            return self.words.attend(self.last(x))
    model = Decoder()
    return model.apply, shaken(model.init(jax.random.key(0), jnp.zeros((1, 5), jnp.int32)))


def nnx_gemma3():
    """Gemma 3: norms on both sides of a branch, normed queries and keys, two bases of the rotation, local layers, a tied embedding.

    controllable: gate, up and down, and the last norm's scale behind down."""
    from flax import nnx
    Linear = functools.partial(nnx.Linear, use_bias=False)

    class Norm(nnx.Module):
        def __init__(self, width):
            self.scale = nnx.Param(jnp.zeros(width))

        def __call__(self, x):
            x32 = x.astype(jnp.float32)
            x32 = x32 * jax.lax.rsqrt(jnp.mean(x32 ** 2, axis=-1, keepdims=True) + 1e-6)
            return (x32 * (1.0 + self.scale[...])).astype(x.dtype)

    def rope(x, positions, base):
        fraction = 2 * jnp.arange(HEAD // 2) / HEAD
        angle = positions[..., None, None].astype(jnp.float32) / base ** fraction
        first, second = jnp.split(x, 2, axis=-1)
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    class Block(nnx.Module):
        def __init__(self, local, rngs):
            self.local = local
            self.norms = nnx.List([Norm(WIDTH) for _ in range(4)])
            self.q, self.kv = Linear(WIDTH, HEADS * HEAD, rngs=rngs), Linear(WIDTH, 2 * KEYS * HEAD, rngs=rngs)
            self.q_norm, self.k_norm, self.o = Norm(HEAD), Norm(HEAD), Linear(HEADS * HEAD, WIDTH, rngs=rngs)
            self.gate, self.up, self.down = Linear(WIDTH, 48, rngs=rngs), Linear(WIDTH, 48, rngs=rngs), Linear(48, WIDTH, rngs=rngs)

        def __call__(self, x, positions):
            h, (b, t, _) = self.norms[0](x), x.shape
            base = 10_000.0 if self.local else 1_000_000.0
            k, v = jnp.split(self.kv(h).reshape(b, t, 2 * KEYS, HEAD), 2, axis=2)
            q = rope(self.q_norm(self.q(h).reshape(b, t, HEADS, HEAD)), positions, base)
            k = rope(self.k_norm(k), positions, base)
            distance = positions[:, :, None] - positions[:, None, :]
            seen = (distance >= 0) & (distance < 4) if self.local else distance >= 0
            scores = jnp.einsum("btkgh,bskh->bkgts", q.reshape(b, t, KEYS, HEADS // KEYS, HEAD), k) * HEAD ** -0.5
            shares = jax.nn.softmax(jnp.where(seen[:, None, None], scores, -2.3819763e38), axis=-1)
            y = jnp.einsum("bkgts,bskh->btkgh", shares, v).reshape(b, t, HEADS * HEAD)
            x = x + self.norms[1](self.o(y))
            h = self.norms[2](x)
            return x + self.norms[3](self.down(nnx.gelu(self.gate(h)) * self.up(h)))

    class Gemma(nnx.Module):
        def __init__(self, rngs):
            self.embedder = nnx.Embed(WORDS, WIDTH, rngs=rngs)
            self.blocks = nnx.List([Block(i % 2 == 0, rngs) for i in range(LAYERS)])
            self.final = Norm(WIDTH)

        def __call__(self, ids, positions):
            x = self.embedder(ids) * jnp.sqrt(jnp.asarray(WIDTH, jnp.float32))
            for block in self.blocks:
                x = block(x, positions)
            return self.embedder.attend(self.final(x))
    return nnx_function(Gemma(nnx.Rngs(0)))


def nnx_speedrun():
    """modded-nanogpt: x0 and value residuals with learned shares, norms without scales, squared ReLU, capped logits.

    controllable: no norm stands behind a branch; the MLP's two matrices take the context, and later layers read v1 and x0 of tokens."""
    from flax import nnx
    Linear = functools.partial(nnx.Linear, use_bias=False)
    norm = lambda x: x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.qkv, self.proj = Linear(WIDTH, 3 * WIDTH, rngs=rngs), Linear(WIDTH, WIDTH, rngs=rngs)
            self.fc, self.out = Linear(WIDTH, 4 * WIDTH, rngs=rngs), Linear(4 * WIDTH, WIDTH, rngs=rngs)
            self.lambdas, self.value_share = nnx.Param(jnp.array([1.0, 0.2])), nnx.Param(jnp.array(0.5))

        def __call__(self, x, first, first_values, positions):
            b, t, _ = x.shape
            x = self.lambdas[0] * x + self.lambdas[1] * first
            q, k, v = (y.reshape(b, t, HEADS, HEAD) for y in jnp.split(self.qkv(norm(x)), 3, axis=-1))
            first_values = v if first_values is None else first_values
            v = (1 - self.value_share[...]) * v + self.value_share[...] * first_values
            q, k = halves_rotated(norm(q), positions), halves_rotated(norm(k), positions)
            y = jax.nn.dot_product_attention(q, k, v, scale=0.12, is_causal=True)
            x = x + self.proj(y.reshape(b, t, WIDTH))
            return x + self.out(jnp.square(jax.nn.relu(self.fc(norm(x))))), first_values

    class Decoder(nnx.Module):
        def __init__(self, rngs):
            self.words, self.head = nnx.Embed(WORDS, WIDTH, rngs=rngs), Linear(WIDTH, WORDS, rngs=rngs)
            self.blocks = nnx.List([Block(rngs) for _ in range(3)])

        def __call__(self, ids, positions):
            x = first = norm(self.words(ids))
            values = None
            for block in self.blocks:
                x, values = block(x, first, values, positions)
            return 30 * jnp.tanh(self.head(norm(x)) / 30)
    return nnx_function(Decoder(nnx.Rngs(0)))


# Haiku.

def haiku_primer():
    """Primer: convolutions of three tokens behind the projections, squared ReLU; layer_stack, and multi_transform's two functions.

    controllable: pre-norm MLP with biases."""
    import haiku as hk

    def attention(x):
        b, t, _ = x.shape

        def heads(name):
            y = hk.Linear(WIDTH, with_bias=False, name=name)(x)
            return hk.DepthwiseConv1D(1, 3, padding=[(2, 0)], name=f"{name}_conv")(y).reshape(b, t, HEADS, HEAD)
        scores = jnp.einsum("bthd,bThd->bhtT", heads("query"), heads("key")) / np.sqrt(HEAD)
        scores = jnp.where(jnp.tril(jnp.ones((1, 1, t, t), bool)), scores, -1e30)
        y = jnp.einsum("bhtT,bThd->bthd", jax.nn.softmax(scores), heads("value")).reshape(b, t, WIDTH)
        return hk.Linear(WIDTH, name="linear")(y)

    def layer(x):
        norm = lambda y: hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(y)
        x = x + attention(norm(x))
        return x + hk.Linear(WIDTH)(jnp.square(jax.nn.relu(hk.Linear(64)(norm(x)))))

    def parts():
        embed = hk.Embed(WORDS, WIDTH)
        encode = lambda ids: hk.experimental.layer_stack(LAYERS)(layer)(embed(ids))
        decode = lambda x: hk.LayerNorm(-1, True, True, name="ln_f")(x) @ embed.embeddings.T
        return lambda ids: decode(encode(ids)), (encode, decode)
    model = hk.multi_transform(parts)
    encode, decode = model.apply
    f = lambda params, ids: decode(params, None, encode(params, None, ids))
    return f, shaken(model.init(jax.random.key(0), jnp.zeros((1, 5), jnp.int32)))


def haiku_gtrxl():
    """GTrXL: a GRU's gate in the place of each residual sum, z between the stream and a tanh.

    rejected: an entry of the output lies between the stream's and ±1, whatever the parameters, and with a context it can lie beyond;
    undecided would be honest, too."""
    import haiku as hk

    class Gate(hk.Module):
        def __call__(self, x, y):
            linear = functools.partial(hk.Linear, WIDTH, with_bias=False)
            r = jax.nn.sigmoid(linear(name="w_r")(y) + linear(name="u_r")(x))
            z = jax.nn.sigmoid(linear(name="w_z")(y) + linear(name="u_z")(x) - hk.get_parameter("b_g", [WIDTH], init=jnp.ones))
            h = jnp.tanh(linear(name="w_g")(y) + linear(name="u_g")(r * x))
            return (1 - z) * x + z * h

    def decoder(ids, positions):
        b, t = ids.shape
        norm = lambda x: hk.LayerNorm(-1, True, True)(x)
        x = hk.Embed(WORDS, WIDTH)(ids) + hk.Embed(MOST, WIDTH)(positions)
        for _ in range(LAYERS):
            h = norm(x)
            mask = jnp.tril(jnp.ones((1, 1, t, t)))
            y = hk.MultiHeadAttention(HEADS, HEAD, w_init=hk.initializers.VarianceScaling(1.0))(h, h, h, mask=mask)
            x = Gate()(x, jax.nn.relu(y))
            x = Gate()(x, jax.nn.relu(hk.nets.MLP([64, WIDTH])(norm(x))))
        return hk.Linear(WORDS)(norm(x))
    model = hk.without_apply_rng(hk.transform(decoder))
    ids = jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


# Functions of trees.

@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    norm1: jax.Array
    norm2: jax.Array
    qkv: jax.Array
    out: jax.Array
    gate_up: jax.Array
    down: jax.Array


def bfloat16_weights():
    """Matrices in bfloat16, norms and softmax in float32, products that accumulate in float32; a scan that is unrolled by two.

    controllable: SwiGLU with one matrix for gate and up; what is left are bfloat16's roundings."""
    w, n = Draw(21), LAYERS
    half = lambda *shape: w(*shape).astype(jnp.bfloat16)
    layers = Layer(w(n, WIDTH, about=1), w(n, WIDTH, about=1), half(n, WIDTH, 3, HEADS, HEAD), half(n, HEADS, HEAD, WIDTH),
                   half(n, WIDTH, 96),
                   half(n, 48, WIDTH))
    params = {"embed": w(WORDS, WIDTH, scale=1).astype(jnp.bfloat16), "layers": layers, "norm": w(WIDTH, about=1)}
    normed = lambda x, scale: rms_norm(x.astype(jnp.float32), scale).astype(jnp.bfloat16)
    product = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)

    def layer(positions, x, p):
        t = x.shape[1]
        q, k, v = jnp.moveaxis(product("btd,dcnh->btcnh", normed(x, p.norm1), p.qkv), 2, 0)
        q, k = (halves_rotated(y, positions).astype(jnp.bfloat16) for y in (q, k))
        scores = product("btnh,bsnh->bnts", q, k) * HEAD ** -0.5
        shares = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e30), -1).astype(jnp.bfloat16)
        y = product("bnts,bsnh->btnh", shares, v.astype(jnp.bfloat16)).astype(jnp.bfloat16)
        x = x + product("btnh,nhd->btd", y, p.out).astype(x.dtype)
        gate, up = jnp.split(product("btd,df->btf", normed(x, p.norm2), p.gate_up), 2, -1)
        return x + product("btf,fd->btd", (jax.nn.silu(gate) * up).astype(jnp.bfloat16), p.down).astype(x.dtype), None

    def f(params, ids, positions):
        x, _ = jax.lax.scan(functools.partial(layer, positions), params["embed"][ids], params["layers"], unroll=2)
        return product("btd,wd->btw", normed(x, params["norm"]), params["embed"])
    return f, params


def palm():
    """PaLM: one matrix for queries, one key, one value, gate and up; one matrix for attention's and the MLP's outputs together.

    controllable: the fused output matrix takes all, since the MLP beside attention has not read the context."""
    w = Draw(22)
    inner = 64
    params = {"embed": w(WORDS, WIDTH, scale=1), "norm": w(WIDTH, about=1),
              "blocks": [{"gamma": w(WIDTH, about=1), "wi": w(WIDTH, WIDTH + 2 * HEAD + 2 * inner), "wo": w(WIDTH + inner, WIDTH)}
                         for _ in range(LAYERS)]}

    def f(params, ids, positions):
        b, t = ids.shape
        x = params["embed"][ids]
        for p in params["blocks"]:
            q, k, v, gate, up = jnp.split(rms_norm(x, p["gamma"]) @ p["wi"],
                                          np.cumsum([WIDTH, HEAD, HEAD, inner]).tolist(), axis=-1)
            q = halves_rotated(q.reshape(b, t, HEADS, HEAD), positions) * HEAD ** -0.5
            k = halves_rotated(k[:, :, None], positions)[:, :, 0]
            scores = jnp.einsum("bihd,bjd->bhij", q, k)
            scores = jnp.where(jnp.triu(jnp.ones((t, t), bool), 1), jnp.finfo(scores.dtype).min, scores)
            y = jnp.einsum("bhij,bjd->bihd", jax.nn.softmax(scores), v).reshape(b, t, WIDTH)
            x = x + jnp.concatenate([y, jax.nn.swish(gate) * up], axis=-1) @ p["wo"]
        return rms_norm(x, params["norm"]) @ params["embed"].T
    return f, params


class Weights(typing.NamedTuple):
    attention_norm: jax.Array
    wq: jax.Array
    wk: jax.Array
    wv: jax.Array
    wo: jax.Array
    ffn_norm: jax.Array
    w1: jax.Array
    w2: jax.Array
    w3: jax.Array


def complex_rope():
    """Meta's Llama: rotation by complex numbers; vmap over the batch, over the groups of heads and over the queries of a group.

    controllable: SwiGLU of three matrices."""
    w = Draw(23)
    layer = lambda: Weights(w(WIDTH, about=1), w(WIDTH, WIDTH), w(WIDTH, KEYS * HEAD), w(WIDTH, KEYS * HEAD), w(WIDTH, WIDTH),
                            w(WIDTH, about=1),
                            w(WIDTH, 48), w(48, WIDTH), w(WIDTH, 48))
    params = {"tok_embeddings": w(WORDS, WIDTH, scale=1), "layers": tuple(layer() for _ in range(LAYERS)), "norm": w(WIDTH, about=1),
              "output": w(WIDTH, WORDS)}

    def rotated(x, cis):
        pairs = x.reshape(x.shape[0], HEAD // 2, 2)
        turned = jax.lax.complex(pairs[..., 0], pairs[..., 1]) * cis
        return jnp.stack([jnp.real(turned), jnp.imag(turned)], axis=-1).reshape(x.shape)

    def head(cis, q, k, v):
        t = q.shape[0]
        scores = rotated(q, cis) @ rotated(k, cis).T / jnp.sqrt(HEAD)
        return jax.nn.softmax(scores + jnp.where(jnp.tril(jnp.ones((t, t), bool)), 0.0, -jnp.inf), axis=-1) @ v

    def sequence(params, ids, positions):
        t = ids.shape[0]
        cis = jnp.exp(1j * (positions[:, None] * 10000.0 ** (-jnp.arange(0, HEAD, 2) / HEAD)))
        group = jax.vmap(functools.partial(head, cis), in_axes=(1, None, None), out_axes=1)
        attend = jax.vmap(group, in_axes=(1, 1, 1), out_axes=1)
        x = params["tok_embeddings"][ids]
        for p in params["layers"]:
            h = rms_norm(x, p.attention_norm)
            k, v = ((h @ each).reshape(t, KEYS, HEAD) for each in (p.wk, p.wv))
            x = x + attend((h @ p.wq).reshape(t, KEYS, HEADS // KEYS, HEAD), k, v).reshape(t, WIDTH) @ p.wo
            h = rms_norm(x, p.ffn_norm)
            x = x + (jax.nn.silu(h @ p.w1) * (h @ p.w3)) @ p.w2
        return rms_norm(x, params["norm"]) @ params["output"]
    return jax.vmap(sequence, in_axes=(None, 0, 0)), params


def mlp_of(w, inner=48):
    return {"norm2": w(WIDTH, about=1), "gate": w(WIDTH, inner), "up": w(WIDTH, inner), "down": w(inner, WIDTH)}


def with_mlp(p, x):
    h = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def min_gru():
    """minGRU by the parallel scan in logarithms: cumsum and cumlogsumexp.

    controllable: SwiGLU behind a mixer of any kind; that the mixer joins tokens suffices."""
    w = Draw(24)
    params = {"embed": w(WORDS, WIDTH, scale=1), "norm": w(WIDTH, about=1), "head": w(WIDTH, WORDS),
              "layers": [{"norm1": w(WIDTH, about=1), "hidden_gate": w(WIDTH, 2 * WIDTH), "out": w(WIDTH, WIDTH), **mlp_of(w)}
                         for _ in range(LAYERS)]}

    def mixed(x):
        hidden, gate = jnp.split(x, 2, axis=-1)
        log_coefficients = -jax.nn.softplus(gate)
        log_g = jnp.where(hidden >= 0, jnp.log(jax.nn.relu(hidden) + 0.5), -jax.nn.softplus(-hidden))
        log_values = -jax.nn.softplus(-gate) + log_g
        a_star = jnp.cumsum(log_coefficients, axis=1)
        return jnp.exp(a_star + jax.lax.cumlogsumexp(log_values - a_star, axis=1))

    def f(params, ids):
        x = params["embed"][ids]
        for p in params["layers"]:
            x = with_mlp(p, x + mixed(rms_norm(x, p["norm1"]) @ p["hidden_gate"]) @ p["out"])
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def rwkv():
    """RWKV 4: shifts by one token, a decayed sum of exp(k) v over one of exp(k), channel mixing with a gate.

    controllable: channel mixing is relu(k)² between two matrices, and its gate is not zero."""
    w = Draw(25)
    time = lambda: {"ln": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}, "mix": w(3, WIDTH, about=0.5, scale=0.1), "decay": w(WIDTH),
                    "first": w(WIDTH),
                    "k": w(WIDTH, WIDTH), "v": w(WIDTH, WIDTH), "r": w(WIDTH, WIDTH), "o": w(WIDTH, WIDTH)}
    channel = lambda: {"ln": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}, "mix": w(2, WIDTH, about=0.5, scale=0.1), "k": w(WIDTH, 96),
                       "r": w(WIDTH, WIDTH),
                       "v": w(96, WIDTH)}
    params = {"emb": w(WORDS, WIDTH, scale=1), "blocks": [{"att": time(), "ffn": channel()} for _ in range(LAYERS)],
              "ln_out": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}, "head": w(WIDTH, WORDS)}
    shifted = lambda x: jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]

    def decayed(decay, x):
        _, total = jax.lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (jnp.broadcast_to(decay, x.shape), x), axis=1)
        return total

    def time_mixing(p, x):
        before = shifted(x)
        k, v, r = (x * m + before * (1 - m) for m in p["mix"])
        k, v, r = jnp.exp(k @ p["k"]), v @ p["v"], jax.nn.sigmoid(r @ p["r"])
        decay, first = jnp.exp(-jnp.exp(p["decay"])), jnp.exp(p["first"])
        above, below = shifted(decayed(decay, k * v)), shifted(decayed(decay, k))
        return (r * (above + first * k * v) / (below + first * k)) @ p["o"]

    def channel_mixing(p, x):
        before = shifted(x)
        k, r = (x * m + before * (1 - m) for m in p["mix"])
        return jax.nn.sigmoid(r @ p["r"]) * (jnp.square(jax.nn.relu(k @ p["k"])) @ p["v"])

    def f(params, ids):
        x = params["emb"][ids]
        for p in params["blocks"]:
            x = x + time_mixing(p["att"], layer_norm(x, **p["att"]["ln"]))
            x = x + channel_mixing(p["ffn"], layer_norm(x, **p["ffn"]["ln"]))
        return layer_norm(x, **params["ln_out"]) @ params["head"]
    return f, params


def hyena():
    """Hyena of order 2: filters as long as the text, made by a small MLP of the position, and convolved by FFT.

    controllable: GELU MLP behind it, if an FFT is read at all."""
    w = Draw(26)
    layer = lambda: {"norm1": w(WIDTH, about=1), "in": w(WIDTH, 3 * WIDTH), "short": w(3, 3 * WIDTH), "filter1": w(5, 16, scale=1),
                     "filter2": w(16, WIDTH),
                     "rate": w(WIDTH, about=1), "skip": w(WIDTH), "out": w(WIDTH, WIDTH), "norm2": w(WIDTH, about=1), "up": w(WIDTH, 64),
                     "down": w(64, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [layer() for _ in range(LAYERS)], "norm": w(WIDTH, about=1),
              "head": w(WIDTH, WORDS)}

    def filter_of(p, t):
        place = jnp.arange(t)[:, None] / MOST
        angles = 2 * jnp.pi * place * jnp.arange(1, 3)
        features = jnp.concatenate([place, jnp.cos(angles), jnp.sin(angles)], axis=-1)
        return (jnp.sin(features @ p["filter1"]) @ p["filter2"]) * jnp.exp(-jnp.abs(p["rate"]) * place * 8)

    def long_convolution(u, h):
        t = u.shape[1]
        return jnp.fft.irfft(jnp.fft.rfft(u, n=2 * t, axis=1) * jnp.fft.rfft(h, n=2 * t, axis=0), n=2 * t, axis=1)[:, :t]

    def mixed(p, x):
        t = x.shape[1]
        u = jnp.pad(x @ p["in"], ((0, 0), (2, 0), (0, 0)))
        u = sum(u[:, i:i + t] * p["short"][i] for i in range(3))
        gate1, gate2, v = jnp.split(u, 3, axis=-1)
        v = v * gate2
        return (gate1 * (long_convolution(v, filter_of(p, t)) + p["skip"] * v)) @ p["out"]

    def f(params, ids):
        x = params["embed"][ids]
        for p in params["layers"]:
            x = x + mixed(p, rms_norm(x, p["norm1"]))
            x = x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def sinks():
    """gpt-oss: a sink beside the scores of each head, windows in every other layer, experts with biases and a clamped, interleaved SwiGLU.

    controllable: the biases of the chosen experts take what is left at the output, as their shares sum up to 1."""
    w = Draw(27)
    experts, inner, window = 4, 24, 4
    block = lambda: {"norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), "sinks": w(HEADS),
                     "qkv": w(WIDTH, (HEADS + 2 * KEYS) * HEAD), "qkv_bias": w((HEADS + 2 * KEYS) * HEAD), "out": w(WIDTH, WIDTH),
                     "out_bias": w(WIDTH),
                     "gate": w(WIDTH, experts), "gate_bias": w(experts), "mlp1": w(experts, WIDTH, 2 * inner), "mlp1_bias": w(experts,
                                                                                                                              2 * inner),
                     "mlp2": w(experts, inner, WIDTH), "mlp2_bias": w(experts, WIDTH)}
    params = {"embedding": w(WORDS, WIDTH, scale=1), "block": [block() for _ in range(LAYERS)], "norm": w(WIDTH, about=1),
              "unembedding": w(WIDTH, WORDS)}

    def attention(p, x, positions, window):
        b, t, _ = x.shape
        qkv = rms_norm(x, p["norm1"]) @ p["qkv"] + p["qkv_bias"]
        q, k, v = jnp.split(qkv, [HEADS * HEAD, (HEADS + KEYS) * HEAD], axis=-1)
        q = halves_rotated(q.reshape(b, t, HEADS, HEAD), positions)
        k = jnp.repeat(halves_rotated(k.reshape(b, t, KEYS, HEAD), positions), HEADS // KEYS, axis=2)
        v = jnp.repeat(v.reshape(b, t, KEYS, HEAD), HEADS // KEYS, axis=2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * HEAD ** -0.5
        hidden = jnp.triu(jnp.full((t, t), -jnp.inf), 1)
        if window:
            hidden = hidden + jnp.tril(jnp.full((t, t), -jnp.inf), -window)
        sink = jnp.broadcast_to(p["sinks"][None, :, None, None], (b, HEADS, t, 1))
        shares = jax.nn.softmax(jnp.concatenate([scores + hidden, sink], axis=-1), axis=-1)[..., :-1]
        return x + jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(b, t, WIDTH) @ p["out"] + p["out_bias"]

    def swiglu(x):
        glu, linear = x[..., ::2], x[..., 1::2]
        glu, linear = jnp.minimum(glu, 7.0), jnp.clip(linear, -7.0, 7.0)
        return glu * jax.nn.sigmoid(1.702 * glu) * (linear + 1)

    def mlp(p, x):
        h = rms_norm(x, p["norm2"])
        scores, chosen = jax.lax.top_k(h @ p["gate"] + p["gate_bias"], 2)
        h = swiglu(jnp.einsum("btd,btedf->btef", h, p["mlp1"][chosen]) + p["mlp1_bias"][chosen])
        h = jnp.einsum("btef,btefd->bted", h, p["mlp2"][chosen]) + p["mlp2_bias"][chosen]
        return x + jnp.einsum("bted,bte->btd", h, jax.nn.softmax(scores, axis=-1))

    def f(params, ids, positions):
        x = params["embedding"][ids]
        for i, p in enumerate(params["block"]):
            x = mlp(p, attention(p, x, positions, window if i % 2 == 0 else 0))
        return rms_norm(x, params["norm"]) @ params["unembedding"]
    return f, params


def attention_of(p, h, positions):
    """(…, WIDTH) to (…, WIDTH), by four square matrices."""
    q, k, v = ((h @ p[name]).reshape(*h.shape[:2], HEADS, HEAD) for name in "qkv")
    y = jax.nn.dot_product_attention(halves_rotated(q, positions), halves_rotated(k, positions), v, is_causal=True)
    return y.reshape(h.shape) @ p["o"]


def squares(w):
    return {name: w(WIDTH, WIDTH) for name in "qkvo"}


def hyper_connections():
    """Static hyper-connections: two residual streams, mixed by matrices before and behind each of a layer's two parts.

    rejected: attention writes to the streams in other proportions than the MLP behind it, and only the MLP's vector can be changed."""
    w = Draw(28)
    streams = 2
    mixing = lambda: {"read": w(streams, about=0.5), "keep": w(streams, streams), "write": w(streams, about=1)}
    block = lambda: {"hc1": mixing(), "hc2": mixing(), "norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), **squares(w),
                     "up": w(WIDTH, 64), "down": w(64, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [block() for _ in range(LAYERS)], "norm": w(WIDTH, about=1),
              "head": w(WIDTH, WORDS)}

    def connected(p, part, x):
        y = part(jnp.einsum("n,btnd->btd", p["read"], x))
        return jnp.einsum("mn,btnd->btmd", p["keep"], x) + p["write"][:, None] * y[:, :, None, :]

    def f(params, ids, positions):
        x = jnp.repeat(params["embed"][ids][:, :, None, :], streams, axis=2)
        for p in params["layers"]:
            x = connected(p["hc1"], lambda h: attention_of(p, rms_norm(h, p["norm1"]), positions), x)
            x = connected(p["hc2"], lambda h: jax.nn.gelu(rms_norm(h, p["norm2"]) @ p["up"]) @ p["down"], x)
        return rms_norm(x.sum(2), params["norm"]) @ params["head"]
    return f, params


def deep_norm():
    """DeepNorm: norms behind the sums, whose stream is multiplied by a constant; attention by jnp.vectorize, a table of positions.

    controllable: both norms have biases, and the last one's takes what is left, as BERT's does."""
    w = Draw(29)
    alpha = (2 * LAYERS) ** 0.25
    norm = lambda: {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}
    block = lambda: {**squares(w), "ln1": norm(), "ln2": norm(), "up": w(WIDTH, 64), "up_bias": w(64), "down": w(64, WIDTH),
                     "down_bias": w(WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "positions": w(MOST, WIDTH), "layers": [block() for _ in range(LAYERS)],
              "head": w(WIDTH, WORDS)}

    @functools.partial(jnp.vectorize, signature="(t,h),(s,h),(s,h)->(t,h)")
    def attend(q, k, v):
        seen = jnp.arange(q.shape[0])[:, None] >= jnp.arange(k.shape[0])
        return jax.nn.softmax(jnp.where(seen, q @ k.T / jnp.sqrt(HEAD), -1e9)) @ v

    def f(params, ids, positions):
        b, t = ids.shape
        x = params["embed"][ids] + params["positions"][positions]
        for p in params["layers"]:
            q, k, v = (jnp.swapaxes((x @ p[name]).reshape(b, t, HEADS, HEAD), 1, 2) for name in "qkv")
            x = layer_norm(alpha * x + jnp.swapaxes(attend(q, k, v), 1, 2).reshape(b, t, WIDTH) @ p["o"], **p["ln1"])
            x = layer_norm(alpha * x + jax.nn.relu(x @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"], **p["ln2"])
        return x @ params["head"]
    return f, params


@jax.custom_vjp
def squared_relu(x):
    return jnp.square(jnp.maximum(x, 0))


squared_relu.defvjp(lambda x: (squared_relu(x), x), lambda x, slope: (2 * jnp.maximum(x, 0) * slope,))


@jax.custom_jvp
def quick_gelu(x):
    return x * jax.nn.sigmoid(1.702 * x)


@quick_gelu.defjvp
def quick_gelu_slope(primals, tangents):
    s = jax.nn.sigmoid(1.702 * primals[0])
    return primals[0] * s, (s + 1.702 * primals[0] * s * (1 - s)) * tangents[0]


def dyt():
    """Dynamic tanh in the place of norms, LayerScale behind each branch, rotated pairs, activations with derivatives of their own.

    controllable: up reads gamma * tanh(alpha x) + beta, which is not zero, and down stands behind it before a scale that is not zero."""
    w = Draw(30)
    part = HEAD // 2
    cell = lambda: {"alpha": w(about=0.5, scale=0.1), "gamma": w(WIDTH, about=1), "beta": w(WIDTH)}
    block = lambda: {"dyt1": cell(), "dyt2": cell(), **squares(w), "scale1": w(WIDTH, about=0.7), "scale2": w(WIDTH, about=0.7),
                     "up": w(WIDTH, 64),
                     "gate": w(WIDTH, 64), "down": w(64, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [block() for _ in range(LAYERS)], "dyt": cell(), "head": w(WIDTH, WORDS)}
    normed = lambda x, alpha, gamma, beta: gamma * jnp.tanh(alpha * x) + beta

    def rotated(x, positions):
        angle = positions[..., None, None] * 10000.0 ** (-jnp.arange(0, part, 2) / part)
        even, odd = x[..., 0:part:2], x[..., 1:part:2]
        turned = jnp.stack([even * jnp.cos(angle) - odd * jnp.sin(angle), even * jnp.sin(angle) + odd * jnp.cos(angle)], axis=-1)
        return jnp.concatenate([turned.reshape(*x.shape[:-1], part), x[..., part:]], axis=-1)

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def layer(p, x, positions):
        h, (b, t, _) = normed(x, **p["dyt1"]), x.shape
        q, k, v = ((h @ p[name]).reshape(b, t, HEADS, HEAD) for name in "qkv")
        y = jax.nn.dot_product_attention(rotated(q, positions), rotated(k, positions), v, is_causal=True).reshape(b, t, WIDTH)
        x = x + p["scale1"] * (y @ p["o"])
        h = normed(x, **p["dyt2"])
        return x + p["scale2"] * ((quick_gelu(h @ p["gate"]) * squared_relu(h @ p["up"])) @ p["down"])

    def f(params, ids, positions):
        x = params["embed"][ids]
        for p in params["layers"]:
            x = layer(p, x, positions)
        return normed(x, **params["dyt"]) @ params["head"]
    return f, params


def lora():
    """A decoder whose matrices are composed of a base and a product of two thin ones, merged before they are used.

    controllable: the base is added to the product, and so takes every change of the composed matrix."""
    w = Draw(31)
    shapes = {**{name: (WIDTH, WIDTH) for name in "qkvo"}, "gate": (WIDTH, 48), "up": (WIDTH, 48), "down": (48, WIDTH)}
    base = lambda: {"norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), **{name: w(*shape) for name, shape in shapes.items()}}
    thin = lambda: {name: {"a": w(rows, 4), "b": w(4, columns)} for name, (rows, columns) in shapes.items()}
    params = {"base": {"embed": w(WORDS, WIDTH, scale=1), "layers": [base() for _ in range(LAYERS)], "norm": w(WIDTH, about=1),
                       "head": w(WIDTH, WORDS)},
              "lora": [thin() for _ in range(LAYERS)]}
    merged = lambda p, more: {**p, **{name: p[name] + 2.0 * (each["a"] @ each["b"]) for name, each in more.items()}}

    def f(params, ids, positions):
        base = params["base"]
        x = base["embed"][ids]
        for p in map(merged, base["layers"], params["lora"]):
            x = with_mlp(p, x + attention_of(p, rms_norm(x, p["norm1"]), positions))
        return rms_norm(x, base["norm"]) @ base["head"]
    return f, params


def mamba2_ssd():
    """Mamba 2 without MLPs: the dual, quadratic form of its recurrence by segment sums, a gated norm before the last matrix.

    undecided by the paper's sites, as there is no MLP; controllable with all, by the mixer's last matrix."""
    w = Draw(32)
    inner, state, heads = 2 * WIDTH, 8, 8
    size = inner // heads
    layer = lambda: {"norm": w(WIDTH, about=1), "in_proj": w(WIDTH, 2 * inner + 2 * state + heads), "conv": w(4, inner + 2 * state),
                     "conv_bias": w(inner + 2 * state),
                     "dt_bias": w(heads), "a_log": w(heads), "d": w(heads), "gated_norm": w(inner, about=1), "out_proj": w(inner, WIDTH)}
    params = {"embedding": w(WORDS, WIDTH, scale=1), "layers": [layer() for _ in range(LAYERS)], "norm_f": w(WIDTH, about=1)}

    def segment_sums(x):
        """x: (…, tokens). The sum of x over (j, i] for i ≥ j, and minus infinity before."""
        t = x.shape[-1]
        total = jnp.cumsum(x, axis=-1)
        return jnp.where(jnp.tril(jnp.ones((t, t), bool)), total[..., :, None] - total[..., None, :], -jnp.inf)

    def mixed(p, x):
        b, t, _ = x.shape
        z, xbc, dt = jnp.split(x @ p["in_proj"], [inner, 2 * inner + 2 * state], axis=-1)
        dt = jax.nn.softplus(dt + p["dt_bias"])
        padded = jnp.pad(xbc, ((0, 0), (3, 0), (0, 0)))
        xbc = jax.nn.silu(sum(padded[:, i:i + t] * p["conv"][i] for i in range(4)) + p["conv_bias"])
        u, keys, queries = jnp.split(xbc, [inner, inner + state], axis=-1)
        u = u.reshape(b, t, heads, size)
        decay = jnp.exp(segment_sums(jnp.moveaxis(dt * -jnp.exp(p["a_log"]), 1, 2)))
        y = jnp.einsum("btn,bsn,bhts,bsh,bshp->bthp", queries, keys, decay, dt, u) + p["d"][:, None] * u
        return rms_norm(y.reshape(b, t, inner) * jax.nn.silu(z), p["gated_norm"]) @ p["out_proj"]

    def f(params, ids):
        x = params["embedding"][ids]
        for p in params["layers"]:
            x = x + mixed(p, rms_norm(x, p["norm"]))
        return rms_norm(x, params["norm_f"]) @ params["embedding"].T
    return f, params


# The verdict on each by the paper's sites, where it is another than controllable.
EXPECTED = {haiku_gtrxl: "rejected", hyper_connections: "rejected", mamba2_ssd: "undecided"}
PROGRAMS = [equinox_stacked, equinox_differential, linen_shared_experts, linen_retnet, nnx_gemma3, nnx_speedrun, haiku_primer, haiku_gtrxl,
            bfloat16_weights, palm, complex_rope, min_gru, rwkv, hyena, sinks, hyper_connections, deep_norm, dyt, lora, mamba2_ssd]
