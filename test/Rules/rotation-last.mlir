// A rotation can be inverted, but the analysis does not know how.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @rotation_last(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "w" : tensor<4x4xf32>
  %h = xf.linear %Wh * %v : tensor<4x4xf32>, tensor<4xf32>
  %H = xf.reshape %h : tensor<4xf32> to tensor<2x2xf32>
  %f = xf.setting "rope" : tensor<1xf32> = #xf.rope<base = 1.0e+04, dims = 2>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}is undecided
  %R = xf.rotary half %H by %f : tensor<2x2xf32>, tensor<1xf32>
  %d = xf.reshape %R : tensor<2x2xf32> to tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'rotation_last': undecided
// CHECK: block 'rotation_last': none found
// CHECK: came as near as {{.*e-[0-9]+$}}
