// No patchable op lies between the context and the only matrix, which therefore absorbs all of the
// difference: the patch is exact, but inside the branch the values differ from the full run's.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'one_matrix': output-only
// CHECK-NEXT: output {{ *}}w{{ }}
// CHECK: block 'one_matrix': exact
xf.block @one_matrix(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
