// y = x + MLP(norm [x; a]).
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --try --plan down %s | FileCheck --check-prefix=ALONE %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'norm_of_both': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'norm_of_both': exact
// ALONE: block 'norm_of_both': output-only
// ALONE: block 'norm_of_both': exact
xf.block @norm_of_both(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %c = xf.concat %x, %a : tensor<4xf32>, tensor<4xf32>
  %n = xf.normalize layer %c eps 1.0e-5 : tensor<8xf32>
  %U = xf.param "up" : tensor<6x8xf32>
  %u = xf.linear %U * %n : tensor<6x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %x, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
