// An attention that sees its own token alone.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

xf.block @window_of_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %win = xf.setting "window" : index = 1
  %c = xf.attention %q, %q, %q scale 0.5 window %win : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %a = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Pf = xf.param "w" frozen : tensor<4x4xf32>
  %f = xf.linear %Pf * %v : tensor<4x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %f : tensor<4xf32>
  %y = xf.add %v, %h : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'window_of_one': controllable
// CHECK-NOT: input
// CHECK: note {{.*}}
// CHECK: block 'window_of_one': exact
