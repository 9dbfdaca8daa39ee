// The input of the only matrix is always zero.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @zero_before_the_matrix(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %z = xf.times %v by 0.0 : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %z : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}none that may be patched reaches output 0
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'zero_before_the_matrix': rejected
// CHECK: block 'zero_before_the_matrix': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
