"""Functions that are refused, each with words of the message and the text of the line that it names."""
import functools

import jax
import jax.numpy as jnp

from programs import WIDTH, WORDS, Draw

PARAMS = {"embed": Draw()(WORDS, WIDTH), "head": Draw(1)(WIDTH, WORDS), "layers": [{"w": Draw(2)(WIDTH, WIDTH)}]}


def program(middle):
    def f(params, ids):
        return middle(params, params["embed"][ids]) @ params["head"]
    return f


def cache(params, x):
    kept = jnp.zeros((1, 64, WIDTH))
    return jax.lax.dynamic_update_slice(kept, x, (0, 0, 0))[:, :x.shape[1]]  # here


def written(params, x):
    return x.at[:, 0].set(0.0)  # here


def chosen(params, x):
    return jax.lax.cond(x[0, 0, 0] > 0, lambda y: y, lambda y: -y, x)  # here


def until(params, x):
    return jax.lax.while_loop(lambda y: y[0, 0, 0] < 1, lambda y: y + 1, x)  # here


def kernel(params, x):
    from jax.experimental import pallas

    def double(source, target):
        target[...] = source[...] * 2
    call = pallas.pallas_call(double, out_shape=jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32), interpret=True)
    return x @ call(params["layers"][0]["w"] * x.sum() / x.sum())  # here


def divided(params, x):
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("x",))
    of_all = jax.sharding.PartitionSpec()
    whole = functools.partial(jax.shard_map, mesh=mesh, in_specs=of_all, out_specs=of_all)
    return whole(lambda y: y * 2)(x)  # here



def dropped_tokens(params, x):
    return jax.random.bernoulli(jax.random.key(0), 0.5, x.shape) * x  # here


def overlapping(params, x):
    w = params["layers"][0]["w"]
    return x @ w + jnp.pad(x @ w[:, :8], ((0, 0), (0, 0), (0, WIDTH - 8)))  # here


def sorted_rows(params, x):
    return jax.lax.cummax(x, axis=1)  # here


REFUSED = [(cache, "primitive 'dynamic_update_slice'"), (written, "primitive 'scatter'"), (chosen, "primitive 'cond' chooses by"),
           (until, "primitive 'while' ends by"), (kernel, "primitive 'pallas_call'"), (divided, "primitive 'shard_map'"),
           (dropped_tokens, "draws random numbers"), (overlapping, "parameter layers/0/w is used as layers.0.w"),
           (sorted_rows, "primitive 'cummax' is not read")]
