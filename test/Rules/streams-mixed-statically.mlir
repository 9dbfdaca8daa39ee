// Two residual streams: the context enters them in one proportion, and the MLP writes to them in
// another, which gives four directions for a difference of eight.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @streams_mixed_statically(%x: tensor<4xf32>, %x2: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
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
  %y = xf.add %w, %d : tensor<4xf32>
  %e = xf.times %d by 2.0 : tensor<4xf32>
  %l = xf.add %j, %e : tensor<4xf32>
  xf.yield %y, %l : tensor<4xf32>, tensor<4xf32>
}
// CHECK: block 'streams_mixed_statically': rejected
// CHECK: block 'streams_mixed_statically': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
