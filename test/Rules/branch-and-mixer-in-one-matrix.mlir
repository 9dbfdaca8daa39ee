// y = x + W [a; m]: what the mixer gives and a parallel MLP's inner values have one output matrix, which is the MLP's too.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'fused': output-only
// CHECK-NEXT: output {{ *}}out{{ }}
// CHECK: block 'fused': exact
xf.block @fused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %x : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %c = xf.concat %a, %h : tensor<4xf32>, tensor<6xf32>
  %W = xf.param "out" : tensor<4x10xf32>
  %d = xf.linear %W * %c : tensor<4x10xf32>, tensor<10xf32>
  %y = xf.add %x, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
