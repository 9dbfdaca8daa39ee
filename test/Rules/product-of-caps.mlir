// A product of two bounded branches is bounded.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @product_of_caps(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wg = xf.param "gate" : tensor<4x4xf32>
  %g = xf.linear %Wg * %v : tensor<4x4xf32>, tensor<4xf32>
  %Wu = xf.param "up" : tensor<4x4xf32>
  %u = xf.linear %Wu * %v : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation sigmoid %g : tensor<4xf32>
  %c = xf.activation tanh %u : tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.mul no patch moves the output by more than 2·√4 = 4.0
  %d = xf.mul %s, %c : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'product_of_caps': rejected
// CHECK: block 'product_of_caps': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
