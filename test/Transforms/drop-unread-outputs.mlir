// RUN: ctxc-opt %s --split-input-file --xf-drop-unread-outputs | FileCheck %s

// An output that nothing reads, or only what nothing reads.
//
// CHECK-LABEL: xf.block @one
// CHECK-SAME: -> tensor<4xf32>
// CHECK: [[Y:%.*]] = xf.add
// CHECK: xf.yield [[Y]] : tensor<4xf32>
// CHECK-LABEL: xf.model @m
// CHECK: [[L:%.*]] = xf.layer @one
// CHECK-SAME: settings {s = dense<2.000000e+00>
// CHECK-SAME: -> tensor<4xf32>
// CHECK-NOT: xf.times
// CHECK: xf.yield [[L]]
xf.block @one(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = xf.setting "s" : tensor<4xf32>
  %d = xf.mul %x, %s : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %x, %d : tensor<4xf32>
  xf.yield %d, %y : tensor<4xf32>, tensor<4xf32>
}
xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %l:2 = xf.layer @one(%x) at "0." settings {s = dense<2.0> : tensor<4xf32>} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %half = xf.times %l#0 by 0.5 : tensor<4xf32>
  %fourth = xf.times %half by 0.5 : tensor<4xf32>
  xf.yield %l#1 : tensor<4xf32>
}

// -----

// Layers of one block, of which other outputs are read: they have a block each.
//
// CHECK-LABEL: xf.block @two
// CHECK-LABEL: xf.block @two_read
// CHECK-SAME: -> tensor<4xf32>
// CHECK-LABEL: xf.model @m
// CHECK: [[A:%.*]]:2 = xf.layer @two(
// CHECK: [[B:%.*]] = xf.layer @two_read([[A]]#0)
// CHECK: xf.add [[A]]#1, [[B]]
xf.block @two(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %D = xf.param "down" : tensor<4x4xf32>
  %d = xf.linear %D * %x : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %x, %d : tensor<4xf32>
  xf.yield %y, %d : tensor<4xf32>, tensor<4xf32>
}
xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %a:2 = xf.layer @two(%x) at "0." : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b:2 = xf.layer @two(%a#0) at "1." : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %y = xf.add %a#1, %b#0 : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
