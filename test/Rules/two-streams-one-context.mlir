// Two residual streams; the context enters one of them.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'two_streams_one_context': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'two_streams_one_context': exact
xf.block @two_streams_one_context(%x: tensor<4xf32>, %x2: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  %w = xf.times %x2 by 2.0 : tensor<4xf32>
  xf.yield %y, %w : tensor<4xf32>, tensor<4xf32>
}
