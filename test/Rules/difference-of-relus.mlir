// Two one-sided branches, one subtracted: every value is a difference of two positive ones.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @difference_of_relus(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w1" : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation relu %h : tensor<4xf32>
  %Wi = xf.param "w2" : tensor<4x4xf32>
  %i = xf.linear %Wi * %v : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: error: {{.*}}is undecided
  %r = xf.activation relu %i : tensor<4xf32>
  %w = xf.add %v, %s : tensor<4xf32>
  %y = xf.sub %w, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'difference_of_relus': undecided
// CHECK: block 'difference_of_relus': none found
// CHECK: came as near as {{.*e-[0-9]+$}}
