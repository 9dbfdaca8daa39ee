// RUN: ctxc-opt %s --graph-recompose --verify-diagnostics | FileCheck %s
// A mask of the k = min(K, t) tokens with the largest scores is that of all, and K the limit of positions; other choices stay.

!scores = !graph.tensor<[1, "t", "t"], f32>
!flags = !graph.tensor<[1, "t", "t"], i1>
!chosen = !graph.tensor<[1, "t", "Min(8, t)"], si64>
!narrow = !graph.tensor<[1, "t", "Min(8, t)"], si32>
!values = !graph.tensor<[1, "t", "Min(8, t)"], f32>

// CHECK-LABEL: graph.program @two tokens "t" positions 4
graph.program @two tokens "t" {
  %scores = graph.input "scores" as "activation" : !scores
  %ones = graph.call "aten.new_ones.default"() {dtype = 12 : i64, size = [1, "t", "t"]} in "" : () -> !flags
  %largest:2 = graph.call "aten.topk.default"(%scores) {k = "Min(8, t)", self = #graph.operand<0>} in "" : (!scores) -> (!values, !chosen)
  %cast = graph.call "aten._to_copy.default"(%largest#1) {dtype = 4 : i64, self = #graph.operand<0>} in "" : (!chosen) -> !narrow
  %back = graph.call "aten._to_copy.default"(%cast) {dtype = 5 : i64, self = #graph.operand<0>} in "" : (!narrow) -> !chosen
  // CHECK: [[FIRST:%.*]] = graph.call "aten.full.default"() {fill_value = false, size = [1, "t", "t"]}
  %first = graph.call "aten.scatter.value"(%ones, %back) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = false} in "" : (!flags, !chosen) -> !flags
  // expected-remark @+1 {{keeps the 4 tokens with the largest scores: the program is read for at most 4 tokens}}
  %fewer:2 = graph.call "aten.topk.default"(%scores) {dim = 2 : i64, k = "Min(4, t)", self = #graph.operand<0>} in "" : (!scores) -> (!graph.tensor<[1, "t", "Min(4, t)"], f32>, !graph.tensor<[1, "t", "Min(4, t)"], si64>)
  // CHECK: [[SECOND:%.*]] = graph.call "aten.full.default"() {fill_value = 0.000000e+00 : f64, size = [1, "t", "t"]}
  %second = graph.call "aten.scatter.value"(%scores, %fewer#1) {dim = 2 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = 0.0 : f64} in "" : (!scores, !graph.tensor<[1, "t", "Min(4, t)"], si64>) -> !scores
  // CHECK: graph.return [[FIRST]], [[SECOND]]
  graph.return %first, %second : !flags, !scores
}

// CHECK-LABEL: graph.program @others tokens "t" {
graph.program @others tokens "t" {
  %scores = graph.input "scores" as "activation" : !scores
  %ones = graph.call "aten.new_ones.default"() {dtype = 12 : i64, size = [1, "t", "t"]} in "" : () -> !flags
  // Along another axis than it was chosen.
  %columns:2 = graph.call "aten.topk.default"(%scores) {dim = 1 : i64, k = "Min(8, t)", self = #graph.operand<0>} in "" : (!scores) -> (!graph.tensor<[1, "Min(8, t)", "t"], f32>, !graph.tensor<[1, "Min(8, t)", "t"], si64>)
  // CHECK: graph.call "aten.scatter.value"
  %a = graph.call "aten.scatter.value"(%ones, %columns#1) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = false} in "" : (!flags, !graph.tensor<[1, "Min(8, t)", "t"], si64>) -> !flags
  // As many as are known, which need not be all.
  %eight:2 = graph.call "aten.topk.default"(%scores) {k = 8 : i64, self = #graph.operand<0>} in "" : (!scores) -> (!graph.tensor<[1, "t", 8], f32>, !graph.tensor<[1, "t", 8], si64>)
  // CHECK: graph.call "aten.scatter.value"
  %b = graph.call "aten.scatter.value"(%ones, %eight#1) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = false} in "" : (!flags, !graph.tensor<[1, "t", 8], si64>) -> !flags
  // The least of another number than that of the tokens.
  %less:2 = graph.call "aten.topk.default"(%scores) {k = "Min(8, Add(t, -1))", self = #graph.operand<0>} in "" : (!scores) -> (!graph.tensor<[1, "t", "Min(8, Add(t, -1))"], f32>, !graph.tensor<[1, "t", "Min(8, Add(t, -1))"], si64>)
  // CHECK: graph.call "aten.scatter.value"
  %c = graph.call "aten.scatter.value"(%ones, %less#1) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = false} in "" : (!flags, !graph.tensor<[1, "t", "Min(8, Add(t, -1))"], si64>) -> !flags
  // Of a wider mask.
  %largest:2 = graph.call "aten.topk.default"(%scores) {k = "Min(8, t)", self = #graph.operand<0>} in "" : (!scores) -> (!values, !chosen)
  %wide = graph.call "aten.new_ones.default"() {dtype = 12 : i64, size = [1, "t", "Add(t, 1)"]} in "" : () -> !graph.tensor<[1, "t", "Add(t, 1)"], i1>
  // CHECK: graph.call "aten.scatter.value"
  %d = graph.call "aten.scatter.value"(%wide, %largest#1) {dim = -1 : i64, index = #graph.operand<1>, self = #graph.operand<0>, value = false} in "" : (!graph.tensor<[1, "t", "Add(t, 1)"], i1>, !chosen) -> !graph.tensor<[1, "t", "Add(t, 1)"], i1>
  graph.return %a, %b, %c, %d : !flags, !flags, !flags, !graph.tensor<[1, "t", "Add(t, 1)"], i1>
}
