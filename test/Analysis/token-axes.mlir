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
  // Rows of a table by a token's own indices.
  %r = graph.input "ids" as "token" : !graph.tensor<[1, "s", 2], si64>
  // expected-remark @below {{each token by itself}}
  %q = graph.call "aten.index.Tensor"(%w, %r) {indices = [#graph.operand<1>], self = #graph.operand<0>} in "" : (!graph.tensor<[4, 4], f32>, !graph.tensor<[1, "s", 2], si64>) -> !graph.tensor<[1, "s", 2, 4], f32>
  // Indices that count tokens take entries of others.
  %t = graph.call "aten.arange.default"() {end = 4 : i64} in "" : () -> !graph.tensor<["s"], si64>
  // expected-remark @below {{no rule says how it treats tokens}}
  %u = graph.call "aten.index.Tensor"(%h, %t) {indices = [#graph.operand<1>], self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 2], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<["s", 2, 2], f32>
  // expected-remark @below {{each token by itself}}
  %v = graph.call "aten.stack.default"(%h, %h) {dim = 0 : i64, tensors = [#graph.operand<0>, #graph.operand<1>]} in "" : (!graph.tensor<["s", 2, 2], f32>, !graph.tensor<["s", 2, 2], f32>) -> !graph.tensor<[2, "s", 2, 2], f32>
  // expected-remark @below {{each token by itself}}
  %y = graph.call "aten.constant_pad_nd.default"(%x) {pad = [0, 1], self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 5], f32>
  // The same length, and each token is the one before.
  // expected-remark @below {{joins tokens}}
  %z = graph.call "aten.constant_pad_nd.default"(%x) {pad = [0, 0, 1, -1], self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{joins tokens}}
  %aa = graph.call "aten.roll.default"(%x) {dims = [1], self = #graph.operand<0>, shifts = [1]} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{each token by itself}}
  %ab = graph.call "aten.einsum.default"(%x, %w) {equation = "bsd,de->bse", tensors = [#graph.operand<0>, #graph.operand<1>]} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // The tokens' letter of the result is another.
  // expected-remark @below {{joins tokens}}
  %ac = graph.call "aten.einsum.default"(%h, %c) {equation = "ijk,bs->bs", tensors = [#graph.operand<0>, #graph.operand<1>]} in "" : (!graph.tensor<["s", 2, 2], f32>, !graph.tensor<[1, "s"], f32>) -> !graph.tensor<[1, "s"], f32>
  // expected-remark @below {{each token by itself}}
  %ad = graph.call "aten.scatter.value"(%x, %r) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = 1.0 : f64} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 2], si64>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{joins tokens}}
  %ae = graph.call "aten.scatter.value"(%x, %r) {dim = 1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = 1.0 : f64} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 2], si64>) -> !graph.tensor<[1, "s", 4], f32>
  // The less of two entries.
  // expected-remark @below {{each token by itself}}
  %ah = graph.call "aten.min.other"(%x) {other = #graph.operand<0>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // expected-remark @below {{each token by itself}}
  %ai = graph.call "aten.concat.default"(%x) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<0>]} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 8], f32>
  // The largest entry along an axis, and where it is.
  // expected-remark @below {{each token by itself}}
  %aj:2 = graph.call "aten.max.dim"(%x) {dim = -1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> (!graph.tensor<[1, "s"], f32>, !graph.tensor<[1, "s"], si64>)
  // expected-remark @below {{makes a value of several tokens}}
  %ak:2 = graph.call "aten.max.dim"(%z) {dim = 1 : i64, keepdim = true, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> (!graph.tensor<[1, 1, 4], f32>, !graph.tensor<[1, 1, 4], si64>)
  graph.return %x : !graph.tensor<[1, "s", 4], f32>
}
