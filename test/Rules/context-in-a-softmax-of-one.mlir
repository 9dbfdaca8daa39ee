// A softmax of one entry is one.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

xf.block @softmax_of_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Pa1 = xf.param "a" : tensor<1x4xf32>
  %a1 = xf.linear %Pa1 * %a : tensor<1x4xf32>, tensor<4xf32>
  %n = xf.softmax %a1 : tensor<1xf32>
  %v = xf.mul %x, %n : tensor<4xf32>, tensor<1xf32>
  %Pf = xf.param "w" frozen : tensor<4x4xf32>
  %f = xf.linear %Pf * %v : tensor<4x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %f : tensor<4xf32>
  %y = xf.add %v, %h : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'softmax_of_one': controllable
// CHECK-NOT: input
// CHECK: note {{.*}}
// CHECK: block 'softmax_of_one': exact
