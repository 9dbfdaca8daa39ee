// v = W [x; a]: W ends the contextual part as an output projection does, and the MLP comes after it.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --try --plan down %s | FileCheck --check-prefix=ALONE %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'concat': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'concat': exact
// ALONE: block 'concat': output-only
// ALONE: block 'concat': exact
xf.block @concat(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %c = xf.concat %x, %a : tensor<4xf32>, tensor<4xf32>
  %W = xf.param "mix" : tensor<4x8xf32>
  %v = xf.linear %W * %c : tensor<4x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %v eps 1.0e-5 : tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %n : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
