// RUN: not ctxc-opt %s --split-input-file --graph-raise 2>&1 | FileCheck %s

// Of several results the first one counts, and it is made of the embeddings alone.
// CHECK: the program's first of 2 results is made without its layers; expected the logits, which are made of what the last layer gives, in front of the other results
graph.program @first tokens "s" {
  %ids = graph.input "input_ids" as "token" : !graph.tensor<[1, "s"], si64>
  %table = graph.stored "embed.weight" : !graph.tensor<[9, 4], f32>
  %x = graph.call "aten.embedding.default"(%table, %ids) {indices = #graph.operand<1>, weight = #graph.operand<0>} in "embed" : (!graph.tensor<[9, 4], f32>, !graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s", 4], f32>
  %y = graph.call "aten.cumsum.default"(%x) {dim = 1 : i64, self = #graph.operand<0>} in "layers.0" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %x, %y : !graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 4], f32>
}

// -----

// The last token alone.
// CHECK: 'aten.select.int' in head{{.*}} takes some of the tokens, and what is made of these alone is read outside of its layer; expected one axis of all tokens: where the head is computed for the last token alone, as in head(x[:, -1]), export it for every token, as in head(x)
graph.program @last tokens "s" {
  %ids = graph.input "input_ids" as "token" : !graph.tensor<[1, "s"], si64>
  %table = graph.stored "embed.weight" : !graph.tensor<[9, 4], f32>
  %x = graph.call "aten.embedding.default"(%table, %ids) {indices = #graph.operand<1>, weight = #graph.operand<0>} in "embed" : (!graph.tensor<[9, 4], f32>, !graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s", 4], f32>
  %y = graph.call "aten.cumsum.default"(%x) {dim = 1 : i64, self = #graph.operand<0>} in "layers.0" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %z = graph.call "aten.select.int"(%y) {dim = 1 : i64, index = -1 : i64, self = #graph.operand<0>} in "head" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 4], f32>
  %l = graph.call "aten.linear.default"(%z, %table) {input = #graph.operand<0>, weight = #graph.operand<1>} in "head" : (!graph.tensor<[1, 4], f32>, !graph.tensor<[9, 4], f32>) -> !graph.tensor<[1, 9], f32>
  graph.return %l : !graph.tensor<[1, 9], f32>
}
