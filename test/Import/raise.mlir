// RUN: ctxc-opt %s --split-input-file --graph-raise | FileCheck %s

// The example of Passes.td.
// CHECK-LABEL: xf.block @model
// CHECK: %[[Y:.*]] = xf.activation relu %
// CHECK: xf.yield %[[Y]] : tensor<4xf32>
graph.program @model tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %y = graph.call "aten.relu.default"(%x) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}

// -----

// A norm that is written out, and a scale stored as its distance from one.
// CHECK-LABEL: xf.block @model
// CHECK-NEXT: %[[N:.*]] = xf.normalize rms %{{.*}} eps 9.99{{.*}}E-7 : tensor<4xf32>
// CHECK-NEXT: %[[W:.*]] = xf.param "w" : tensor<4xf32>
// CHECK-NEXT: %[[S:.*]] = xf.scale %[[N]] by %[[W]] offset 1.0
// CHECK-NEXT: xf.yield %[[S]]
graph.program @norm tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %w = graph.stored "w" : !graph.tensor<[4], f32>
  %q = graph.call "aten.pow.Tensor_Scalar"(%x) {exponent = 2 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %m = graph.call "aten.mean.dim"(%q) {dim = [-1], keepdim = true, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 1], f32>
  %e = graph.call "aten.add.Tensor"(%m) {other = 1.0e-6 : f64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s", 1], f32>
  %r = graph.call "aten.rsqrt.default"(%e) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s", 1], f32>
  %n = graph.call "aten.mul.Tensor"(%x, %r) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %o = graph.call "aten.add.Tensor"(%w) {other = 1.0 : f64, self = #graph.operand<0>} in "" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4], f32>
  %y = graph.call "aten.mul.Tensor"(%n, %o) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}

// -----

// Stored numbers: one without an axis, and an entry of a matrix. Each is the scale of a one, so that it may be patched.
// CHECK-LABEL: xf.block @model
// CHECK: %[[A:.*]] = xf.param "a" : tensor<1xf32>
// CHECK: %[[ONE:.*]] = xf.setting "one_1" : tensor<1xf32>
// CHECK: %[[S:.*]] = xf.scale %[[ONE]] by %[[A]] : tensor<1xf32>, tensor<1xf32>
// CHECK: %[[Y:.*]] = xf.mul %{{.*}}, %[[S]] : tensor<4xf32>, tensor<1xf32>
// CHECK: %[[B:.*]] = xf.param "b" : tensor<2x3xf32>
// CHECK: %[[ALL:.*]] = xf.scale %{{.*}} by %[[B]] : tensor<2x3xf32>, tensor<2x3xf32>
// CHECK: %[[F:.*]] = xf.reshape %[[ALL]] : tensor<2x3xf32> to tensor<6xf32>
// CHECK: %[[E:.*]] = xf.slice %[[F]] from 4 : tensor<6xf32> to tensor<1xf32>
// CHECK: %[[Z:.*]] = xf.mul %[[Y]], %[[E]] : tensor<4xf32>, tensor<1xf32>
// CHECK: xf.yield %[[Z]]
graph.program @numbers tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %a = graph.stored "a" : !graph.tensor<[], f32>
  %b = graph.stored "b" : !graph.tensor<[2, 3], f32>
  %y = graph.call "aten.mul.Tensor"(%a, %x) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %c = graph.call "aten.select.int"(%b) {dim = 1 : i64, index = -2 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[2, 3], f32>) -> !graph.tensor<[2], f32>
  %d = graph.call "aten.select.int"(%c) {dim = 0 : i64, index = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[2], f32>) -> !graph.tensor<[], f32>
  %z = graph.call "aten.mul.Tensor"(%y, %d) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %z : !graph.tensor<[1, "s", 4], f32>
}

// -----

// What joins tokens is contextual, and reads its parameters. Of a sum over tokens it is not shown
// that its result varies with others, so that nothing is rejected for it.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[C:.*]] = xf.contextual "mix"(%[[X]], %{{.*}}) {graph.body = @mix_of_program, graph.why = "aten.cumsum.default"} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
// CHECK: %[[O:.*]] = graph.opaque "aten.cumsum.default" why "it is not shown that it reads other tokens"(%[[C]]) {graph.body = @same_of_program}
// CHECK: xf.add %[[X]], %[[O]]
// What is mixed is kept beside it, by which it can be run.
// CHECK: graph.function @mix_of_program tokens "s" axes [1, -1] result_axis 1 counted {
// CHECK-NEXT: ^bb0(%[[A:.*]]: !graph.tensor<[1, "s", 4], f32>, %[[W:.*]]: !graph.tensor<[4, 4], f32>):
// CHECK-NEXT: %[[V:.*]] = graph.call "aten.linear.default"(%[[A]], %[[W]])
// CHECK-NEXT: %[[S:.*]] = graph.call "aten.cumsum.default"(%[[V]])
// CHECK-NEXT: graph.return %[[S]]
// CHECK: graph.function @same_of_program
graph.program @mixed tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %w = graph.stored "w" : !graph.tensor<[4, 4], f32>
  %v = graph.call "aten.linear.default"(%x, %w) {input = #graph.operand<0>, weight = #graph.operand<1>} in "mix" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %c = graph.call "aten.cumsum.default"(%v) {dim = 1 : i64, self = #graph.operand<0>} in "mix" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %y = graph.call "aten.add.Tensor"(%x, %c) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}

// -----

// Two layers of one structure share a block; a matrix stored as (in, out) is transposed.
// CHECK-LABEL: xf.block @layers(
// CHECK: xf.linear %{{.*}} * %{{.*}} transposed
// CHECK-NOT: xf.block
// CHECK: xf.model @program
// CHECK: xf.embed
// CHECK: xf.layer @layers(%{{.*}}) at "layers.0."
// CHECK: xf.layer @layers(%{{.*}}) at "layers.1."
graph.program @layers tokens "s" {
  %ids = graph.input "input_ids" as "token" : !graph.tensor<[1, "s"], si64>
  %E = graph.stored "embed" : !graph.tensor<[8, 4], f32>
  %a = graph.stored "layers.0.w" : !graph.tensor<[4, 4], f32>
  %b = graph.stored "layers.1.w" : !graph.tensor<[4, 4], f32>
  %x = graph.call "aten.embedding.default"(%E, %ids) {indices = #graph.operand<1>, weight = #graph.operand<0>} in "" : (!graph.tensor<[8, 4], f32>, !graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s", 4], f32>
  %p = graph.call "aten.cumsum.default"(%x) {dim = 1 : i64, self = #graph.operand<0>} in "layers.0" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %q = graph.call "aten.matmul.default"(%p, %a) {other = #graph.operand<1>, self = #graph.operand<0>} in "layers.0" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %r = graph.call "aten.cumsum.default"(%q) {dim = 1 : i64, self = #graph.operand<0>} in "layers.1" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %t = graph.call "aten.matmul.default"(%r, %b) {other = #graph.operand<1>, self = #graph.operand<0>} in "layers.1" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[4, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %t : !graph.tensor<[1, "s", 4], f32>
}

// -----

// Two experts of three, whose weights are divided by their sum. xf has the selected in another order, which
// nothing here depends on.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[S:.*]] = xf.softmax
// CHECK: %[[I:.*]] = xf.top_k %[[S]] k 2
// CHECK: %[[P:.*]] = xf.gather %[[S]][%[[I]]]
// CHECK: %[[W:.*]] = xf.normalize sum %[[P]]
// CHECK: %[[E:.*]] = xf.expert_linear %{{.*}}[%[[I]]] * %{{.*}} : tensor<3x4x4xf32>, tensor<2xi32>, tensor<4xf32>
// CHECK: %[[C:.*]] = xf.combine %{{.*}}, %{{.*}} : tensor<2xf32>, tensor<2x4xf32>
// CHECK: xf.add %[[X]], %[[C]]
graph.program @mixture tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<["s", 4], f32>
  %r = graph.stored "router" : !graph.tensor<[3, 4], f32>
  %b = graph.stored "bank" : !graph.tensor<[3, 4, 4], f32>
  %l = graph.call "aten.linear.default"(%x, %r) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<["s", 4], f32>, !graph.tensor<[3, 4], f32>) -> !graph.tensor<["s", 3], f32>
  %p = graph.call "aten.softmax.int"(%l) {dim = -1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 3], f32>) -> !graph.tensor<["s", 3], f32>
  %t:2 = graph.call "aten.topk.default"(%p) {k = 2 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 3], f32>) -> (!graph.tensor<["s", 2], f32>, !graph.tensor<["s", 2], si64>)
  %n = graph.call "aten.sum.dim_IntList"(%t#0) {dim = [-1], keepdim = true, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 1], f32>
  %w = graph.call "aten.div.Tensor"(%t#0, %n) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>, !graph.tensor<["s", 1], f32>) -> !graph.tensor<["s", 2], f32>
  %i = graph.call "aten.index.Tensor"(%b, %t#1) {indices = [#graph.operand<1>], self = #graph.operand<0>} in "" : (!graph.tensor<[3, 4, 4], f32>, !graph.tensor<["s", 2], si64>) -> !graph.tensor<["s", 2, 4, 4], f32>
  %u = graph.call "aten.unsqueeze.default"(%x) {dim = 1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 4], f32>) -> !graph.tensor<["s", 1, 4], f32>
  %c = graph.call "aten.unsqueeze.default"(%u) {dim = -1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 1, 4], f32>) -> !graph.tensor<["s", 1, 4, 1], f32>
  %m = graph.call "aten.matmul.default"(%i, %c) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 4, 4], f32>, !graph.tensor<["s", 1, 4, 1], f32>) -> !graph.tensor<["s", 2, 4, 1], f32>
  %e = graph.call "aten.squeeze.dim"(%m) {dim = -1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 4, 1], f32>) -> !graph.tensor<["s", 2, 4], f32>
  %v = graph.call "aten.unsqueeze.default"(%w) {dim = -1 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 2, 1], f32>
  %f = graph.call "aten.mul.Tensor"(%e, %v) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 4], f32>, !graph.tensor<["s", 2, 1], f32>) -> !graph.tensor<["s", 2, 4], f32>
  %s = graph.call "aten.sum.dim_IntList"(%f) {dim = [1], self = #graph.operand<0>} in "" : (!graph.tensor<["s", 2, 4], f32>) -> !graph.tensor<["s", 4], f32>
  %y = graph.call "aten.add.Tensor"(%x, %s) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 4], f32>, !graph.tensor<["s", 4], f32>) -> !graph.tensor<["s", 4], f32>
  graph.return %y : !graph.tensor<["s", 4], f32>
}

// -----

// The largest entry alone: here the order of what is selected matters, and xf has another.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.top_k
// CHECK: graph.opaque "aten.topk.default"
graph.program @largest tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<["s", 4], f32>
  %t:2 = graph.call "aten.topk.default"(%x) {k = 2 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 4], f32>) -> (!graph.tensor<["s", 2], f32>, !graph.tensor<["s", 2], si64>)
  %y = graph.call "aten.slice.Tensor"(%t#0) {dim = 1 : i64, end = 1 : i64, self = #graph.operand<0>, start = 0 : i64} in "" : (!graph.tensor<["s", 2], f32>) -> !graph.tensor<["s", 1], f32>
  graph.return %y : !graph.tensor<["s", 1], f32>
}

// -----

// A channel shuffle, and a permutation of three axes of a token.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<6xf32>)
// CHECK-NEXT: %[[A:.*]] = xf.reshape %[[X]] : tensor<6xf32> to tensor<2x3xf32>
// CHECK-NEXT: %[[B:.*]] = xf.transpose %[[A]] by [1, 0] : tensor<2x3xf32>
// CHECK-NEXT: xf.reshape %[[B]] : tensor<3x2xf32> to tensor<6xf32>
graph.program @shuffle tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 6], f32>
  %g = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = [1, 4, 2, 3]} in "" : (!graph.tensor<[1, "s", 6], f32>) -> !graph.tensor<[1, "s", 2, 3], f32>
  %t = graph.call "aten.transpose.int"(%g) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 2, 3], f32>) -> !graph.tensor<[1, "s", 3, 2], f32>
  %y = graph.call "aten.reshape.default"(%t) {self = #graph.operand<0>, shape = [1, 4, 6]} in "" : (!graph.tensor<[1, "s", 3, 2], f32>) -> !graph.tensor<[1, "s", 6], f32>
  graph.return %y : !graph.tensor<[1, "s", 6], f32>
}

// -----

// CHECK-LABEL: xf.block @model(
// CHECK: xf.transpose %{{.*}} by [2, 1, 0] : tensor<2x3x2xf32>
graph.program @reversed tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 12], f32>
  %g = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = [1, 4, 2, 3, 2]} in "" : (!graph.tensor<[1, "s", 12], f32>) -> !graph.tensor<[1, "s", 2, 3, 2], f32>
  %t = graph.call "aten.permute.default"(%g) {dims = [0, 1, 4, 3, 2], self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 2, 3, 2], f32>) -> !graph.tensor<[1, "s", 2, 3, 2], f32>
  %y = graph.call "aten.reshape.default"(%t) {self = #graph.operand<0>, shape = [1, 4, 12]} in "" : (!graph.tensor<[1, "s", 2, 3, 2], f32>) -> !graph.tensor<[1, "s", 12], f32>
  graph.return %y : !graph.tensor<[1, "s", 12], f32>
}

// -----

// A gate of each head: for each of its entries once.
// CHECK-LABEL: xf.block @model
// CHECK: xf.concat %[[G:[a-z0-9_]+]]{{(, %[a-z0-9_]+){127} }}along 1
// CHECK-NOT: xf.contextual
graph.program @gate tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 2, 128], f32>
  %g = graph.call "aten.slice.Tensor"(%x) {dim = 3 : i64, end = 1 : i64, self = #graph.operand<0>, start = 0 : i64} in "" : (!graph.tensor<[1, "s", 2, 128], f32>) -> !graph.tensor<[1, "s", 2, 1], f32>
  %y = graph.call "aten.mul.Tensor"(%x, %g) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 2, 128], f32>, !graph.tensor<[1, "s", 2, 1], f32>) -> !graph.tensor<[1, "s", 2, 128], f32>
  graph.return %y : !graph.tensor<[1, "s", 2, 128], f32>
}

// -----

// Rows of tables by the token's position: a slice, also of a table for one sequence, and by ids that a buffer has.
// CHECK-LABEL: xf.block @model
// CHECK-DAG: %[[P:.*]] = xf.position plus 2 : tensor<i32>
// CHECK-DAG: %[[T:.*]] = xf.param "table" : tensor<9x4xf32>
// CHECK-DAG: %[[A:.*]] = xf.embed %[[T]][%[[P]]]
// CHECK-DAG: %[[Q:.*]] = xf.position plus 1 : tensor<i32>
// CHECK-DAG: %[[B:.*]] = xf.embed %{{.*}}[%[[Q]]]
// CHECK-NOT: graph.opaque
graph.program @positions tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %table = graph.stored "table" : !graph.tensor<[1, 9, 4], f32>
  %other = graph.stored "other" fixed : !graph.tensor<[9, 4], f32>
  %ids = graph.stored "ids" fixed is dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf64> : !graph.tensor<[8], si64>
  %a = graph.call "aten.slice.Tensor"(%table) {dim = 1 : i64, end = "Add(2, s)", self = #graph.operand<0>, start = 2 : i64} in "" : (!graph.tensor<[1, 9, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %y = graph.call "aten.add.Tensor"(%x, %a) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %p = graph.call "aten.slice.Tensor"(%ids) {dim = 0 : i64, end = "s", self = #graph.operand<0>, start = 1 : i64} in "" : (!graph.tensor<[8], si64>) -> !graph.tensor<["s"], si64>
  %b = graph.call "aten.index.Tensor"(%other, %p) {indices = [#graph.operand<1>], self = #graph.operand<0>} in "" : (!graph.tensor<[9, 4], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<["s", 4], f32>
  %z = graph.call "aten.add.Tensor"(%y, %b) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<["s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %z : !graph.tensor<[1, "s", 4], f32>
}

// -----

// What is made of positions otherwise is never one row for all tokens.
// CHECK-LABEL: xf.block @model
// CHECK: graph.opaque "aten.mul.Tensor" why "it is made of stored tensors alone"
graph.program @halved tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %table = graph.stored "table" : !graph.tensor<[9, 4], f32>
  %a = graph.call "aten.slice.Tensor"(%table) {dim = 0 : i64, end = "s", self = #graph.operand<0>, start = 0 : i64} in "" : (!graph.tensor<[9, 4], f32>) -> !graph.tensor<["s", 4], f32>
  %b = graph.call "aten.mul.Tensor"(%a) {other = 5.0e-01 : f64, self = #graph.operand<0>} in "" : (!graph.tensor<["s", 4], f32>) -> !graph.tensor<["s", 4], f32>
  %y = graph.call "aten.add.Tensor"(%x, %b) {other = #graph.operand<1>, self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<["s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}

// -----

// Rows with weights: a row of weights times them, and a sum of products that keeps axes of one entry.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[Y:.*]] = xf.reshape %{{.*}} : tensor<8xf32> to tensor<2x4xf32>
// CHECK: xf.combine %{{.*}}, %[[Y]] : tensor<2xf32>, tensor<2x4xf32>
// CHECK: %[[ROWS:.*]] = xf.reshape %{{.*}} : tensor<2x1x4xf32> to tensor<2x4xf32>
// CHECK: xf.combine %{{.*}}, %[[ROWS]] : tensor<2xf32>, tensor<2x4xf32>
// CHECK-NOT: graph.opaque
graph.program @weights tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %u = graph.stored "u" : !graph.tensor<[8, 4], f32>
  %v = graph.stored "v" : !graph.tensor<[2, 4], f32>
  %l = graph.call "aten.linear.default"(%x, %u) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[8, 4], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %y = graph.call "aten.view.default"(%l) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %w = graph.call "aten.linear.default"(%x, %v) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[2, 4], f32>) -> !graph.tensor<[1, "s", 2], f32>
  %row = graph.call "aten.unsqueeze.default"(%w) {self = #graph.operand<0>, dim = 2 : i64} in "" : (!graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<[1, "s", 1, 2], f32>
  %p = graph.call "aten.matmul.default"(%row, %y) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 1, 2], f32>, !graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 1, 4], f32>
  %first = graph.call "aten.view.default"(%p) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 1, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %y1 = graph.call "aten.view.default"(%l) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 1, 4], f32>
  %w1 = graph.call "aten.view.default"(%w) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<[1, "s", 2, 1, 1], f32>
  %m = graph.call "aten.mul.Tensor"(%y1, %w1) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 2, 1, 4], f32>, !graph.tensor<[1, "s", 2, 1, 1], f32>) -> !graph.tensor<[1, "s", 2, 1, 4], f32>
  %sum = graph.call "aten.sum.dim_IntList"(%m) {self = #graph.operand<0>, dim = [2], keepdim = true} in "" : (!graph.tensor<[1, "s", 2, 1, 4], f32>) -> !graph.tensor<[1, "s", 1, 1, 4], f32>
  %second = graph.call "aten.view.default"(%sum) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 1, 1, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %z = graph.call "aten.add.Tensor"(%first, %second) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %z : !graph.tensor<[1, "s", 4], f32>
}

// -----

// One-hot weights: a row of the identity for each selected index, also where it is compared with all. And parts without the axis along which
// they are joined.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[I:.*]] = xf.top_k %{{.*}} k 2
// CHECK: %[[ID:.*]] = xf.setting "each_of_3" : tensor<3x3xf32> = dense<{{\[\[}}1.000000e+00, 0.000000e+00, 0.000000e+00], [0.000000e+00, 1.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 1.000000e+00]]>
// CHECK: %[[H:.*]] = xf.gather %[[ID]][%[[I]]] : tensor<3x3xf32>, tensor<2xi32>
// CHECK: %[[W:.*]] = xf.combine %{{.*}}, %[[H]] : tensor<2xf32>, tensor<2x3xf32>
// CHECK-COUNT-3: xf.mul %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<1xf32>
// CHECK-NOT: graph.opaque
graph.program @onehot tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %r = graph.stored "router" : !graph.tensor<[3, 4], f32>
  %n = graph.stored "n" fixed is dense<[0.0, 1.0, 2.0]> : tensor<3xf64> : !graph.tensor<[3], si32>
  %l = graph.call "aten.linear.default"(%x, %r) {input = #graph.operand<0>, weight = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[3, 4], f32>) -> !graph.tensor<[1, "s", 3], f32>
  %v, %i = graph.call "aten.topk.default"(%l) {self = #graph.operand<0>, k = 2 : i64} in "" : (!graph.tensor<[1, "s", 3], f32>) -> (!graph.tensor<[1, "s", 2], f32>, !graph.tensor<[1, "s", 2], si64>)
  %iv = graph.call "aten.view.default"(%i) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 2], si64>) -> !graph.tensor<["s", 2, 1], si64>
  %e = graph.call "aten.eq.Tensor"(%iv, %n) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<["s", 2, 1], si64>, !graph.tensor<[3], si32>) -> !graph.tensor<["s", 2, 3], i1>
  %h = graph.call "aten._to_copy.default"(%e) {self = #graph.operand<0>, dtype = 7 : i64} in "" : (!graph.tensor<["s", 2, 3], i1>) -> !graph.tensor<["s", 2, 3], f32>
  %vv = graph.call "aten.view.default"(%v) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<["s", 2, 1], f32>
  %m = graph.call "aten.mul.Tensor"(%h, %vv) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<["s", 2, 3], f32>, !graph.tensor<["s", 2, 1], f32>) -> !graph.tensor<["s", 2, 3], f32>
  %w = graph.call "aten.sum.dim_IntList"(%m) {self = #graph.operand<0>, dim = [1], keepdim = false} in "" : (!graph.tensor<["s", 2, 3], f32>) -> !graph.tensor<["s", 3], f32>
  %a = graph.call "aten.relu.default"(%x) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %b = graph.call "aten.tanh.default"(%x) {self = #graph.operand<0>} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %av = graph.call "aten.view.default"(%a) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 1, 4], f32>
  %bv = graph.call "aten.view.default"(%b) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 1, 4], f32>
  %xv = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 1, 4], f32>
  %c = graph.call "aten.cat.default"(%av, %bv, %xv) {tensors = [#graph.operand<0>, #graph.operand<1>, #graph.operand<2>], dim = 2 : i64} in "" : (!graph.tensor<[1, "s", 1, 4], f32>, !graph.tensor<[1, "s", 1, 4], f32>, !graph.tensor<[1, "s", 1, 4], f32>) -> !graph.tensor<[1, "s", 3, 4], f32>
  %wv = graph.call "aten.view.default"(%w) {self = #graph.operand<0>, size = []} in "" : (!graph.tensor<["s", 3], f32>) -> !graph.tensor<[1, "s", 3, 1], f32>
  %p = graph.call "aten.mul.Tensor"(%c, %wv) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 3, 4], f32>, !graph.tensor<[1, "s", 3, 1], f32>) -> !graph.tensor<[1, "s", 3, 4], f32>
  %y = graph.call "aten.sum.dim_IntList"(%p) {self = #graph.operand<0>, dim = [2], keepdim = false} in "" : (!graph.tensor<[1, "s", 3, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}

// -----

// A sum of numbers that no token moves, of which one has no form in xf: it multiplies as any number.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[SUM:.*]] = graph.opaque "aten.add.Tensor" why "it depends on positions and constants alone"
// CHECK: xf.mul %arg0, %[[SUM]]
graph.program @numbers_alone tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %zero = graph.stored "zero" fixed is dense<0.5> : tensor<f64> : !graph.tensor<[], f32>
  %one = graph.stored "one" fixed is dense<2.0> : tensor<f64> : !graph.tensor<[], f32>
  %b:2 = graph.call "aten.broadcast_tensors.default"(%zero, %one) {tensors = [#graph.operand<0>, #graph.operand<1>]} in "" : (!graph.tensor<[], f32>, !graph.tensor<[], f32>) -> (!graph.tensor<[], f32>, !graph.tensor<[], f32>)
  %m = graph.call "aten.erfinv.default"(%one) {self = #graph.operand<0>} in "" : (!graph.tensor<[], f32>) -> !graph.tensor<[], f32>
  %p = graph.call "aten.mul.Tensor"(%b#1, %m) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[], f32>, !graph.tensor<[], f32>) -> !graph.tensor<[], f32>
  %s = graph.call "aten.add.Tensor"(%b#0, %p) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[], f32>, !graph.tensor<[], f32>) -> !graph.tensor<[], f32>
  %y = graph.call "aten.mul.Tensor"(%x, %s) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 4], f32>, !graph.tensor<[], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}

// -----

// A bias that is repeated for each token is that bias.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[B:.*]] = xf.param "b" : tensor<8xf32>
// CHECK: xf.bias %{{.*}} + %[[B]] : tensor<8xf32>, tensor<8xf32>
// CHECK-NOT: graph.opaque
graph.program @repeated tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %b = graph.stored "b" : !graph.tensor<[8], f32>
  %e = graph.call "aten.expand.default"(%b) {self = #graph.operand<0>, size = [1, -1, 8]} in "m" : (!graph.tensor<[8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %y = graph.call "aten.add.Tensor"(%x, %e) {self = #graph.operand<0>, other = #graph.operand<1>} in "m" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}
