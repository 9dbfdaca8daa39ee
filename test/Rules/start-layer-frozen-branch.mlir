// With a start layer, the input itself carries the context, and bypasses the only branch that
// patches reach.
//
// RUN: %exits 1 ctxc check --witness --start-layer 1 %s 2>&1 | FileCheck %s

xf.block @start_layer_frozen_branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %x : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.activation no patch moves the output by more than 2·√4 = 4.0
  %c = xf.activation tanh %d : tensor<4xf32>
  %y = xf.add %x, %c : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.block @mixer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x2xf32>
  %y = xf.conv %k, %x : tensor<4x2xf32>, tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %x1 = xf.layer @mixer(%x0) at "0." : (tensor<4xf32>) -> tensor<4xf32>
  %x2 = xf.layer @start_layer_frozen_branch(%x1) at "1." : (tensor<4xf32>) -> tensor<4xf32>
  %H = xf.param "head" : tensor<9x4xf32>
  %l = xf.linear %H * %x2 : tensor<9x4xf32>, tensor<4xf32>
  xf.yield %l : tensor<9xf32>
}
// CHECK: layer 1, block 'start_layer_frozen_branch': rejected
// CHECK: layer 1: no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
