// silu(gate) ⊙ up, as wide as the residual stream: up is the last matrix and reads the context
// itself; the gate is a known factor.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'gated_unit_without_an_outer_matrix': output-only
// CHECK-NEXT: output {{ *}}up{{ }}
// CHECK: block 'gated_unit_without_an_outer_matrix': exact
xf.block @gated_unit_without_an_outer_matrix(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wg = xf.param "gate" : tensor<4x4xf32>
  %g = xf.linear %Wg * %v : tensor<4x4xf32>, tensor<4xf32>
  %Wu = xf.param "up" : tensor<4x4xf32>
  %u = xf.linear %Wu * %v : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation silu %g : tensor<4xf32>
  %d = xf.mul %s, %u : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
