// No op reads the context, so that there is nothing to absorb.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'no_context': controllable
// CHECK: block 'no_context': exact
xf.block @no_context(%x: tensor<4xf32>) -> tensor<4xf32> {
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %x : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %x, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
