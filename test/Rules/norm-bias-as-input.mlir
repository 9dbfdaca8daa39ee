// A layer norm's bias that feeds the MLP alone: F is a vector, and nothing is divided.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'norm_bias_as_input': controllable
// CHECK-NEXT: input {{ *}}norm_bias{{ }}
// CHECK-NEXT: output {{ *}}w{{ }}
// CHECK: block 'norm_bias_as_input': exact
xf.block @norm_bias_as_input(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %n = xf.normalize layer %v eps 1.0e-05 : tensor<4xf32>
  %bz = xf.param "norm_bias" : tensor<4xf32>
  %z = xf.bias %n + %bz : tensor<4xf32>, tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %z : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
