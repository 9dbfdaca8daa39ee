// Two residual streams, mixed with a weight that depends on them: the reach of patches is not a sum
// of convex sets, so that no direction separates the target from it; still the search comes no
// closer.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @streams_mixed_dynamically(%x: tensor<4xf32>, %x2: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %kw = xf.param "conv_w" : tensor<4x3xf32>
  %aw = xf.conv %kw, %x : tensor<4x3xf32>, tensor<4xf32>
  %w = xf.add %x, %aw : tensor<4xf32>
  %i = xf.times %aw by 0.5 : tensor<4xf32>
  %j = xf.add %x2, %i : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %w : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %Wq = xf.param "beta" : tensor<1x4xf32>
  %q = xf.linear %Wq * %w : tensor<1x4xf32>, tensor<4xf32>
  %t = xf.activation sigmoid %q : tensor<1xf32>
  %y = xf.add %w, %d : tensor<4xf32>
  %e = xf.mul %d, %t : tensor<4xf32>, tensor<1xf32>
  %l = xf.add %j, %e : tensor<4xf32>
  xf.yield %y, %l : tensor<4xf32>, tensor<4xf32>
}
// CHECK: block 'streams_mixed_dynamically': undecided
// CHECK: block 'streams_mixed_dynamically': none found
