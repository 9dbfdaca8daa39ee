// Falcon: attention and MLP read the same norm, which no patch may change. The inside of the MLP
// does not depend on the context, so that no input needs a patch.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'parallel_one_norm': controllable
// CHECK-NEXT: input {{ *}}nothing to patch
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'parallel_one_norm': exact
xf.block @parallel_one_norm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = xf.normalize layer %x eps 1.0e-05 : tensor<4xf32>
  %mz = xf.param "norm" : tensor<4xf32>
  %z = xf.scale %n by %mz : tensor<4xf32>, tensor<4xf32>
  %q = xf.reshape %z : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %z : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
