// A block that consists only of a mixer.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @mixer_alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}none that may be patched reaches output 0
  %y = xf.add %x, %a : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'mixer_alone': rejected
// CHECK: block 'mixer_alone': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: there is no number that a patch may change
