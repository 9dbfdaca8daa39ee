// With gate and up frozen the scale before them is the cut; it divides entry by entry.
//
// RUN: %exits 0 ctxc check --try --objective=paper %s | FileCheck %s

// CHECK: block 'norm_scale_as_input': controllable
// CHECK-NEXT: input {{ *}}pre_norm{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: pre_norm {{.*}}no entry of its input is zero
// CHECK: block 'norm_scale_as_input': exact
xf.block @norm_scale_as_input(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-06 : tensor<4xf32>
  %mz = xf.param "pre_norm" : tensor<4xf32>
  %z = xf.scale %n by %mz : tensor<4xf32>, tensor<4xf32>
  %Wg = xf.param "gate" frozen : tensor<6x4xf32>
  %g = xf.linear %Wg * %z : tensor<6x4xf32>, tensor<4xf32>
  %Wu = xf.param "up" frozen : tensor<6x4xf32>
  %u = xf.linear %Wu * %z : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation silu %g : tensor<6xf32>
  %p = xf.mul %s, %u : tensor<6xf32>, tensor<6xf32>
  %Wd = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %Wd * %p : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
