// y = g ⊙ v + (1 − g) ⊙ MLP: both factors are known once the gate is known, and neither is ever
// zero.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'highway': controllable
// CHECK-NEXT: input {{ *}}w{{ }}
// CHECK-NEXT: output {{ *}}w2{{ }}
// CHECK: block 'highway': exact
xf.block @highway(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wq = xf.param "gate" : tensor<4x4xf32>
  %q = xf.linear %Wq * %x : tensor<4x4xf32>, tensor<4xf32>
  %g = xf.activation sigmoid %q : tensor<4xf32>
  %one = xf.setting "one" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  %i = xf.sub %one, %g : tensor<4xf32>
  %Wh = xf.param "w" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "w2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %l = xf.mul %g, %v : tensor<4xf32>, tensor<4xf32>
  %e = xf.mul %i, %d : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %l, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
