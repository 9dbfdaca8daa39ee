// The first transformer: a norm without parameters on each sum.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'two_post_norms': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'two_post_norms': exact
xf.block @two_post_norms(%x: tensor<4xf32>) -> tensor<4xf32> {
  %kw = xf.param "conv_w" : tensor<4x3xf32>
  %aw = xf.conv %kw, %x : tensor<4x3xf32>, tensor<4xf32>
  %w = xf.add %x, %aw : tensor<4xf32>
  %v = xf.normalize layer %w eps 1.0e-05 : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %t = xf.add %v, %d : tensor<4xf32>
  %y = xf.normalize layer %t eps 1.0e-05 : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
