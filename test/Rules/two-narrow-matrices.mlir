// Two narrow matrices together reach at most three dimensions.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @two_narrow_matrices(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w1" : tensor<2x4xf32>
  %h = xf.linear %Wh * %v : tensor<2x4xf32>, tensor<4xf32>
  %Wd = xf.param "w2" frozen : tensor<4x2xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.linear patches move the output in at most 3 of 4 dimensions
  %d = xf.linear %Wd * %h : tensor<4x2xf32>, tensor<2xf32>
  %Wi = xf.param "w3" : tensor<1x4xf32>
  %i = xf.linear %Wi * %v : tensor<1x4xf32>, tensor<4xf32>
  %We = xf.param "w4" frozen : tensor<4x1xf32>
  %e = xf.linear %We * %i : tensor<4x1xf32>, tensor<1xf32>
  %w = xf.add %v, %d : tensor<4xf32>
  %y = xf.add %w, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: note: and likewise past this xf.linear
// CHECK: block 'two_narrow_matrices': rejected
// CHECK: block 'two_narrow_matrices': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
