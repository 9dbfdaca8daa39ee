// A trainable scale after tanh reaches values beyond tanh's bound.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'scale_after_a_cap': controllable
// CHECK-NEXT: input {{ *}}w{{ }}
// CHECK-NEXT: output {{ *}}m{{ }}
// CHECK: block 'scale_after_a_cap': exact
xf.block @scale_after_a_cap(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  %t = xf.activation tanh %d : tensor<4xf32>
  %mr = xf.param "m" : tensor<4xf32>
  %r = xf.scale %t by %mr : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
