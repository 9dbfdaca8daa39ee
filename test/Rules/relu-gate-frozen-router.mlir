// A gate that is off, and a frozen router.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @relu_gate_frozen_router(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wq = xf.param "router" frozen : tensor<4x4xf32>
  %q = xf.linear %Wq * %v : tensor<4x4xf32>, tensor<4xf32>
  %g = xf.activation relu %q : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.mul patches leave the entries of the output that it makes zero as they are
  %e = xf.mul %g, %d : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'relu_gate_frozen_router': rejected
// CHECK: block 'relu_gate_frozen_router': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
