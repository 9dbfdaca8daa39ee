// RUN: ctxc-opt %s --patch-build-applied | FileCheck %s
// RUN: ctxc-opt %s --patch-build-dual --patch-build-applied --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=ONCE

// The example of the pass's description, with a bias.
xf.block @ffn(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W1 = xf.param "w1" : tensor<6x4xf32>
  %W2 = xf.param "w2" : tensor<4x6xf32>
  %b = xf.param "b" : tensor<4xbf16>
  %h = xf.linear %W1 * %v : tensor<6x4xf32>, tensor<4xf32>
  %a = xf.activation relu %h : tensor<6xf32>
  %d = xf.linear %W2 * %a : tensor<4x6xf32>, tensor<6xf32>
  %e = xf.bias %d + %b : tensor<4xf32>, tensor<4xbf16>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// CHECK-LABEL: xf.block @ffn_applied
// CHECK-SAME: (%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK: xf.contextual "mix"(%{{[a-z0-9]*}}) :
// CHECK: %[[V:.*]] = xf.add
// CHECK: %[[W1:.*]] = xf.param "w1"
// CHECK: %[[B:.*]] = xf.param "b"
// CHECK: %[[L:.*]]:2 = patch.load "w1" : tensor<6xf32>, tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = xf.linear %[[W1]] * %[[V]]
// CHECK-NEXT: patch.apply_rank1 %[[H]] + %[[L]]#0, %[[L]]#1 at %[[V]]
// CHECK: %[[D:.*]] = xf.linear
// CHECK-NEXT: %[[LB:.*]] = patch.load "b" : tensor<4xf32>
// CHECK-NEXT: %[[BP:.*]] = patch.apply_delta %[[B]] + %[[LB]] : tensor<4xbf16>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT: xf.bias %[[D]] + %[[BP]]

// ONCE-COUNT-3: xf.block
// ONCE-NOT: xf.block
