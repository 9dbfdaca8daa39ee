// Attention's branch is normalised too, so that the change by the context is also bounded. Both
// balls have the same size, and a sum of points of both need not lie in one of them.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @both_branches_normalised(%x: tensor<4xf32>) -> tensor<4xf32> {
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
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.normalize no patch moves the output by more than 2·√4 = 4.0
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %y = xf.add %v, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'both_branches_normalised': rejected
// CHECK: block 'both_branches_normalised': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
