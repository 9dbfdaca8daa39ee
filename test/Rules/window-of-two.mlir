// An attention that sees one token before its own.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @window_of_two(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %win = xf.setting "window" : index = 2
  %c = xf.attention %q, %q, %q scale 0.5 window %win : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %a = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Pf = xf.param "w" frozen : tensor<4x4xf32>
  %f = xf.linear %Pf * %v : tensor<4x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %f : tensor<4xf32>
  %y = xf.add %v, %h : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'window_of_two': rejected [nothing-reaches-output]
// CHECK: block 'window_of_two': no patch comes nearer than {{[0-9.e+-]+$}}
