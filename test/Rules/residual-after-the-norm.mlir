// The residual stream begins after the first norm (BLOOM's post-norm form): the context enters at n
// + attn(n), and everything after that may be patched.
//
// RUN: ctxc check --try --plans %s | FileCheck %s

// CHECK: block 'residual_after_the_norm': controllable
// CHECK-NEXT: input fc1 rank 1
// CHECK-NEXT: output fc2.bias vector output controllability of outer bias
// CHECK: plans
// CHECK: fc2.bias:
// CHECK: exact
xf.block @residual_after_the_norm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = xf.normalize layer %x eps 1.0e-5 : tensor<4xf32>
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %n : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %n, %a : tensor<4xf32>
  %z = xf.normalize layer %v eps 1.0e-5 : tensor<4xf32>
  %W1 = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %W1 * %z : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %W2 = xf.param "fc2" : tensor<4x6xf32>
  %b2 = xf.param "fc2.bias" : tensor<4xf32>
  %d = xf.linear %W2 * %s : tensor<4x6xf32>, tensor<6xf32>
  %m = xf.bias %d + %b2 : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %z, %m : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
