// A branch without parameters.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @mlp_without_parameters(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}weights and a context were found for which no patch
  %s = xf.activation gelu %v : tensor<4xf32>
  %y = xf.add %v, %s : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'mlp_without_parameters': rejected
// CHECK: block 'mlp_without_parameters': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: there is no number that a patch may change
