// OPT-350m: the norm is applied to the sum, which carries all of the context. The sum is brought to
// its value in the full run, and everything after it then agrees.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'norm_on_the_sum': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'norm_on_the_sum': exact
xf.block @norm_on_the_sum(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation relu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %t = xf.add %v, %d : tensor<4xf32>
  %y = xf.normalize layer %t eps 1.0e-05 : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
