// Every kind of plan, each in a layer of its own, is exact: the patched model without the context
// gives the logits of the model with it.
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --backend reference --tolerance 1e-9 --update naive
// RUN: ctxc verify %s --weights random:5 --tokens 1,2,3,4,5,6 --backend reference --tolerance 1e-9 --update balanced
// RUN: ctxc verify %s --weights random:6 --tokens 1,2,3,4,5,6 --backend reference --tolerance 1e-9 --start-layer 5

// Llama: F the first matrices, G the outer one.
xf.block @pre_norm(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<8xf32>
  %g0 = xf.param "pre_norm" : tensor<8xf32>
  %z = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %Wg = xf.param "gate" : tensor<16x8xf32>
  %Wu = xf.param "up" : tensor<16x8xf32>
  %Wd = xf.param "down" : tensor<8x16xf32>
  %g = xf.linear %Wg * %z : tensor<16x8xf32>, tensor<8xf32>
  %u = xf.linear %Wu * %z : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation silu %g : tensor<16xf32>
  %p = xf.mul %s, %u : tensor<16xf32>, tensor<16xf32>
  %d = xf.linear %Wd * %p : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// Gemma: the post-norm scale, with the matrix before the norm.
xf.block @post_norm(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<8xf32>
  %g0 = xf.param "pre_norm" : tensor<8xf32>
  %z = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %Wg = xf.param "gate" : tensor<16x8xf32>
  %Wu = xf.param "up" : tensor<16x8xf32>
  %Wd = xf.param "down" : tensor<8x16xf32>
  %g = xf.linear %Wg * %z : tensor<16x8xf32>, tensor<8xf32>
  %u = xf.linear %Wu * %z : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation silu %g : tensor<16xf32>
  %p = xf.mul %s, %u : tensor<16xf32>, tensor<16xf32>
  %d = xf.linear %Wd * %p : tensor<8x16xf32>, tensor<16xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %m = xf.param "post_norm" : tensor<8xf32>
  %r = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %r : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// A relu MLP: the outer matrix reads a vector that may be zero.
xf.block @relu_mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<8xf32>
  %g0 = xf.param "pre_norm" : tensor<8xf32>
  %z = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %z : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation relu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// GPT-2: the outer bias, which asks for nothing.
xf.block @outer_bias(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %b = xf.param "fc2_bias" : tensor<8xf32>
  %e = xf.bias %d + %b : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// A constant factor after the outer matrix is inverted.
xf.block @multiplier(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %e = xf.times %d by 0.25 : tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// Falcon: a parallel block, one norm for attention and MLP.
xf.block @parallel_shared_norm(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n0 = xf.normalize layer %x eps 1.0e-05 : tensor<8xf32>
  %g0 = xf.param "norm" : tensor<8xf32>
  %z = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %z : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %z : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %z : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %z : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// OPT-350m: the norm is applied to the sum, which carries all of the context.
xf.block @norm_on_the_sum(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %t = xf.add %v, %d : tensor<8xf32>
  %y = xf.normalize layer %t eps 1.0e-05 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// No patchable op lies between the context and the input of the only matrix.
xf.block @one_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// The chain divides by a gate that is never zero. The router is a path of its own for the context.
xf.block @gated_branch(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %Wr = xf.param "router" : tensor<8x8xf32>
  %q = xf.linear %Wr * %v : tensor<8x8xf32>, tensor<8xf32>
  %t = xf.activation sigmoid %q : tensor<8xf32>
  %e = xf.mul %t, %d : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// There is no matrix before the scale: the minimum cut takes the bias.
xf.block @cut_at_a_bias(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %n0 = xf.normalize layer %v eps 1.0e-05 : tensor<8xf32>
  %b = xf.param "norm_bias" : tensor<8xf32>
  %z = xf.bias %n0 + %b : tensor<8xf32>, tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %z : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// A frozen scale after the outer matrix is a known factor of the chain.
xf.block @frozen_scale_after_the_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %m = xf.param "layer_scale" frozen : tensor<8xf32>
  %r = xf.scale %d by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %r : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// A recurrence instead of attention.
xf.block @scan(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wz = xf.param "in" : tensor<8x8xf32>
  %i = xf.linear %Wz * %x : tensor<8x8xf32>, tensor<8xf32>
  %f = xf.activation sigmoid %i : tensor<8xf32>
  %a = xf.scan %f, %i : tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// A causal convolution instead of attention.
xf.block @conv(%x: tensor<8xf32>) -> tensor<8xf32> {
  %k = xf.param "conv" : tensor<8x4xf32>
  %a = xf.conv %k, %x : tensor<8x4xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// There is no norm before, and the only matrix is before the post-norm: it is patched for the
// input.
xf.block @matrix_before_the_norm(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %Wd = xf.param "down" : tensor<8x8xf32>
  %d = xf.linear %Wd * %v : tensor<8x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %m = xf.param "post_norm" : tensor<8xf32>
  %r = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %r : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// Two residual streams that follow from one sum.
xf.block @streams_from_one_sum(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %w = xf.activation tanh %y : tensor<8xf32>
  xf.yield %y, %w : tensor<8xf32>, tensor<8xf32>
}

// Two residual streams, only one of which depends on the context.
xf.block @two_streams(%x: tensor<8xf32>, %x2: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %q0 = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k0 = xf.linear %Wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v0 = xf.linear %Wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q2 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>
  %k2 = xf.reshape %k0 : tensor<8xf32> to tensor<2x4xf32>
  %v2 = xf.reshape %v0 : tensor<8xf32> to tensor<2x4xf32>
  %a2 = xf.attention %q2, %k2, %v2 scale 5.0e-01 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %a2 : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %w = xf.times %x2 by 2.0 : tensor<8xf32>
  xf.yield %y, %w : tensor<8xf32>, tensor<8xf32>
}

xf.model @every_plan {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x1 = xf.layer @pre_norm(%x0) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @post_norm(%x1) at "1." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @relu_mlp(%x2) at "2." : (tensor<8xf32>) -> tensor<8xf32>
  %x4 = xf.layer @outer_bias(%x3) at "3." : (tensor<8xf32>) -> tensor<8xf32>
  %x5 = xf.layer @multiplier(%x4) at "4." : (tensor<8xf32>) -> tensor<8xf32>
  %x6 = xf.layer @parallel_shared_norm(%x5) at "5." : (tensor<8xf32>) -> tensor<8xf32>
  %x7 = xf.layer @norm_on_the_sum(%x6) at "6." : (tensor<8xf32>) -> tensor<8xf32>
  %x8 = xf.layer @one_matrix(%x7) at "7." : (tensor<8xf32>) -> tensor<8xf32>
  %x9 = xf.layer @gated_branch(%x8) at "8." : (tensor<8xf32>) -> tensor<8xf32>
  %x10 = xf.layer @cut_at_a_bias(%x9) at "9." : (tensor<8xf32>) -> tensor<8xf32>
  %x11 = xf.layer @frozen_scale_after_the_matrix(%x10) at "10." : (tensor<8xf32>) -> tensor<8xf32>
  %x12 = xf.layer @scan(%x11) at "11." : (tensor<8xf32>) -> tensor<8xf32>
  %x13 = xf.layer @conv(%x12) at "12." : (tensor<8xf32>) -> tensor<8xf32>
  %x14 = xf.layer @matrix_before_the_norm(%x13) at "13." : (tensor<8xf32>) -> tensor<8xf32>
  %s, %t = xf.layer @streams_from_one_sum(%x14) at "14." : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %u, %w = xf.layer @two_streams(%s, %t) at "15." : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %y = xf.add %u, %w : tensor<8xf32>
  %H = xf.param "head" : tensor<31x8xf32>
  %logits = xf.linear %H * %y : tensor<31x8xf32>, tensor<8xf32>
  xf.yield %logits : tensor<31xf32>
}
