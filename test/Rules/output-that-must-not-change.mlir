// A second output, which does not depend on the context, is computed by the only patchable op: a
// patch that is right for one output is wrong for the other.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @output_that_must_not_change(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}weights and a context were found for which no patch brings the output nearer than
  %d = xf.linear %Wd * %x : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y, %d : tensor<4xf32>, tensor<4xf32>
}
// CHECK: block 'output_that_must_not_change': rejected
// CHECK: block 'output_that_must_not_change': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
