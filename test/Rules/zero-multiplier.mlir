// A factor of zero removes the branch.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @zero_multiplier(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %e = xf.times %d by 0.0 : tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}none that may be patched reaches output 0
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'zero_multiplier': rejected
// CHECK: block 'zero_multiplier': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
