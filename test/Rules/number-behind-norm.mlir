// RUN: ctxc check %s | FileCheck %s
// A norm without a scale, and one number: a patch of the matrix before the norm has the direction, and one of the number the length.
// CHECK: block 'block': controllable
// CHECK: output down rank 1 output controllability of outer weight matrix
// CHECK: alpha vector output controllability of outer element-wise multiply
xf.block @block(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %A = xf.param "alpha" : tensor<1xf32>
  %one = xf.setting "one" : tensor<1xf32> = dense<1.0> : tensor<1xf32>
  %g = xf.scale %one by %A : tensor<1xf32>, tensor<1xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
