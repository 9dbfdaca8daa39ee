// The context and the MLP write into the same two of four entries.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @same_half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Pa1 = xf.param "a" : tensor<2x4xf32>
  %a1 = xf.linear %Pa1 * %a : tensor<2x4xf32>, tensor<4xf32>
  %zs = xf.setting "zeros" : tensor<2xf32> = dense<0.0> : tensor<2xf32>
  %s = xf.concat %a1, %zs : tensor<2xf32>, tensor<2xf32>
  %v = xf.add %x, %s : tensor<4xf32>
  %Pd1 = xf.param "w" : tensor<2x4xf32>
  %d1 = xf.linear %Pd1 * %x : tensor<2x4xf32>, tensor<4xf32>
  %zt = xf.setting "zerot" : tensor<2xf32> = dense<0.0> : tensor<2xf32>
  %t = xf.concat %d1, %zt : tensor<2xf32>, tensor<2xf32>
  %y = xf.add %v, %t : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'same_half': undecided
// CHECK: block 'same_half': none found
