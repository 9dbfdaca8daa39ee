"""More decoders in JAX, written after the exporter: what programs.py has none of, and what has to be refused."""
import jax
import jax.numpy as jnp
import numpy as np

from programs import HEAD, HEADS, LAYERS, MOST, WIDTH, WORDS, Draw, halves_rotated, layer_norm, nnx_function, rms_norm, shaken


def seen_of(t):
    return jnp.tril(jnp.ones((t, t), bool))


def attended(q, k, v, seen):
    """All of (batch, tokens, heads, HEAD)."""
    scores = jnp.einsum("btnh,bsnh->bnts", q, k) * HEAD ** -0.5
    return jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(jnp.where(seen, scores, -1e30), -1), v)


def decoder(layer, block, extra=lambda w: {}, seed=7):
    """f and params of layers in a list, between an embedding and a head."""
    w = Draw(seed)
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [block(w) for _ in range(LAYERS)], "norm": w(WIDTH, about=1),
              "head": w(WIDTH, WORDS), **extra(w)}

    def f(params, ids, positions):
        x = params["embed"][ids]
        for p in params["layers"]:
            x = layer(p, x, positions)
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def attention_block(w):
    return {"norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), "q": w(WIDTH, HEADS, HEAD), "k": w(WIDTH, HEADS, HEAD),
            "v": w(WIDTH, HEADS, HEAD), "o": w(HEADS, HEAD, WIDTH), "up": w(WIDTH, 48), "down": w(48, WIDTH)}


def heads_of(p, h, positions):
    q, k, v = (jnp.einsum("btd,dnh->btnh", h, p[name]) for name in "qkv")
    return halves_rotated(q, positions), halves_rotated(k, positions), v


def plain_layer(p, x, positions):
    y = attended(*heads_of(p, rms_norm(x, p["norm1"]), positions), seen_of(x.shape[1]))
    x = x + jnp.einsum("btnh,nhd->btd", y, p["o"])
    return x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]


def alibi():
    def layer(p, x, positions):
        q, k, v = (jnp.einsum("btd,dnh->btnh", rms_norm(x, p["norm1"]), p[name]) for name in "qkv")
        slopes = 2.0 ** (-8.0 * (np.arange(HEADS) + 1) / HEADS)
        distance = positions[:, None, :, None] - positions[:, None, None, :]
        scores = jnp.einsum("btnh,bsnh->bnts", q, k) * HEAD ** -0.5 - slopes[:, None, None].astype(np.float32) * distance
        shares = jax.nn.softmax(jnp.where(distance >= 0, scores, -1e30), -1)
        x = x + jnp.einsum("btnh,nhd->btd", jnp.einsum("bnts,bsnh->btnh", shares, v), p["o"])
        return x + jax.nn.relu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return decoder(layer, attention_block)


def latent():
    """Latent attention: keys and values of a low rank; queries and keys are normed."""
    def block(w):
        return {**attention_block(w), "down_kv": w(WIDTH, 16), "k": w(16, HEADS, HEAD), "v": w(16, HEADS, HEAD), "latent_norm": w(16, about=1),
                "q_norm": w(HEAD, about=1), "k_norm": w(HEAD, about=1)}

    def layer(p, x, positions):
        h = rms_norm(x, p["norm1"])
        c = rms_norm(h @ p["down_kv"], p["latent_norm"])
        q = halves_rotated(rms_norm(jnp.einsum("btd,dnh->btnh", h, p["q"]), p["q_norm"]), positions)
        k = halves_rotated(rms_norm(jnp.einsum("btr,rnh->btnh", c, p["k"]), p["k_norm"]), positions)
        y = attended(q, k, jnp.einsum("btr,rnh->btnh", c, p["v"]), seen_of(x.shape[1]))
        x = x + jnp.einsum("btnh,nhd->btd", y, p["o"])
        return x + jax.nn.silu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return decoder(layer, block)


def long_convolution():
    """A filter of each distance between two tokens, as a matrix of all of them."""
    def block(w):
        return {**attention_block(w), "filter": w(MOST, WIDTH)}

    def layer(p, x, positions):
        distance = jnp.arange(x.shape[1])[:, None] - jnp.arange(x.shape[1])
        matrix = jnp.where(distance[..., None] >= 0, p["filter"][jnp.abs(distance)], 0)
        x = x + jnp.einsum("ijd,bjd->bid", matrix, rms_norm(x, p["norm1"]))
        return x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return decoder(layer, block)


def far_shift():
    """Scores of what stands three tokens before, which fall with the distance and are no softmax: one token alone has nothing there."""
    def layer(p, x, positions):
        h = rms_norm(x, p["norm1"])
        q, k, v = (jnp.pad(jnp.einsum("btd,dnh->btnh", h, p[name]), ((0, 0), (3, 0), (0, 0), (0, 0)))[:, :-3] for name in "qkv")
        distance = jnp.arange(x.shape[1])[:, None] - jnp.arange(x.shape[1])
        scores = jnp.einsum("btnh,bsnh->bnts", q, k) * jnp.where(distance >= 0, 1 / (1 + jnp.abs(distance)), 0)
        x = x + jnp.einsum("btnh,nhd->btd", jnp.einsum("bnts,bsnh->btnh", scores, v), p["o"])
        return x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return decoder(layer, attention_block)


def ngpt():
    """Vectors of length 1 all along."""
    unit = lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def layer(p, x, positions):
        y = attended(*heads_of(p, x, positions), seen_of(x.shape[1]))
        x = unit(x + jnp.abs(p["norm1"]) * (unit(jnp.einsum("btnh,nhd->btd", y, p["o"])) - x))
        return unit(x + jnp.abs(p["norm2"]) * (unit(jax.nn.silu(x @ p["up"]) @ p["down"]) - x))
    return decoder(layer, attention_block)


def mixture_taken():
    """Each token takes the matrices of its two experts."""
    experts = 4

    def block(w):
        return {**attention_block(w), "router": w(WIDTH, experts), "w1": w(experts, WIDTH, 24), "w2": w(experts, 24, WIDTH)}

    def layer(p, x, positions):
        y = attended(*heads_of(p, rms_norm(x, p["norm1"]), positions), seen_of(x.shape[1]))
        x = x + jnp.einsum("btnh,nhd->btd", y, p["o"])
        h = rms_norm(x, p["norm2"])
        chosen, which = jax.lax.top_k(jax.nn.softmax(h @ p["router"], -1), 2)
        inner = jax.nn.silu(jnp.einsum("btd,btkdf->btkf", h, jnp.take(p["w1"], which, axis=0)))
        return x + jnp.einsum("btkd,btk->btd", jnp.einsum("btkf,btkfd->btkd", inner, jnp.take(p["w2"], which, axis=0)), chosen)
    return decoder(layer, block)


def skips(scopes):
    """The embedding is mixed into every layer's input, as in modded-nanogpt."""
    w = Draw(9)
    params = {"embed": w(WORDS, WIDTH, scale=1), "mix": w(LAYERS, 2, about=0.7), "layers": [attention_block(w) for _ in range(LAYERS)],
              "norm": w(WIDTH, about=1), "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        x = first = params["embed"][ids]
        for i, p in enumerate(params["layers"]):
            with jax.named_scope(f"layers_{i}" if scopes else "part"):
                x = plain_layer(p, params["mix"][i, 0] * x + params["mix"][i, 1] * first, positions)
        return rms_norm(x, params["norm"]) @ params["head"]
    return f, params


def skips_unnamed():
    return skips(False)


def skips_in_scopes():
    return skips(True)


def folded_net():
    """What the first layer gives is added behind every other one, so that no value separates them; no name says which they are."""
    w = Draw(15)
    params = {"embed": w(WORDS, WIDTH, scale=1), "first": attention_block(w), "second": attention_block(w), "third": attention_block(w),
              "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        first = plain_layer(params["first"], params["embed"][ids], positions)
        x = plain_layer(params["second"], first, positions) + 0.5 * first
        x = plain_layer(params["third"], x, positions) + 0.5 * first
        return rms_norm(x, 1.0) @ params["head"]
    return f, params


def last_norm_without_scale():
    """A norm without a scale is behind the last layer, and not at its end, where it would be a reason to reject it."""
    w = Draw(16)
    params = {"embed": w(WORDS, WIDTH, scale=1), "only": attention_block(w), "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        return rms_norm(plain_layer(params["only"], params["embed"][ids], positions), 1.0) @ params["head"]
    return f, params


def nnx_scanned():
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm1, self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs), nnx.LayerNorm(WIDTH, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
            self.up, self.down = nnx.Linear(WIDTH, 64, rngs=rngs), nnx.Linear(64, WIDTH, rngs=rngs)

        def __call__(self, x):
            x = x + self.attention(self.norm1(x), mask=nnx.make_causal_mask(x[..., 0]))
            return x + self.down(nnx.gelu(self.up(self.norm2(x))))

    class Gpt(nnx.Module):
        def __init__(self, rngs):
            self.words, self.places = nnx.Embed(WORDS, WIDTH, rngs=rngs), nnx.Embed(MOST, WIDTH, rngs=rngs)
            self.blocks = nnx.vmap(Block, in_axes=0, out_axes=0)(rngs.fork(split=LAYERS))
            self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

        def __call__(self, ids, positions):
            step = nnx.scan(lambda x, block: block(x), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            return self.words.attend(self.norm(step(self.words(ids) + self.places(positions), self.blocks)))
    return nnx_function(Gpt(nnx.Rngs(0)))


def linen_flat():
    """All in one module: only attention has a scope of its own, which is a part of a layer."""
    import flax.linen as nn

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, ids, positions):
            x = nn.Embed(WORDS, WIDTH)(ids) + nn.Embed(MOST, WIDTH)(positions)
            for _ in range(LAYERS):
                x = x + nn.MultiHeadDotProductAttention(HEADS)(nn.LayerNorm()(x), mask=nn.make_causal_mask(ids))
                x = x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(48)(nn.LayerNorm()(x))))
            return nn.Dense(WORDS)(nn.LayerNorm()(x))
    model, ids = Decoder(), jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


def linen_scanned():
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, positions):
            h = nn.RMSNorm()(x)
            q, k, v = (nn.DenseGeneral((HEADS, HEAD), use_bias=False, name=name)(h) for name in "qkv")
            y = attended(halves_rotated(q, positions), halves_rotated(k, positions), v, seen_of(x.shape[1]))
            x = x + nn.DenseGeneral(WIDTH, axis=(-2, -1), name="o")(y)
            h = nn.RMSNorm()(x)
            return x + nn.Dense(WIDTH)(nn.silu(nn.Dense(48)(h)) * nn.Dense(48)(h)), None

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, ids, positions):
            x = nn.Embed(WORDS, WIDTH)(ids)
            layers = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=LAYERS, in_axes=nn.broadcast)
            x, _ = layers(name="layers")(x, positions)
            return nn.Dense(WORDS)(nn.RMSNorm()(x))
    model, ids = Decoder(), jnp.zeros((1, 5), jnp.int32)
    return model.apply, shaken(model.init(jax.random.key(0), ids, ids))


def table_of_positions():
    """The positions' rows are the first of a table: the function gets no positions."""
    w = Draw(11)
    params = {"wte": w(WORDS, WIDTH, scale=1), "wpe": w(MOST, WIDTH), "layers": [attention_block(w) for _ in range(LAYERS)],
              "norm": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}}

    def f(params, ids):
        t = ids.shape[1]
        x = params["wte"][ids] + params["wpe"][:t]
        for p in params["layers"]:
            q, k, v = (jnp.einsum("btd,dnh->btnh", rms_norm(x, p["norm1"]), p[name]) for name in "qkv")
            x = x + jnp.einsum("btnh,nhd->btd", attended(q, k, v, seen_of(t)), p["o"])
            x = x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
        return layer_norm(x, **params["norm"]) @ params["wte"].T
    return f, params


def half_precision():
    f, params = decoder(plain_layer, attention_block, seed=12)
    return f, jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)


def vision_block():
    """One block of activations, all of which see each other."""
    w = Draw(13)

    def f(params, x):
        h = layer_norm(x, **params["ln1"])
        q, k, v = (jnp.einsum("btd,dnh->btnh", h, params[name]) for name in "qkv")
        x = x + jnp.einsum("btnh,nhd->btd", attended(q, k, v, True), params["o"])
        return x + jax.nn.gelu(layer_norm(x, **params["ln2"]) @ params["up"]) @ params["down"]
    return f, {**attention_block(w), "ln1": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}, "ln2": {"scale": w(WIDTH, about=1), "bias": w(WIDTH)}}, \
        np.zeros((1, 13, WIDTH), np.float32)


def bounded(trained):
    """docs/check-your-architecture.md's layer, whose last norm has a scale or none."""
    w = Draw(14)
    params = {"mix": w(64, 128), "up": w(64, 256), "down": w(256, 64), **({"scale": w(64, about=1)} if trained else {})}

    def f(params, x):
        q, v = jnp.split(x @ params["mix"], 2, -1)
        scores = jnp.where(seen_of(x.shape[1]), q @ x.swapaxes(1, 2), -jnp.inf)
        x = x + jax.nn.softmax(scores, -1) @ v
        return x + rms_norm(jax.nn.silu(x @ params["up"]) @ params["down"], params.get("scale", 1.0))
    return f, params, np.zeros((1, 13, 64), np.float32)


def bare():
    return bounded(False)


def scaled():
    return bounded(True)


def one_layer_for_several():
    """The same parameters in every layer, as ALBERT has them."""
    w = Draw(15)
    params = {"embed": w(WORDS, WIDTH, scale=1), "layer": attention_block(w), "head": w(WIDTH, WORDS)}

    def f(params, ids, positions):
        x, _ = jax.lax.scan(lambda x, _: (plain_layer(params["layer"], x, positions), None), params["embed"][ids], None, length=LAYERS)
        return x @ params["head"]
    return f, params


def scan_over_tokens():
    """A decaying mean of the tokens before, by a loop over them."""
    w = Draw(16)
    def block(w):
        return {"norm1": w(WIDTH, about=1), "norm2": w(WIDTH, about=1), "decay": w(WIDTH), "into": w(WIDTH, WIDTH), "out": w(WIDTH, WIDTH),
                "up": w(WIDTH, 48), "down": w(48, WIDTH)}
    params = {"embed": w(WORDS, WIDTH, scale=1), "layers": [block(w) for _ in range(LAYERS)], "head": w(WIDTH, WORDS)}

    def f(params, ids):
        x = params["embed"][ids]
        for p in params["layers"]:
            a = jax.nn.sigmoid(p["decay"])
            steps = jnp.moveaxis(rms_norm(x, p["norm1"]) @ p["into"], 1, 0)
            _, states = jax.lax.scan(lambda h, step: ((a * h + (1 - a) * step,) * 2), jnp.zeros((1, WIDTH)), steps)
            x = x + jnp.moveaxis(states, 0, 1) @ p["out"]
            x = x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
        return x @ params["head"]
    return f, params


PROGRAMS = [alibi, latent, long_convolution, far_shift, ngpt, mixture_taken, skips_unnamed, skips_in_scopes, folded_net, last_norm_without_scale, nnx_scanned, linen_flat, linen_scanned, table_of_positions, half_precision,
            vision_block, bare, scaled]
