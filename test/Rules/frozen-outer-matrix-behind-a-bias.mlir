// The outer matrix is frozen; the bias after it absorbs the difference.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'frozen_outer_matrix_behind_a_bias': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2_bias{{ }}
// CHECK: block 'frozen_outer_matrix_behind_a_bias': exact
xf.block @frozen_outer_matrix_behind_a_bias(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" frozen : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %be = xf.param "fc2_bias" : tensor<4xf32>
  %e = xf.bias %d + %be : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
