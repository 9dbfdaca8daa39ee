// The scale multiplies zero wherever the relu is off, and the matrix before the relu is frozen:
// these entries cannot change.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @relu_before_the_scale_frozen_matrix(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w" frozen : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation relu %h : tensor<4xf32>
  %md = xf.param "m" : tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.scale patches leave the entries of the output that it makes zero as they are{{.*}}relu is zero on every negative input
  %d = xf.scale %s by %md : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'relu_before_the_scale_frozen_matrix': rejected
// CHECK: block 'relu_before_the_scale_frozen_matrix': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
