// RUN: ctxc-opt %s --split-input-file --graph-raise | FileCheck %s

// Two experts, of which one is chosen, written over both with a gate of zeros: the chosen one's matrix of their bank.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>)
// CHECK: %[[S:.*]] = xf.top_k %[[L:.*]] k 1 : tensor<2xf32>
// CHECK: %[[W:.*]] = xf.gather %[[L]][%[[S]]]
// CHECK: %[[BANK:.*]] = xf.param "experts.*.w" : tensor<2x3x3xf32>
// CHECK: %[[Y:.*]] = xf.expert_linear %[[BANK]][%[[S]]] * %[[X]] : tensor<2x3x3xf32>, tensor<1xi32>, tensor<3xf32>
// CHECK: %[[SUM:.*]] = xf.combine %[[W]], %[[Y]]
// CHECK-NEXT: %[[R:.*]] = xf.add %[[X]], %[[SUM]]
// CHECK-NEXT: xf.yield %[[R]]
graph.program @gate tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<["s", 3], f32>
  %r = graph.stored "r" : !graph.tensor<[2, 3], f32>
  %a = graph.stored "experts.0.w" : !graph.tensor<[3, 3], f32>
  %b = graph.stored "experts.1.w" : !graph.tensor<[3, 3], f32>
  %l = graph.call "aten.linear.default"(%x, %r) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<[2, 3], f32>) -> !graph.tensor<["s", 2], f32>
  %t:2 = graph.call "aten.topk.default"(%l) {k = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>) -> (!graph.tensor<["s", 1], f32>, !graph.tensor<["s", 1], si64>)
  %z = graph.call "aten.zeros_like.default"(%l) {self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 2], f32>
  %g = graph.call "aten.scatter.src"(%z, %t#1, %t#0) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, src = #graph.operand<2>} in "" : (!graph.tensor<["s", 2], f32>, !graph.tensor<["s", 1], si64>, !graph.tensor<["s", 1], f32>) -> !graph.tensor<["s", 2], f32>
  %g0 = graph.call "aten.slice.Tensor"(%g) {dim = 1 : i64, end = 1 : i64, self = #graph.operand<0>, start = 0 : i64} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 1], f32>
  %g1 = graph.call "aten.slice.Tensor"(%g) {dim = 1 : i64, end = 2 : i64, self = #graph.operand<0>, start = 1 : i64} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 1], f32>
  %ya = graph.call "aten.linear.default"(%x, %a) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<[3, 3], f32>) -> !graph.tensor<["s", 3], f32>
  %yb = graph.call "aten.linear.default"(%x, %b) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<[3, 3], f32>) -> !graph.tensor<["s", 3], f32>
  %pa = graph.call "aten.mul.Tensor"(%g0, %ya) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 1], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %pb = graph.call "aten.mul.Tensor"(%g1, %yb) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 1], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %u = graph.call "aten.add.Tensor"(%x, %pa) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %y = graph.call "aten.add.Tensor"(%u, %pb) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  graph.return %y : !graph.tensor<["s", 3], f32>
}

// -----

// One expert reads with another function: no bank has both, and the sum stays over all.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: "experts.*.w"
// CHECK: xf.param "experts.1.w"
// CHECK: xf.activation relu
graph.program @others tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<["s", 3], f32>
  %r = graph.stored "r" : !graph.tensor<[2, 3], f32>
  %a = graph.stored "experts.0.w" : !graph.tensor<[3, 3], f32>
  %b = graph.stored "experts.1.w" : !graph.tensor<[3, 3], f32>
  %l = graph.call "aten.linear.default"(%x, %r) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<[2, 3], f32>) -> !graph.tensor<["s", 2], f32>
  %t:2 = graph.call "aten.topk.default"(%l) {k = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>) -> (!graph.tensor<["s", 1], f32>, !graph.tensor<["s", 1], si64>)
  %z = graph.call "aten.zeros_like.default"(%l) {self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 2], f32>
  %g = graph.call "aten.scatter.src"(%z, %t#1, %t#0) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, src = #graph.operand<2>} in "" : (!graph.tensor<["s", 2], f32>, !graph.tensor<["s", 1], si64>, !graph.tensor<["s", 1], f32>) -> !graph.tensor<["s", 2], f32>
  %g0 = graph.call "aten.slice.Tensor"(%g) {dim = 1 : i64, end = 1 : i64, self = #graph.operand<0>, start = 0 : i64} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 1], f32>
  %g1 = graph.call "aten.slice.Tensor"(%g) {dim = 1 : i64, end = 2 : i64, self = #graph.operand<0>, start = 1 : i64} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 1], f32>
  %ya = graph.call "aten.linear.default"(%x, %a) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<[3, 3], f32>) -> !graph.tensor<["s", 3], f32>
  %yl = graph.call "aten.linear.default"(%x, %b) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<[3, 3], f32>) -> !graph.tensor<["s", 3], f32>
  %yb = graph.call "aten.relu.default"(%yl) {self = #graph.operand<0>} in "" : (!graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %pa = graph.call "aten.mul.Tensor"(%g0, %ya) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 1], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %pb = graph.call "aten.mul.Tensor"(%g1, %yb) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 1], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %y = graph.call "aten.add.Tensor"(%pa, %pb) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 3], f32>, !graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  graph.return %y : !graph.tensor<["s", 3], f32>
}
