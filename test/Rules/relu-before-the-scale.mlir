// Neither op suffices alone: the scale multiplies zeros, and the relu does not reach every value.
// Together they could suffice, as the search shows.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @relu_before_the_scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w" : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation relu %h : tensor<4xf32>
  %md = xf.param "m" : tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}is undecided: 'm' multiplies entries that are zero on an open set of activations
  %d = xf.scale %s by %md : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'relu_before_the_scale': undecided
// CHECK: block 'relu_before_the_scale': none found
// CHECK: came as near as
