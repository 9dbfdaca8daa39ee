// RUN: ctxc-opt %s --split-input-file --graph-raise | FileCheck %s

// A factor of the position, which grows with each fourth one: 1 + 0.1 log(1 + ⌊p / 4⌋).
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>)
// CHECK: %[[P:.*]] = xf.position plus 4 over 4 : tensor<1xf32>
// CHECK: %[[L:.*]] = xf.activation log %[[P]]
// CHECK: %[[T:.*]] = xf.times %[[L]] by 1.000000e-01
// CHECK: xf.mul %[[X]], %{{.*}} : tensor<8xf32>, tensor<1xf32>
// CHECK-NOT: graph.opaque
graph.program @scaled tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %ids = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %q = graph.call "aten.div.Tensor"(%ids) {self = #graph.operand<0>, other = 4 : i64} in "m" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], f32>
  %f = graph.call "aten.floor.default"(%q) {self = #graph.operand<0>} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %o = graph.call "aten.add.Tensor"(%f) {self = #graph.operand<0>, other = 1 : i64} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %l = graph.call "aten.log.default"(%o) {self = #graph.operand<0>} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %m = graph.call "aten.mul.Tensor"(%l) {self = #graph.operand<0>, other = 0.1 : f64} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %a = graph.call "aten.add.Tensor"(%m) {self = #graph.operand<0>, other = 1 : i64} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %u = graph.call "aten.unsqueeze.default"(%a) {self = #graph.operand<0>, dim = -1 : i64} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s", 1], f32>
  %y = graph.call "aten.mul.Tensor"(%x, %u) {self = #graph.operand<0>, other = #graph.operand<1>} in "m" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}

// -----

// A logarithm that is not of a positive number has another meaning in xf where it is none in PyTorch.
// CHECK-LABEL: xf.block @model(
// CHECK: graph.opaque
graph.program @undefined tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %ids = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %f = graph.call "aten._to_copy.default"(%ids) {self = #graph.operand<0>, dtype = 7 : i64} in "m" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], f32>
  %l = graph.call "aten.log.default"(%f) {self = #graph.operand<0>} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %u = graph.call "aten.unsqueeze.default"(%l) {self = #graph.operand<0>, dim = -1 : i64} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s", 1], f32>
  %y = graph.call "aten.mul.Tensor"(%x, %u) {self = #graph.operand<0>, other = #graph.operand<1>} in "m" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}

// -----

// What reads a function that xf does not have is not raised either.
// CHECK-LABEL: xf.block @model(
// CHECK: graph.opaque
graph.program @behind tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %ids = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %f = graph.call "aten._to_copy.default"(%ids) {self = #graph.operand<0>, dtype = 7 : i64} in "m" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], f32>
  %c = graph.call "aten.ceil.default"(%f) {self = #graph.operand<0>} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %e = graph.call "aten.exp.default"(%c) {self = #graph.operand<0>} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  %u = graph.call "aten.unsqueeze.default"(%e) {self = #graph.operand<0>, dim = -1 : i64} in "m" : (!graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s", 1], f32>
  %y = graph.call "aten.mul.Tensor"(%x, %u) {self = #graph.operand<0>, other = #graph.operand<1>} in "m" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}
