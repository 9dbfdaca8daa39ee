// y = W_down gelu(W_up W_o a): the output projection is one matrix, and the MLP follows.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --try --plan down %s | FileCheck --check-prefix=ALONE %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'chain': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'chain': exact
// ALONE: block 'chain': output-only
// ALONE: block 'chain': exact
xf.block @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
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
  xf.yield %d : tensor<4xf32>
}
