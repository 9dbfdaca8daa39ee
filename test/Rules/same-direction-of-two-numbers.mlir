// The context and the MLP move the stream by one number each, along one direction: a patch follows
// wherever the context goes, and no rule says so.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @same_broadcast(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Pa1 = xf.param "a" : tensor<1x4xf32>
  %a1 = xf.linear %Pa1 * %a : tensor<1x4xf32>, tensor<4xf32>
  %s1 = xf.reshape %a1 : tensor<1xf32> to tensor<1x1xf32>
  %s2 = xf.broadcast %s1 : tensor<1x1xf32> to tensor<4x1xf32>
  %s = xf.reshape %s2 : tensor<4x1xf32> to tensor<4xf32>
  %v = xf.add %x, %s : tensor<4xf32>
  %Pd1 = xf.param "w" : tensor<1x4xf32>
  %d1 = xf.linear %Pd1 * %x : tensor<1x4xf32>, tensor<4xf32>
  %t1 = xf.reshape %d1 : tensor<1xf32> to tensor<1x1xf32>
  %t2 = xf.broadcast %t1 : tensor<1x1xf32> to tensor<4x1xf32>
  %t = xf.reshape %t2 : tensor<4x1xf32> to tensor<4xf32>
  %y = xf.add %v, %t : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'same_broadcast': undecided
// CHECK: block 'same_broadcast': none found
