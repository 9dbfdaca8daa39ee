// A norm for each head separately: there are as many balls as heads.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @norm_of_heads_without_scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %H = xf.reshape %d : tensor<4xf32> to tensor<2x2xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.normalize no patch moves the output by more than 2·√4 = 4.0
  %n = xf.normalize rms %H eps 1.0e-06 : tensor<2x2xf32>
  %r = xf.reshape %n : tensor<2x2xf32> to tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'norm_of_heads_without_scale': rejected
// CHECK: block 'norm_of_heads_without_scale': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
