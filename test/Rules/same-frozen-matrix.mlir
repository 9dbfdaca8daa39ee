// One frozen narrow matrix ends both branches.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @frozen_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Pa1 = xf.param "a" : tensor<2x4xf32>
  %a1 = xf.linear %Pa1 * %a : tensor<2x4xf32>, tensor<4xf32>
  %Ps = xf.param "f" frozen : tensor<4x2xf32>
  %s = xf.linear %Ps * %a1 : tensor<4x2xf32>, tensor<2xf32>
  %v = xf.add %x, %s : tensor<4xf32>
  %Pd1 = xf.param "w" : tensor<2x4xf32>
  %d1 = xf.linear %Pd1 * %x : tensor<2x4xf32>, tensor<4xf32>
  %Pt = xf.param "f" frozen : tensor<4x2xf32>
  %t = xf.linear %Pt * %d1 : tensor<4x2xf32>, tensor<2xf32>
  %y = xf.add %v, %t : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'frozen_twice': undecided
// CHECK: block 'frozen_twice': none found
