// If every site is allowed, attention's outer matrix is brought to its result in the full run,
// although norms without a scale follow both branches. Everything after it then agrees.
//
// RUN: %exits 0 ctxc check --try --sites=all %s | FileCheck %s

// CHECK: block 'attention_matrix_before_a_norm_on_request': controllable
// CHECK-NEXT: input {{ *}}nothing to patch
// CHECK-NEXT: output {{ *}}o{{ }}
// CHECK: block 'attention_matrix_before_a_norm_on_request': exact
xf.block @attention_matrix_before_a_norm_on_request(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  %i = xf.normalize rms %a eps 1.0e-06 : tensor<4xf32>
  %v = xf.add %x, %i : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %y = xf.add %v, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
