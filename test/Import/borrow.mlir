// RUN: ctxc-opt %s --graph-raise | FileCheck %s
// RUN: sed 's/fixed is dense<1.0> : tensor<f64> //' %s | not ctxc-opt --graph-raise 2>&1 | FileCheck --check-prefix=TRAINED %s

// The second layer reads which tokens the first one selected. That is no value of one token, so that the second computes it
// for itself, from what the first scores with.
// CHECK: xf.block @layers(%[[X:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: %[[Q:.*]] = xf.linear %{{.*}} * %[[X]]
// CHECK: %[[Y:.*]] = xf.add %[[X]]
// CHECK: xf.yield %[[Q]], %[[Q]], %[[Y]]
// CHECK: xf.block @layers_2(%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %[[C:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK: xf.contextual "itself"(%[[A]], %[[B]], %[[C]]) {graph.body = @"0_of_program"
// CHECK-LABEL: xf.model
// CHECK: %[[FIRST:.*]]:3 = xf.layer @layers(
// CHECK: xf.layer @layers_2(%[[FIRST]]#2, %[[FIRST]]#1, %[[FIRST]]#0)

// Where a parameter takes part, a patch of the first layer could change it.
// TRAINED: layer 'model.layers.0' gives others a value of several tokens; expected one axis of tokens, or none of its parameters behind it
graph.program @selected tokens "s" {
  %i = graph.input "input_ids" as "token" : !graph.tensor<[1, "s"], si64>
  %e = graph.stored "embed" : !graph.tensor<[8, 4], f32>
  %w = graph.stored "model.layers.0.q" : !graph.tensor<[4, 4], f32>
  %h = graph.stored "half" fixed is dense<1.0> : tensor<f64> : !graph.tensor<[], f32>
  %x = graph.call "aten.embedding.default"(%e, %i) {indices = #graph.operand<1>, weight = #graph.operand<0>} in "model.embed" : (!graph.tensor<[8, 4], f32>, !graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s", 4], f32>
  %q = graph.call "aten.linear.default"(%x, %w) {input = #graph.operand<0>, weight = #graph.operand<1>} in "model.layers.0" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %t = graph.call "aten.transpose.int"(%q) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "model.layers.0" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 4, "s"], f32>
  %m = graph.call "aten.matmul.default"(%q, %t) {other = #graph.operand<1>, self = #graph.operand<0>} in "model.layers.0" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, 4, "s"], f32>) -> !graph.tensor<[1, "s", "s"], f32>
  %n = graph.call "aten.mul.Tensor"(%m, %h) {other = #graph.operand<1>, self = #graph.operand<0>} in "model.layers.0" : (!graph.tensor<[1, "s", "s"], f32>, !graph.tensor<[], f32>) -> !graph.tensor<[1, "s", "s"], f32>
  %a = graph.call "aten.matmul.default"(%n, %x) {other = #graph.operand<1>, self = #graph.operand<0>} in "model.layers.0" : (!graph.tensor<[1, "s", "s"], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %y = graph.call "aten.add.Tensor"(%x, %a) {other = #graph.operand<1>, self = #graph.operand<0>} in "model.layers.0" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %b = graph.call "aten.matmul.default"(%n, %y) {other = #graph.operand<1>, self = #graph.operand<0>} in "model.layers.1" : (!graph.tensor<[1, "s", "s"], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %z = graph.call "aten.add.Tensor"(%y, %b) {other = #graph.operand<1>, self = #graph.operand<0>} in "model.layers.1" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %z : !graph.tensor<[1, "s", 4], f32>
}
