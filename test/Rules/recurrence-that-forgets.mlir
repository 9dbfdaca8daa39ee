// A recurrence whose gate is 0 everywhere.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

xf.block @shut_scan(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = xf.setting "zero" : tensor<4xf32> = dense<0.0> : tensor<4xf32>
  %a = xf.scan %z, %x : tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Pf = xf.param "w" frozen : tensor<4x4xf32>
  %f = xf.linear %Pf * %v : tensor<4x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %f : tensor<4xf32>
  %y = xf.add %v, %h : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'shut_scan': controllable
// CHECK-NOT: input
// CHECK: note {{.*}}
// CHECK: block 'shut_scan': exact
