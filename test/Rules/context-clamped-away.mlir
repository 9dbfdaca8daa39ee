// exp(a) + 2 is never below 2, and is cut off at 1.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

xf.block @clamped(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %e = xf.activation exp %a : tensor<4xf32>
  %two = xf.setting "two" : tensor<4xf32> = dense<2.0> : tensor<4xf32>
  %e2 = xf.add %e, %two : tensor<4xf32>
  %cl = xf.clamp %e2 to 1.0 : tensor<4xf32>
  %v = xf.add %x, %cl : tensor<4xf32>
  %Pf = xf.param "w" frozen : tensor<4x4xf32>
  %f = xf.linear %Pf * %v : tensor<4x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %f : tensor<4xf32>
  %y = xf.add %v, %h : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'clamped': controllable
// CHECK-NOT: input
// CHECK: note {{.*}}
// CHECK: block 'clamped': exact
