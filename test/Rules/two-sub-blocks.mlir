// Two pairs of mixer and MLP: the last MLP absorbs the changes by both mixers.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'two_sub_blocks': controllable
// CHECK-NEXT: input {{ *}}fc3{{ }}
// CHECK-NEXT: output {{ *}}fc4{{ }}
// CHECK: block 'two_sub_blocks': exact
xf.block @two_sub_blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<4xf32>
  %Wd = xf.param "fc2" : tensor<4x4xf32>
  %d = xf.linear %Wd * %s : tensor<4x4xf32>, tensor<4xf32>
  %t = xf.add %v, %d : tensor<4xf32>
  %kw = xf.param "conv_w" : tensor<4x3xf32>
  %aw = xf.conv %kw, %t : tensor<4x3xf32>, tensor<4xf32>
  %w = xf.add %t, %aw : tensor<4xf32>
  %Wi = xf.param "fc3" : tensor<6x4xf32>
  %i = xf.linear %Wi * %w : tensor<6x4xf32>, tensor<4xf32>
  %r = xf.activation gelu %i : tensor<6xf32>
  %We = xf.param "fc4" : tensor<4x6xf32>
  %e = xf.linear %We * %r : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %w, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
