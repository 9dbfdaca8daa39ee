// A rotation behind the last matrix is turned back; where it also stretches, it is stretched back.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'rotation_last': output-only
// CHECK-NEXT: output {{ *}}w{{ }}
// CHECK: block 'stretched': output-only
// CHECK: block 'rotation_last': exact
// CHECK: block 'stretched': exact
xf.block @rotation_last(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w" : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %H = xf.reshape %h : tensor<4xf32> to tensor<2x2xf32>
  %f = xf.setting "rope" : tensor<1xf32> = #xf.rope<base = 1.0e+04, dims = 2>
  %R = xf.rotary half %H by %f : tensor<2x2xf32>, tensor<1xf32>
  %d = xf.reshape %R : tensor<2x2xf32> to tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.block @stretched(%x: tensor<6xf32>) -> tensor<6xf32> {
  %k = xf.param "conv" : tensor<6x3xf32>
  %a = xf.conv %k, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %a : tensor<6xf32>
  %Wh = xf.param "w" : tensor<6x6xf32>
  %h = xf.linear %Wh * %v : tensor<6x6xf32>, tensor<6xf32>
  %H = xf.reshape %h : tensor<6xf32> to tensor<1x6xf32>
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.0e+04, dims = 4>
  %R = xf.rotary interleaved %H by %f amplitude 1.3 : tensor<1x6xf32>, tensor<2xf32>
  %d = xf.reshape %R : tensor<1x6xf32> to tensor<6xf32>
  %y = xf.add %v, %d : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
