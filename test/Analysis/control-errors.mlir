// RUN: ctxc-opt %s --xf-report-control --split-input-file --verify-diagnostics

// A post-norm without a scale.
xf.block @no_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
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
  // expected-error @below {{block 'no_scale' cannot take the context into its parameters: past this xf.normalize no patch moves the output by more than 2·√8 = 5.7}}
  // expected-note @below {{a normalisation's image is bounded, so it cannot reach every target; what the context changes has no such bound (Theorem 4)}}
  // expected-note @below {{add a trainable scale after this norm, or patch 'o' of the contextual part instead}}
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %y = xf.add %v, %n : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// A post-norm with a frozen scale.
xf.block @frozen_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
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
  // expected-error @below {{block 'frozen_scale' cannot take the context into its parameters: past this xf.normalize no patch moves the output by more than 2·√8·‖post_norm‖∞ = 5.7·‖post_norm‖∞}}
  // expected-note @below {{a normalisation's image is bounded, so it cannot reach every target; what the context changes has no such bound (Theorem 4)}}
  // expected-note @below {{unfreeze 'post_norm', or patch 'o' of the contextual part instead}}
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %m = xf.param "post_norm" frozen : tensor<8xf32>
  // expected-note @below {{the scale after it is of no help: 'post_norm' is frozen}}
  %r = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %r : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// A soft cap after the outer matrix.
xf.block @softcap(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
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
  // expected-error @below {{block 'softcap' cannot take the context into its parameters: past this xf.softcap no patch moves the output by more than 2·30·√8 = 169.7}}
  // expected-note @below {{a soft cap's output stays inside the cap; what the context changes has no such bound (Theorem 4)}}
  // expected-note @below {{drop this xf.softcap or put it before the outer matrix, or patch 'o' of the contextual part instead}}
  %n = xf.softcap %d at 30.0 : tensor<8xf32>
  %y = xf.add %v, %n : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// tanh after the outer matrix.
xf.block @tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
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
  // expected-error @below {{block 'tanh' cannot take the context into its parameters: past this xf.activation no patch moves the output by more than 2·√8 = 5.7}}
  // expected-note @below {{tanh does not reach every value, so no output of it can be prescribed; what the context changes has no such bound (Theorem 4)}}
  // expected-note @below {{drop this xf.activation or put it before the outer matrix, or patch 'o' of the contextual part instead}}
  %n = xf.activation tanh %d : tensor<8xf32>
  %y = xf.add %v, %n : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// relu after the outer matrix.
xf.block @relu_last(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
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
  // expected-error @below {{block 'relu_last' cannot take the context into its parameters: past this xf.activation each entry of the output has a side that no patch can bring it to, and what the context changes has either sign}}
  // expected-note @below {{put a trainable matrix, scale or bias after it, or patch 'o' of the contextual part instead}}
  %n = xf.activation relu %d : tensor<8xf32>
  %y = xf.add %v, %n : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// Two normalised branches have twice the reach, but not more.
xf.block @two_branches(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "w1" : tensor<8x8xf32>
  %d = xf.linear %W1 * %v : tensor<8x8xf32>, tensor<8xf32>
  // expected-error @below {{block 'two_branches' cannot take the context into its parameters: past this xf.normalize no patch moves the output by more than 2·√8 + 2·√8 = 11.3}}
  // expected-note @below {{a normalisation's image is bounded, so it cannot reach every target; what the context changes has no such bound (Theorem 4)}}
  // expected-note @below {{add a trainable scale after this norm, or patch 'o' of the contextual part instead}}
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %W2 = xf.param "w2" : tensor<8x8xf32>
  %e = xf.linear %W2 * %v : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{and likewise past this xf.normalize}}
  %f = xf.normalize rms %e eps 1.0e-06 : tensor<8xf32>
  %t = xf.add %v, %n : tensor<8xf32>
  %y = xf.add %t, %f : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// A frozen matrix with few input dimensions.
xf.block @narrow_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "w1" : tensor<4x8xf32>
  %h = xf.linear %W1 * %v : tensor<4x8xf32>, tensor<8xf32>
  %W2 = xf.param "w2" frozen : tensor<8x4xf32>
  // expected-error @below {{block 'narrow_frozen' cannot take the context into its parameters: past this xf.linear patches move the output in at most 4 of 8 dimensions, and what the context changes lies in all of them}}
  // expected-note @below {{make 'w2' trainable, or patch 'o' of the contextual part instead}}
  %d = xf.linear %W2 * %h : tensor<8x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// Everything outside attention is frozen.
xf.block @all_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @below {{'o' belongs to the contextual part of the block}}
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  // expected-note @below {{'w' is frozen}}
  %d = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  // expected-error @below {{block 'all_frozen' cannot take the context into its parameters: none that may be patched reaches output 0}}
  // expected-note @below {{patch 'o' of the contextual part instead}}
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// Only a mixer.
xf.block @mixer_alone(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @below {{'o' belongs to the contextual part of the block}}
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-error @below {{block 'mixer_alone' cannot take the context into its parameters: none that may be patched reaches output 0}}
  // expected-note @below {{patch 'o' of the contextual part instead}}
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// A scale after a relu: undecided, since matrix and scale may succeed together.
xf.block @relu_before_the_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %h = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{relu does not reach every value, so no output of it can be prescribed}}
  %s = xf.activation relu %h : tensor<8xf32>
  %m = xf.param "m" : tensor<8xf32>
  // expected-error @below {{whether block 'relu_before_the_scale' can take the context into its parameters is undecided: 'm' multiplies entries that are zero on an open set of activations (relu is zero on every negative input)}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch 'o' of the contextual part instead}}
  %d = xf.scale %s by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// One matrix used twice.
xf.block @tied(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %h = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<8xf32>
  %W2 = xf.param "w" : tensor<8x8xf32>
  // expected-error @below {{whether block 'tied' can take the context into its parameters is undecided: 'w' is also used by xf.linear in this block, which needs another value of it, and a fixed matrix reaches only the span of its columns}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch 'o' of the contextual part instead}}
  %d = xf.linear %W2 * %s : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// Attention after the MLP.
xf.block @mixing_after_the_mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %t = xf.add %v, %d : tensor<8xf32>
  %b = xf.contextual "attention"(%t) : (tensor<8xf32>) -> tensor<8xf32>
  %y = xf.add %t, %b : tensor<8xf32>
  // expected-error @below {{whether block 'mixing_after_the_mlp' can take the context into its parameters is undecided: no parameter outside the contextual part reaches the output by a chain that can be solved}}
  // expected-note @below {{patch a parameter of the contextual part instead}}
  xf.yield %y : tensor<8xf32>
}

// -----

// Two residual streams that both carry the context.
xf.block @two_context_streams(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @below {{'o' belongs to the contextual part of the block}}
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-error @below {{block 'two_context_streams' cannot take the context into its parameters: none that may be patched reaches output 1}}
  // expected-note @below {{patch 'o' of the contextual part instead}}
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "fc1" : tensor<16x8xf32>
  %W2 = xf.param "fc2" : tensor<8x16xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation gelu %h : tensor<16xf32>
  %d = xf.linear %W2 * %s : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y, %v : tensor<8xf32>, tensor<8xf32>
}

// -----

// A frozen wide matrix last: solvable in principle.
xf.block @wide_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W1 = xf.param "w1" : tensor<16x8xf32>
  %h = xf.linear %W1 * %v : tensor<16x8xf32>, tensor<8xf32>
  %W2 = xf.param "w2" frozen : tensor<8x16xf32>
  // expected-error @below {{whether block 'wide_frozen' can take the context into its parameters is undecided: 'w2' is frozen, and a fixed matrix reaches only the span of its columns}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch 'o' of the contextual part instead}}
  %d = xf.linear %W2 * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// One number times a known vector.
xf.block @one_number(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<1x8xf32>
  %h = xf.linear %W * %v : tensor<1x8xf32>, tensor<8xf32>
  // expected-error @below {{block 'one_number' cannot take the context into its parameters: past this xf.mul patches move the output in at most 1 of 8 dimensions, and what the context changes lies in all of them}}
  // expected-note @below {{add a trainable bias or scale after it, or patch 'o' of the contextual part instead}}
  %d = xf.mul %x, %h : tensor<8xf32>, tensor<1xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// One scale for two heads.
xf.block @shared_by_heads(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-note @below {{the context reaches output 0 from here without passing a parameter that may be patched}}
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  %h = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %H = xf.reshape %h : tensor<8xf32> to tensor<2x4xf32>
  %m = xf.param "m" : tensor<4xf32>
  // expected-error @below {{block 'shared_by_heads' cannot take the context into its parameters: past this xf.scale patches move the output in at most 4 of 8 dimensions, and what the context changes lies in all of them}}
  // expected-note @below {{give each vector a parameter of its own in place of 'm', or patch 'o' of the contextual part instead}}
  %S = xf.scale %H by %m : tensor<2x4xf32>, tensor<4xf32>
  %d = xf.reshape %S : tensor<2x4xf32> to tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// An op that does not say how it is solved last.
xf.block @gather_last(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %h = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %s = xf.top_k %x k 8 : tensor<8xf32>
  // expected-error @below {{whether block 'gather_last' can take the context into its parameters is undecided: it is not known how to solve xf.gather for its input}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch 'o' of the contextual part instead}}
  %d = xf.gather %h[%s] : tensor<8xf32>, tensor<8xi32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// A part of a matrix's result, of which another part is read as well.
xf.block @slice_last(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<12x8xf32>
  // expected-note @below {{'w' also reaches it by another way, and a fixed matrix reaches only the span of its columns}}
  %h = xf.linear %W * %v : tensor<12x8xf32>, tensor<8xf32>
  %d = xf.slice %h from 2 : tensor<12xf32> to tensor<8xf32>
  %e = xf.slice %h from 1 : tensor<12xf32> to tensor<8xf32>
  // expected-error @below {{whether block 'slice_last' can take the context into its parameters is undecided: sigmoid does not reach every value, so no output of it can be prescribed}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch 'o' of the contextual part instead}}
  %g = xf.activation sigmoid %e : tensor<8xf32>
  %p = xf.mul %d, %g : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %p : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// A second output, which does not depend on the context, is computed by the only patchable op.
xf.block @output_without_context(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %Wo = xf.param "o" : tensor<8x8xf32>
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-error @below {{whether block 'output_without_context' can take the context into its parameters is undecided: a patch of 'w' would also change another output, which is right as it is or differs in another way, and a fixed matrix reaches only the span of its columns}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch 'o' of the contextual part instead}}
  %d = xf.linear %W * %x : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y, %d : tensor<8xf32>, tensor<8xf32>
}

// -----

// Both outputs break at one op: its reason is said once.
xf.block @both_outputs_break_at_one_op(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %C = xf.param "conv" : tensor<3x3xf32>
  %c = xf.conv %C, %x : tensor<3x3xf32>, tensor<3xf32>
  %v = xf.add %x, %c : tensor<3xf32>
  %m = xf.param "m" : tensor<3xf32>
  %s = xf.scale %v by %m offset 1.0 : tensor<3xf32>, tensor<3xf32>
  %W = xf.param "fixed" frozen : tensor<3x3xf32>
  // expected-error @below {{whether block 'both_outputs_break_at_one_op' can take the context into its parameters is undecided: 'fixed' is frozen, and a fixed matrix reaches only the span of its columns [no-solvable-chain]}}
  // expected-note @below {{give the block a bias, a scale or a matrix of its own between this op and its output, or patch a parameter of the contextual part instead}}
  %h = xf.linear %W * %s : tensor<3x3xf32>, tensor<3xf32>
  %y = xf.add %h, %v : tensor<3xf32>
  %d = xf.sub %v, %y : tensor<3xf32>
  %u = xf.add %x, %y : tensor<3xf32>
  xf.yield %d, %u : tensor<3xf32>, tensor<3xf32>
}
