// RUN: ctxc-opt %s --graph-report-token-axes --verify-diagnostics

// Rules of TokenRules.cpp, one for each kind.
graph.program @rules tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %p = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %w = graph.stored "w" : !graph.tensor<[4, 4], f32>
  // What depends on positions alone gets no remark.
  %c = graph.call "aten.cos.default"(%p) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], f32>
  // expected-remark @below {{each token by itself}}
  %a = graph.call "aten.relu.default"(%x) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{no rule says how it treats tokens}}
  %b = graph.call "other.relu.default"(%x) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{joins tokens}}
  %d = graph.call "aten.softmax.int"(%x) {dim = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{each token by itself}}
  %e = graph.call "aten.softmax.int"(%x) {dim = -1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{makes a value of several tokens}}
  %f = graph.call "aten.sum.dim_IntList"(%x) {dim = [1], keepdim = true, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 1, 4], f32>
  // expected-remark @below {{reads a value of several tokens}}
  %g = graph.call "aten.add.Tensor"(%x, %f) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, 1, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // As many entries before the tokens' axis: a token's numbers stay together.
  // expected-remark @below {{each token by itself}}
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<["s", 2, 2], f32>
  // The same sizes as a transposition, and other numbers.
  // expected-remark @below {{joins tokens}}
  %i = graph.call "aten.view.default"(%h) {self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 2], f32>) -> !graph.tensor<[2, "s", 2], f32>
  // expected-remark @below {{each token by itself}}
  %j = graph.call "aten.transpose.int"(%h) {dim0 = 0 : i64, dim1 = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 2], f32>) -> !graph.tensor<[2, "s", 2], f32>
  // expected-remark @below {{each token by itself}}
  %k = graph.call "aten.linear.default"(%x, %w) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{makes a value of several tokens}}
  %l = graph.call "aten.matmul.default"(%h, %j) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 2], f32>, !graph.tensor<[2, "s", 2], f32>) -> !graph.tensor<["s", "s"], f32>
  // expected-remark @below {{joins tokens}}
  %m = graph.call "aten.slice.Tensor"(%x) {dim = 1 : i64, self = #graph.operand<0>, step = -1 : i64} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{joins tokens}}
  %n = graph.call "aten.cumsum.default"(%x) {dim = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // Merged axes are no axis of tokens.
  // expected-remark @below {{makes a value of several tokens}}
  %o = graph.call "aten.view.default"(%h) {self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 2], f32>) -> !graph.tensor<["Mul(2, s)", 2], f32>
  graph.return %x : !graph.tensor<[1, "s", 4], f32>
}
