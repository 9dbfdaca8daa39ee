// A window of one leaves nothing to absorb in layer 0, where the MLP is frozen; in layer 1 it is wider.
//
// RUN: %exits 1 ctxc check --try --witness %s 2>&1 | FileCheck %s

xf.block @windowed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %w = xf.setting "window" : index
  %c = xf.attention %q, %q, %q scale 0.5 window %w : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %a = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" frozen : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

xf.model @m {
  %E = xf.param "embed" : tensor<9x4xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<9x4xf32>, tensor<i32>
  %x1 = xf.layer @windowed(%x0) at "0." settings {window = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %x2 = xf.layer @windowed(%x1) at "1." settings {window = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %x3 = xf.layer @windowed(%x2) at "2." settings {window = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %H = xf.param "head" : tensor<9x4xf32>
  %l = xf.linear %H * %x3 : tensor<9x4xf32>, tensor<4xf32>
  xf.yield %l : tensor<9xf32>
}
// CHECK: layers 0, 2, block 'windowed': controllable
// CHECK-NEXT: note {{.*}}reads no token but its own, so there is nothing to absorb
// CHECK: layer 1, block 'windowed': rejected
// CHECK: layer 0: exact
// CHECK: layer 1: no patch comes nearer than
