// The same for a bias.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @one_bias_for_two_heads(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w" frozen : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %H = xf.reshape %h : tensor<4xf32> to tensor<2x2xf32>
  %m = xf.param "m" : tensor<2xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.bias patches move the output in at most 2 of 4 dimensions
  %S = xf.bias %H + %m : tensor<2x2xf32>, tensor<2xf32>
  %d = xf.reshape %S : tensor<2x2xf32> to tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'one_bias_for_two_heads': rejected
// CHECK: block 'one_bias_for_two_heads': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
