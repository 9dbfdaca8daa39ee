// Two residual streams, mixed with a weight that depends on them: the reach of patches is not a sum
// of convex sets, so that no direction separates the target from it. Both get a multiple of one
// vector, and the context changes them by two.
//
// RUN: %exits 1 ctxc check --witness=%t.json %s 2>&1 | FileCheck %s
// RUN: ctxc check --replay %t.json | FileCheck %s --check-prefix=REPLAY
// RUN: %exits 1 ctxc check %s --proof %t.proof.json && %exits 0 ctxc check-proof %s %t.proof.json
// RUN: sed 's/"few-vectors"/"thin-output"/' %t.proof.json > %t.other.json
// RUN: %exits 1 ctxc check-proof %s %t.other.json 2>&1 | FileCheck %s --check-prefix=OTHER

xf.block @streams_mixed_dynamically(%x: tensor<4xf32>, %x2: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %kw = xf.param "conv_w" : tensor<4x3xf32>
  %aw = xf.conv %kw, %x : tensor<4x3xf32>, tensor<4xf32>
  %w = xf.add %x, %aw : tensor<4xf32>
  %i = xf.times %aw by 0.5 : tensor<4xf32>
  %j = xf.add %x2, %i : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %w : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}patches move 2 outputs by multiples of 1 vector, that of this xf.linear, {{.*}}[few-vectors]
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %Wq = xf.param "beta" : tensor<1x4xf32>
  %q = xf.linear %Wq * %w : tensor<1x4xf32>, tensor<4xf32>
  %t = xf.activation silu %q : tensor<1xf32>
  %y = xf.add %w, %d : tensor<4xf32>
  %e = xf.mul %d, %t : tensor<4xf32>, tensor<1xf32>
  %l = xf.add %j, %e : tensor<4xf32>
  xf.yield %y, %l : tensor<4xf32>, tensor<4xf32>
}
// CHECK: block 'streams_mixed_dynamically': rejected
// CHECK: block 'streams_mixed_dynamically': no patch comes nearer than {{[0-9.e+]+$}}
// CHECK: came as near as {{[0-9]}}
// REPLAY: 'streams_mixed_dynamically': no patch comes nearer than
// OTHER: found 'thin-output', expected 'few-vectors'
