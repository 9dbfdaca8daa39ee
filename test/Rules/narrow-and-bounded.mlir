// Two unbounded dimensions, and a ball around them.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @narrow_and_bounded(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w1" : tensor<2x4xf32>
  %h = xf.linear %Wh * %v : tensor<2x4xf32>, tensor<4xf32>
  %Wd = xf.param "w2" frozen : tensor<4x2xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.linear patches move the output without bound in at most 2 of 4 dimensions
  %d = xf.linear %Wd * %h : tensor<4x2xf32>, tensor<2xf32>
  %We = xf.param "w3" : tensor<4x4xf32>
  %e = xf.linear %We * %v : tensor<4x4xf32>, tensor<4xf32>
  %n = xf.normalize rms %e eps 1.0e-06 : tensor<4xf32>
  %w = xf.add %v, %d : tensor<4xf32>
  %y = xf.add %w, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'narrow_and_bounded': rejected
// CHECK: block 'narrow_and_bounded': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
