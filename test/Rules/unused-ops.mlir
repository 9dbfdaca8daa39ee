// Ops on which no output depends change no verdict: a mixer, another reader of the outer matrix, a
// whole branch.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'unused': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'unused': exact
xf.block @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %v : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %again = xf.linear %D * %u : tensor<4x6xf32>, tensor<6xf32>
  %mixed = xf.conv %k, %d : tensor<4x3xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  %E = xf.param "e" : tensor<4x4xf32>
  %e = xf.linear %E * %y : tensor<4x4xf32>, tensor<4xf32>
  %f = xf.conv %k, %e : tensor<4x3xf32>, tensor<4xf32>
  %w = xf.add %y, %f : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
