// x + (attention + MLP): where the branches meet is where the context enters the stream.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'parallel_branches_summed_first': controllable
// CHECK-NEXT: input {{ *}}nothing to patch
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'parallel_branches_summed_first': exact
xf.block @parallel_branches_summed_first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %x : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %w = xf.add %d, %a : tensor<4xf32>
  %y = xf.add %x, %w : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
