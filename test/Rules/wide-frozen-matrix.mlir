// A frozen matrix that is wider than high could be inverted on the right.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @wide_frozen_matrix(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %Wd = xf.param "w2" frozen : tensor<4x6xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}is undecided: 'w2' is frozen
  %d = xf.linear %Wd * %h : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'wide_frozen_matrix': undecided
// CHECK: block 'wide_frozen_matrix': none found
// CHECK: came as near as {{.*e-[0-9]+$}}
