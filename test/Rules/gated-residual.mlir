// A gate that the context sets between x and what the mixer gives: the gate and its matrix belong to
// the contextual part, and the MLP comes after it.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --try --plan down %s | FileCheck --check-prefix=ALONE %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'gated_residual': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'gated_residual': exact
// ALONE: block 'gated_residual': output-only
// ALONE: block 'gated_residual': exact
xf.block @gated_residual(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Wz = xf.param "wz" : tensor<4x4xf32>
  %l = xf.linear %Wz * %a : tensor<4x4xf32>, tensor<4xf32>
  %z = xf.activation sigmoid %l : tensor<4xf32>
  %one = xf.setting "one" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  %i = xf.sub %one, %z : tensor<4xf32>
  %p = xf.mul %i, %x : tensor<4xf32>, tensor<4xf32>
  %m = xf.mul %z, %a : tensor<4xf32>, tensor<4xf32>
  %v = xf.add %p, %m : tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-5 : tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %n : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
