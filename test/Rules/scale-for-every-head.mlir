// A scale with an entry of its own for every entry of every head.
//
// RUN: %exits 0 ctxc check --try --objective=paper %s | FileCheck %s

// CHECK: block 'scale_for_every_head': controllable
// CHECK-NEXT: input {{ *}}w{{ }}
// CHECK-NEXT: output {{ *}}m{{ }}
// CHECK: block 'scale_for_every_head': exact
xf.block @scale_for_every_head(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  %H = xf.reshape %d : tensor<4xf32> to tensor<2x2xf32>
  %mS = xf.param "m" : tensor<2x2xf32>
  %S = xf.scale %H by %mS : tensor<2x2xf32>, tensor<2x2xf32>
  %r = xf.reshape %S : tensor<2x2xf32> to tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
