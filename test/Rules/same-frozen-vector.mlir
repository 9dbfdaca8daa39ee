// Two numbers times one frozen vector: what the context brings lies where patches reach.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @same_scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Pa1 = xf.param "a" : tensor<1x4xf32>
  %a1 = xf.linear %Pa1 * %a : tensor<1x4xf32>, tensor<4xf32>
  %m = xf.param "m" frozen : tensor<4xf32>
  %one = xf.setting "one" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  %mm = xf.scale %one by %m : tensor<4xf32>, tensor<4xf32>
  %s = xf.mul %mm, %a1 : tensor<4xf32>, tensor<1xf32>
  %v = xf.add %x, %s : tensor<4xf32>
  %Pd1 = xf.param "w" : tensor<1x4xf32>
  %d1 = xf.linear %Pd1 * %x : tensor<1x4xf32>, tensor<4xf32>
  %t = xf.mul %mm, %d1 : tensor<4xf32>, tensor<1xf32>
  %y = xf.add %v, %t : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'same_scale': undecided
// CHECK: block 'same_scale': none found
