"""Programs of JAX as modules of PyTorch: the same functions, which `jnp` and `jax` then mean PyTorch's for."""
import contextlib
import math
import types
from unittest import mock

import numpy as np
import torch
from torch.nn import functional as F

import later_programs
import programs
import published_programs

# They use what has no counterpart here, such as NumPy's arrays beside tensors, or a library.
WITH_TWINS = [programs.gpt2_plain, programs.llama_scanned, programs.mixture_dense, programs.parallel_block, later_programs.latent,
              later_programs.ngpt, later_programs.mixture_taken, later_programs.skips_unnamed, later_programs.folded_net,
              later_programs.last_norm_without_scale, later_programs.one_layer_for_several, published_programs.lora]
# The products with all experts of a stack are several in JAX's graph, and one in PyTorch's: the same verdict, by other names.
OTHER_SITES = [programs.mixture_dense]


def scan(step, carry, rows, length=None):
    made = []
    for i in range(length if rows is None else len(next(iter(rows.values())))):
        carry, each = step(carry, None if rows is None else {name: row[i] for name, row in rows.items()})
        made.append(each)
    return carry, made


def attention(q, k, v, is_causal):
    return F.scaled_dot_product_attention(q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2), is_causal=is_causal).swapaxes(1, 2)


def transpose(x, *order):
    return TRANSPOSE(x, *order) if len(order) == 2 else x.permute(order)


TRANSPOSE = torch.Tensor.transpose
JNP = types.SimpleNamespace(
    einsum=torch.einsum, where=torch.where, tril=torch.tril, inf=math.inf, cos=torch.cos, sin=torch.sin, abs=torch.abs, stack=torch.stack,
    finfo=torch.finfo, arange=torch.arange, ones=lambda shape, dtype: torch.ones(shape, dtype={bool: torch.bool}[dtype]),
    sqrt=lambda x: x.sqrt() if isinstance(x, torch.Tensor) else math.sqrt(x), concatenate=torch.cat,
    mean=lambda x, axis, keepdims: x.mean(axis, keepdim=keepdims), split=lambda x, count, axis: x.chunk(count, axis),
    repeat=lambda x, count, axis: x.repeat_interleave(count, axis), take=lambda x, index, axis: x[index],
    linalg=types.SimpleNamespace(norm=lambda x, axis, keepdims: torch.linalg.vector_norm(x, dim=axis, keepdim=keepdims)))
JAX = types.SimpleNamespace(
    checkpoint=lambda f: f, named_scope=lambda name: contextlib.nullcontext(),
    lax=types.SimpleNamespace(scan=scan, rsqrt=torch.rsqrt, top_k=torch.topk),
    nn=types.SimpleNamespace(softmax=lambda x, axis: x.softmax(axis), silu=F.silu, relu=F.relu, dot_product_attention=attention,
                             gelu=lambda x, approximate=True: F.gelu(x, approximate="tanh" if approximate else "none"),
                             one_hot=lambda ids, count: F.one_hot(ids, count).float()))


class Tree(torch.nn.Module):
    """A tree of parameters, under the names of its leaves' paths."""

    def __init__(self, tree):
        super().__init__()
        self.is_list = isinstance(tree, list)
        for name, each in enumerate(tree) if self.is_list else tree.items():
            if isinstance(each, (dict, list)):
                self.add_module(str(name), Tree(each))
            else:
                self.register_parameter(str(name), torch.nn.Parameter(torch.from_numpy(np.array(each))))

    def tree(self):
        made = {**self._parameters, **{name: each.tree() for name, each in self._modules.items()}}
        return [made[str(i)] for i in range(len(made))] if self.is_list else made


class Twin(torch.nn.Module):
    def __init__(self, build):
        super().__init__()
        self.f, params = build()
        self.params = Tree(params)

    def forward(self, input_ids, position_ids):
        with contextlib.ExitStack() as stack, mock.patch.object(torch.Tensor, "transpose", transpose):
            for module in (programs, later_programs, published_programs):
                stack.enter_context(mock.patch.multiple(module, jnp=JNP, jax=JAX))
            return self.f(self.params.tree(), input_ids, position_ids)
