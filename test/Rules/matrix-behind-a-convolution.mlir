// The matrix behind a convolution, on request: what it reads is zero nowhere but on a null set. Where a
// relu stands between the two, that is a condition.
//
// RUN: %exits 0 ctxc check %s --try --sites all --plan o 2>&1 | FileCheck %s

// CHECK: warning: the patch of 'o' divides by the length of its input, which is zero on an open set
// CHECK: block 'behind_a_convolution': controllable
// CHECK: needs {{ *}}o {{ *}}its input is not zero {{ *}}almost everywhere
// CHECK: block 'behind_a_relu': controllable
// CHECK: needs {{ *}}o {{ *}}its input is not zero {{ *}}not everywhere
// CHECK: block 'behind_a_convolution': exact
xf.block @behind_a_convolution(%x: tensor<8xf32>) -> tensor<8xf32> {
  %k = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %k, %x : tensor<8x3xf32>, tensor<8xf32>
  %s = xf.activation silu %a : tensor<8xf32>
  %Wo = xf.param "o" : tensor<8x8xf32>
  %o = xf.linear %Wo * %s : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @behind_a_relu(%x: tensor<8xf32>) -> tensor<8xf32> {
  %k = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %k, %x : tensor<8x3xf32>, tensor<8xf32>
  %s = xf.activation relu %a : tensor<8xf32>
  %Wo = xf.param "o" : tensor<8x8xf32>
  %o = xf.linear %Wo * %s : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
