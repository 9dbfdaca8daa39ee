// RUN: ctxc-opt %s --xf-report-sites --verify-diagnostics

// The inputs of attention, and what its result passes on the way to the residual stream, are not
// part of the MLP. Patching a norm that attention and a parallel MLP share would change attention.
xf.block @parallel(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.normalize rms %x eps 1.0e-06 : tensor<8xf32>
  %m = xf.param "norm" : tensor<8xf32>
  // expected-remark @below {{'norm' may not be patched: 'norm' belongs to the contextual part}}
  %z = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  // expected-remark @below {{'q' may not be patched: 'q' belongs to the contextual part}}
  %q = xf.linear %Wq * %z : tensor<8x8xf32>, tensor<8xf32>
  %a = xf.contextual "attention"(%q) : (tensor<8xf32>) -> tensor<8xf32>
  %Wo = xf.param "o" : tensor<8x8xf32>
  // expected-remark @below {{'o' may not be patched: 'o' belongs to the contextual part}}
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %na = xf.normalize rms %o eps 1.0e-06 : tensor<8xf32>
  %ma = xf.param "attention_norm" : tensor<8xf32>
  // expected-remark @below {{'attention_norm' may not be patched: 'attention_norm' belongs to the contextual part}}
  %b = xf.scale %na by %ma : tensor<8xf32>, tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark @below {{'w' may be patched}}
  %d = xf.linear %W * %z : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %b : tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// The reasons why ops beside attention may not be patched.
xf.block @refused(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %m = xf.param "gain" frozen : tensor<8xf32>
  // expected-remark @below {{'gain' may not be patched: 'gain' is frozen}}
  %s = xf.scale %v by %m : tensor<8xf32>, tensor<8xf32>
  %W = xf.param "tied" : tensor<8x8xf32>
  // expected-remark @below {{'tied' may not be patched: 'tied' is also used by xf.linear in this block}}
  %d = xf.linear %W * %s : tensor<8x8xf32>, tensor<8xf32>
  // expected-remark @below {{'tied' may not be patched: 'tied' is also used by xf.linear in this block}}
  %e = xf.linear %W * %d : tensor<8x8xf32>, tensor<8xf32>
  %r = xf.activation relu %e : tensor<8xf32>
  %k = xf.param "after_relu" : tensor<8xf32>
  // expected-remark @below {{'after_relu' may not be patched: 'after_relu' multiplies entries that are zero on an open set of activations (relu is zero on every negative input)}}
  %f = xf.scale %r by %k : tensor<8xf32>, tensor<8xf32>
  %h = xf.reshape %f : tensor<8xf32> to tensor<2x4xf32>
  %c = xf.param "head_bias" : tensor<4xf32>
  // expected-remark @below {{'head_bias' may not be patched: 'head_bias' serves several vectors at once}}
  %i = xf.bias %h + %c : tensor<2x4xf32>, tensor<4xf32>
  %j = xf.reshape %i : tensor<2x4xf32> to tensor<8xf32>
  // expected-remark @below {{'xf.bias' may not be patched: its parameter is computed, not a stored one}}
  %l = xf.bias %j + %d : tensor<8xf32>, tensor<8xf32>
  xf.yield %l : tensor<8xf32>
}

// Each vector is served by one expert, if no expert is selected twice.
xf.block @experts(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %c : tensor<8xf32>
  %R = xf.param "router" : tensor<4x8xf32>
  // expected-remark @below {{'router' may be patched}}
  %p = xf.linear %R * %v : tensor<4x8xf32>, tensor<8xf32>
  %s = xf.top_k %p k 2 : tensor<4xf32>
  %w = xf.gather %p[%s] : tensor<4xf32>, tensor<2xi32>
  %U = xf.param "experts.*.up" : tensor<4x6x8xf32>
  // expected-remark @below {{'experts.*.up' may be patched}}
  %h = xf.expert_linear %U[%s] * %v : tensor<4x6x8xf32>, tensor<2xi32>, tensor<8xf32>
  %D = xf.param "experts.down" : tensor<4x8x6xf32>
  // expected-remark @below {{'experts.down' may be patched}}
  %d = xf.expert_linear %D[%s] * %h : tensor<4x8x6xf32>, tensor<2xi32>, tensor<2x6xf32>
  // A single matrix for both slots has only one change for both.
  %S = xf.param "shared" : tensor<8x6xf32>
  // expected-remark @below {{'shared' may not be patched: 'shared' serves several vectors at once, which need one each}}
  %e = xf.linear %S * %h : tensor<8x6xf32>, tensor<2x6xf32>
  %f = xf.add %d, %e : tensor<2x8xf32>
  %m = xf.combine %w, %f : tensor<2xf32>, tensor<2x8xf32>
  %y = xf.add %v, %m : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// Experts that are not chosen here may be the same expert twice, whose matrix then serves two slots.
xf.block @chosen(%x: tensor<4xf32>, %sel: tensor<2xi32>) -> tensor<2x4xf32> {
  %s = xf.param "scores" : tensor<3x4xf32>
  // expected-remark @below {{'scores' may be patched}}
  %l = xf.linear %s * %x : tensor<3x4xf32>, tensor<4xf32>
  %own = xf.top_k %l k 2 : tensor<3xf32>
  %U = xf.param "up" : tensor<3x4x4xf32>
  // expected-remark @below {{'up' may be patched}}
  %u = xf.expert_linear %U[%own] * %x : tensor<3x4x4xf32>, tensor<2xi32>, tensor<4xf32>
  %D = xf.param "down" : tensor<3x4x4xf32>
  // expected-remark @below {{'down' may not be patched: 'down' serves several vectors at once}}
  %d = xf.expert_linear %D[%sel] * %x : tensor<3x4x4xf32>, tensor<2xi32>, tensor<4xf32>
  %y = xf.add %u, %d : tensor<2x4xf32>
  xf.yield %y : tensor<2x4xf32>
}

// A convolution passes no stream on. One that a matrix follows, or that alone reads the context, is
// a mixer like any other; one behind the MLP is no part of the contextual part.
xf.block @convolution_in_front(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wi = xf.param "in" : tensor<8x8xf32>
  // expected-remark @below {{'in' may not be patched: 'in' belongs to the contextual part}}
  %i = xf.linear %Wi * %x : tensor<8x8xf32>, tensor<8xf32>
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %i : tensor<8x3xf32>, tensor<8xf32>
  %y = xf.add %x, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @convolution_of_the_stream(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %Wo = xf.param "o" : tensor<8x8xf32>
  // expected-remark @below {{'o' may not be patched: 'o' belongs to the contextual part}}
  %o = xf.linear %Wo * %c : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @convolution_between(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %Wi = xf.param "in" : tensor<8x8xf32>
  // expected-remark @below {{'in' may not be patched: 'in' belongs to the contextual part}}
  %i = xf.linear %Wi * %v : tensor<8x8xf32>, tensor<8xf32>
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %i : tensor<8x3xf32>, tensor<8xf32>
  %Wo = xf.param "o" : tensor<8x8xf32>
  // expected-remark @below {{'o' may not be patched: 'o' belongs to the contextual part}}
  %o = xf.linear %Wo * %c : tensor<8x8xf32>, tensor<8xf32>
  %s = xf.add %v, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark @below {{'w' may be patched}}
  %d = xf.linear %W * %s : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %s, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @convolution_with_a_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark @below {{'w' may be patched}}
  %d = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %d : tensor<8x3xf32>, tensor<8xf32>
  %S = xf.param "s" : tensor<8xf32>
  // expected-remark @below {{'s' may be patched}}
  %s = xf.scale %c by %S : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @convolution_behind(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wq = xf.param "q" : tensor<8x8xf32>
  // expected-remark @below {{'q' may not be patched: 'q' belongs to the contextual part}}
  %q = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %a = xf.contextual "attention"(%q) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark @below {{'w' may be patched}}
  %d = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %d : tensor<8x3xf32>, tensor<8xf32>
  %y = xf.add %v, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
