// Gemma: the scale after the MLP's norm, together with the matrix before it (update least).
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'post_norm_scale': controllable
// CHECK-NEXT: input {{ *}}gate{{ }}
// CHECK-NEXT: {{^ +}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK-NEXT: {{^ +}}post_norm{{ }}
// CHECK: block 'post_norm_scale': exact
xf.block @post_norm_scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-06 : tensor<4xf32>
  %mz = xf.param "pre_norm" : tensor<4xf32>
  %z = xf.scale %n by %mz : tensor<4xf32>, tensor<4xf32>
  %Wg = xf.param "gate" : tensor<6x4xf32>
  %g = xf.linear %Wg * %z : tensor<6x4xf32>, tensor<4xf32>
  %Wu = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %Wu * %z : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu_tanh %g : tensor<6xf32>
  %p = xf.mul %s, %u : tensor<6xf32>, tensor<6xf32>
  %Wd = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %Wd * %p : tensor<4x6xf32>, tensor<6xf32>
  %e = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %mr = xf.param "post_norm" : tensor<4xf32>
  %r = xf.scale %e by %mr : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
