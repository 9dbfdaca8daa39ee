// Experts whose matrices cannot be patched, as where they are stored in 4 bits: the biases of those
// that are selected take the context, also where the two runs select different experts.
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9 --split least-norm --keep 1,3
// RUN: ctxc verify %s --weights random:5 --tokens 1,2,3,4,5,6 --generate 3
// RUN: ctxc verify %s --weights random:6 --tokens 1,2,3,4,5,6 --generate 3 --materialize
// RUN: ctxc check %s --plans --try --proof %t.json | FileCheck %s
// RUN: ctxc check-proof %s %t.json
// RUN: ctxc patch %S/../goldens/gpt-oss --backend reference --tokens 5,17,3,60,22 --plan mlp.experts.down_proj_bias -o %t.safetensors
// RUN: ctxc verify %S/../goldens/gpt-oss --backend reference --plan mlp.experts.down_proj_bias --patch %t.safetensors --tolerance 1e-4

// CHECK-LABEL: layers 0-1, block 'gated': output-only
// CHECK: output experts.down_bias vector output controllability of mixture of experts
// CHECK: needs xf.combine its weights do not sum to zero always
// CHECK: * experts.down_bias:
// CHECK: 1 patch, 12 numbers; output-only

xf.block @gated(%x: tensor<6xf32>) -> tensor<6xf32> {
  %Wo = xf.param "o" : tensor<6x6xf32>
  %r = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %a2 = xf.attention %r, %r, %r scale 6.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %a = xf.reshape %a2 : tensor<2x3xf32> to tensor<6xf32>
  %o = xf.linear %Wo * %a : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<6xf32>
  %m0 = xf.param "pre_norm" frozen : tensor<6xf32>
  %z = xf.scale %n0 by %m0 : tensor<6xf32>, tensor<6xf32>
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %z : tensor<5x6xf32>, tensor<6xf32>
  %sel = xf.top_k %l k 2 : tensor<5xf32>
  %l2 = xf.gather %l[%sel] : tensor<5xf32>, tensor<2xi32>
  %w = xf.softmax %l2 : tensor<2xf32>
  %Wu = xf.param "experts.up" frozen : tensor<5x7x6xf32>
  %Bu = xf.param "experts.up_bias" : tensor<5x7xf32>
  %Wd = xf.param "experts.down" frozen : tensor<5x6x7xf32>
  %Bd = xf.param "experts.down_bias" : tensor<5x6xf32>
  %u = xf.expert_linear %Wu[%sel] * %z : tensor<5x7x6xf32>, tensor<2xi32>, tensor<6xf32>
  %bu = xf.gather %Bu[%sel] : tensor<5x7xf32>, tensor<2xi32>
  %ub = xf.add %u, %bu : tensor<2x7xf32>
  %h = xf.activation gelu %ub : tensor<2x7xf32>
  %d = xf.expert_linear %Wd[%sel] * %h : tensor<5x6x7xf32>, tensor<2xi32>, tensor<2x7xf32>
  %bd = xf.gather %Bd[%sel] : tensor<5x6xf32>, tensor<2xi32>
  %e = xf.add %d, %bd : tensor<2x6xf32>
  %c = xf.combine %w, %e : tensor<2xf32>, tensor<2x6xf32>
  %y = xf.add %v, %c : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

xf.model @experts {
  %id = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<19x6xf32>
  %x0 = xf.embed %E[%id] : tensor<19x6xf32>, tensor<i32>
  %x1 = xf.layer @gated(%x0) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %x2 = xf.layer @gated(%x1) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
  %H = xf.param "head" : tensor<19x6xf32>
  %logits = xf.linear %H * %x2 : tensor<19x6xf32>, tensor<6xf32>
  xf.yield %logits : tensor<19xf32>
}
