// Experts without parameters give multiples of the token, whatever the router does. No rule knows
// that the weighted sum lies on a line; the search finds nothing that comes close.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

// CHECK: undecided: weights reach only the span of what they weigh [no-solvable-chain]
// CHECK: block 'identity_experts': undecided [no-solvable-chain]
// CHECK: block 'identity_experts': none found
xf.block @identity_experts(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %R = xf.param "router" : tensor<5x4xf32>
  %r = xf.linear %R * %v : tensor<5x4xf32>, tensor<4xf32>
  %s = xf.softmax %r : tensor<5xf32>
  %sel = xf.top_k %s k 2 : tensor<5xf32>
  %w = xf.gather %s[%sel] : tensor<5xf32>, tensor<2xi32>
  %e = xf.outer %w, %v : tensor<2xf32>, tensor<4xf32>
  %m = xf.combine %w, %e : tensor<2xf32>, tensor<2x4xf32>
  %y = xf.add %v, %m : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
