// sqrt last: no entry is negative.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @sqrt_last(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.activation each entry of the output has a side that no patch can bring it to
  %c = xf.activation sqrt %d : tensor<4xf32>
  %y = xf.add %v, %c : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'sqrt_last': rejected
// CHECK: block 'sqrt_last': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
