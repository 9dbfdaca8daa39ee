// An MLP without parameters: if every site is allowed, attention's own outer matrix absorbs the
// change that attention causes.
//
// RUN: %exits 0 ctxc check --try --sites=all %s | FileCheck %s

// CHECK: block 'attention_matrix_on_request': controllable
// CHECK-NEXT: input {{ *}}nothing to patch
// CHECK-NEXT: output {{ *}}o{{ }}
// CHECK: block 'attention_matrix_on_request': exact
xf.block @attention_matrix_on_request(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %s = xf.activation gelu %v : tensor<4xf32>
  %y = xf.add %v, %s : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
