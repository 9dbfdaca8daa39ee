// Llama: gate and up absorb the context before the MLP's nonlinearity, the outer matrix absorbs the
// remaining difference (Theorem 3).
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'gated_pre_norm': controllable
// CHECK-NEXT: input {{ *}}gate{{ }}
// CHECK-NEXT: {{^ +}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'gated_pre_norm': exact
xf.block @gated_pre_norm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-06 : tensor<4xf32>
  %mz = xf.param "pre_norm" : tensor<4xf32>
  %z = xf.scale %n by %mz : tensor<4xf32>, tensor<4xf32>
  %Wg = xf.param "gate" : tensor<6x4xf32>
  %g = xf.linear %Wg * %z : tensor<6x4xf32>, tensor<4xf32>
  %Wu = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %Wu * %z : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation silu %g : tensor<6xf32>
  %p = xf.mul %s, %u : tensor<6xf32>, tensor<6xf32>
  %Wd = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %Wd * %p : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
