// The same for a sequential block: the plan is the same whether x differs or not.
//
// RUN: %exits 0 ctxc check --try --start-layer 1 %s | FileCheck %s

// CHECK: layer 1, block 'start_layer_sequential': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'start_layer_sequential', layer 1: exact
xf.block @start_layer_sequential(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %x1 = xf.layer @start_layer_sequential(%x0) at "0." : (tensor<4xf32>) -> tensor<4xf32>
  %x2 = xf.layer @start_layer_sequential(%x1) at "1." : (tensor<4xf32>) -> tensor<4xf32>
  %H = xf.param "head" : tensor<9x4xf32>
  %l = xf.linear %H * %x2 : tensor<9x4xf32>, tensor<4xf32>
  xf.yield %l : tensor<9xf32>
}
