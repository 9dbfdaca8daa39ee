// The MLP writes to two of the four entries of the residual stream.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @half_of_the_stream(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<2x4xf32>
  %d = xf.linear %Wd * %v : tensor<2x4xf32>, tensor<4xf32>
  %i = xf.slice %x from 0 : tensor<4xf32> to tensor<2xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.concat patches move the output in at most 2 of 4 dimensions
  %e = xf.concat %d, %i : tensor<2xf32>, tensor<2xf32>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'half_of_the_stream': rejected
// CHECK: block 'half_of_the_stream': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
