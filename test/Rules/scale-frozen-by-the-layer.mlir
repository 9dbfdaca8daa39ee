// The same where the layer freezes it: the block is controllable in layer 0 and not in layer 1.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @scale_frozen_by_the_layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.normalize no patch moves the output by more than 2·√4·‖post_norm‖∞
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %mr = xf.param "post_norm" : tensor<4xf32>
  %r = xf.scale %n by %mr : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %x1 = xf.layer @scale_frozen_by_the_layer(%x0) at "0." : (tensor<4xf32>) -> tensor<4xf32>
  %x2 = xf.layer @scale_frozen_by_the_layer(%x1) at "1." frozen ["post_norm"] : (tensor<4xf32>) -> tensor<4xf32>
  %H = xf.param "head" : tensor<9x4xf32>
  %l = xf.linear %H * %x2 : tensor<9x4xf32>, tensor<4xf32>
  xf.yield %l : tensor<9xf32>
}
// CHECK: note: in layer 1
// CHECK: layer 0, block 'scale_frozen_by_the_layer': controllable
// CHECK: layer 1, block 'scale_frozen_by_the_layer': rejected
// CHECK: layer 1: no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
