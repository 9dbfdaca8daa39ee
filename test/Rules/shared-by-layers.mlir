// Two layers share a stored outer matrix; each has its own bias after it.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: layers 0-1, block 'shared_by_layers': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2_bias{{ }}
// CHECK: block 'shared_by_layers', layer 0: exact
xf.block @shared_by_layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %be = xf.param "fc2_bias" : tensor<4xf32>
  %e = xf.bias %d + %be : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %x1 = xf.layer @shared_by_layers(%x0) at "0." bind {fc2 = "fc2"} : (tensor<4xf32>) -> tensor<4xf32>
  %x2 = xf.layer @shared_by_layers(%x1) at "1." bind {fc2 = "fc2"} : (tensor<4xf32>) -> tensor<4xf32>
  %H = xf.param "head" : tensor<9x4xf32>
  %l = xf.linear %H * %x2 : tensor<9x4xf32>, tensor<4xf32>
  xf.yield %l : tensor<9xf32>
}
