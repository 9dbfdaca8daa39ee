// v = W_o a, without x: the stream begins anew with v.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --try --plan down %s | FileCheck --check-prefix=ALONE %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'bare': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'bare': exact
// ALONE: block 'bare': output-only
// ALONE: block 'bare': exact
xf.block @bare(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %O = xf.param "o" : tensor<4x4xf32>
  %v = xf.linear %O * %a : tensor<4x4xf32>, tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-5 : tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %n : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
