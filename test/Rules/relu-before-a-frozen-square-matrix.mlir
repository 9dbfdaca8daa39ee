// As many rays as there are dimensions only span a cone.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @relu_before_a_frozen_square_matrix(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.activation the output has a side that no patch can bring it to
  %s = xf.activation relu %h : tensor<4xf32>
  %Wd = xf.param "fc2" frozen : tensor<4x4xf32>
  %d = xf.linear %Wd * %s : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'relu_before_a_frozen_square_matrix': rejected
// CHECK: block 'relu_before_a_frozen_square_matrix': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
