// silu(gate) ⊙ up with up frozen: the sign of up decides which side is out of reach.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @activation_of_a_gate_frozen_up(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wg = xf.param "gate" : tensor<4x4xf32>
  %g = xf.linear %Wg * %v : tensor<4x4xf32>, tensor<4xf32>
  %Wu = xf.param "up" frozen : tensor<4x4xf32>
  %u = xf.linear %Wu * %v : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.activation the output has a side that no patch can bring it to
  %s = xf.activation silu %g : tensor<4xf32>
  %d = xf.mul %s, %u : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'activation_of_a_gate_frozen_up': rejected
// CHECK: block 'activation_of_a_gate_frozen_up': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
