// A post-norm with a bias and without a scale: the bias shifts the ball to wherever it is needed.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'bias_after_a_norm': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}post_bias{{ }}
// CHECK: block 'bias_after_a_norm': exact
xf.block @bias_after_a_norm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %n = xf.normalize layer %d eps 1.0e-05 : tensor<4xf32>
  %br = xf.param "post_bias" : tensor<4xf32>
  %r = xf.bias %n + %br : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
