// A shared expert beside the mixture: one matrix near the output absorbs the remaining difference.
//
// RUN: %exits 0 ctxc check --try %s 2>&1 | FileCheck %s

// CHECK: block 'mixture_shared_expert': controllable
// CHECK: output {{ *}}shared.down
// CHECK: block 'mixture_shared_expert': exact
xf.block @mixture_shared_expert(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %R = xf.param "router" : tensor<5x4xf32>
  %r = xf.linear %R * %v : tensor<5x4xf32>, tensor<4xf32>
  %s = xf.softmax %r : tensor<5xf32>
  %sel = xf.top_k %s k 2 : tensor<5xf32>
  %w = xf.gather %s[%sel] : tensor<5xf32>, tensor<2xi32>
  %U = xf.param "experts.*.up" : tensor<5x6x4xf32>
  %u = xf.expert_linear %U[%sel] * %v : tensor<5x6x4xf32>, tensor<2xi32>, tensor<4xf32>
  %h = xf.activation silu %u : tensor<2x6xf32>
  %D = xf.param "experts.*.down" : tensor<5x4x6xf32>
  %e = xf.expert_linear %D[%sel] * %h : tensor<5x4x6xf32>, tensor<2xi32>, tensor<2x6xf32>
  %m = xf.combine %w, %e : tensor<2xf32>, tensor<2x4xf32>
  %S = xf.param "shared.up" : tensor<6x4xf32>
  %su = xf.linear %S * %v : tensor<6x4xf32>, tensor<4xf32>
  %sh = xf.activation silu %su : tensor<6xf32>
  %T = xf.param "shared.down" : tensor<4x6xf32>
  %se = xf.linear %T * %sh : tensor<4x6xf32>, tensor<6xf32>
  %o = xf.add %m, %se : tensor<4xf32>
  %y = xf.add %v, %o : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
