// The second output is the residual stream before the MLP, which no patch reaches.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @second_stream_carries_the_context(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}none that may be patched reaches output 1
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y, %v : tensor<4xf32>, tensor<4xf32>
}
// CHECK: block 'second_stream_carries_the_context': rejected
// CHECK: block 'second_stream_carries_the_context': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
