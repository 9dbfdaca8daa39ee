// A scale between two norms does not help: the last norm is the bound.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @norm_of_a_norm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %mi = xf.param "inner" : tensor<4xf32>
  %i = xf.scale %n by %mi : tensor<4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.normalize no patch moves the output by more than 2·√4 = 4.0
  %r = xf.normalize rms %i eps 1.0e-06 : tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'norm_of_a_norm': rejected
// CHECK: block 'norm_of_a_norm': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
