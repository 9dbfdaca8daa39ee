// Everything before the outer matrix is frozen, the norm's scale included: output-only.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'frozen_inputs': output-only
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'frozen_inputs': exact
xf.block @frozen_inputs(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-06 : tensor<4xf32>
  %mz = xf.param "pre_norm" frozen : tensor<4xf32>
  %z = xf.scale %n by %mz : tensor<4xf32>, tensor<4xf32>
  %Wh = xf.param "fc" frozen : tensor<6x4xf32>
  %h = xf.linear %Wh * %z : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
