// RUN: ctxc-opt %s --split-input-file --graph-recompose --graph-raise | FileCheck %s

// A recurrence that python/ctxc/export.py writes as one op. Its steps are clamped from below; −exp(A) are its rates.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[ONES:.*]] = xf.setting "one_2" : tensor<2xf32>
// CHECK: %[[TERM:.*]] = xf.times %[[ONES]] by -1.000000e-03 : tensor<2xf32>
// CHECK: %[[LESS:.*]] = xf.add %{{.*}}, %[[TERM]]
// CHECK: %[[ABOVE:.*]] = xf.activation relu %[[LESS]]
// CHECK: %[[STEP:.*]] = xf.add %[[ABOVE]], %{{.*}} : tensor<2xf32>
// CHECK: %[[A:.*]] = xf.param "A" : tensor<2xf32>
// CHECK: xf.linear_attention %{{.*}} decay %[[STEP]] rates %[[A]] : tensor<2xf32> : tensor<1x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>, tensor<2xf32>
// CHECK-NOT: xf.contextual
graph.program @steps tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %A = graph.stored "A" : !graph.tensor<[2], f32>
  %w = graph.stored "w" : !graph.tensor<[2, 8], f32>
  %e = graph.call "aten.exp.default"(%A) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[2], f32>) -> !graph.tensor<[2], f32>
  %r = graph.call "aten.neg.default"(%e) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[2], f32>) -> !graph.tensor<[2], f32>
  %t = graph.call "aten.linear.default"(%x, %w) {input = #graph.operand<0>, weight = #graph.operand<1>} in "mix" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[2, 8], f32>) -> !graph.tensor<[1, "s", 2], f32>
  %d = graph.call "aten.clamp.default"(%t) {self = #graph.operand<0>, min = 1.0e-3 : f64, max = 0x7FF0000000000000 : f64} in "mix" : (!graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<[1, "s", 2], f32>
  %v = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "mix" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %q = graph.call "aten.slice.Tensor"(%v) {self = #graph.operand<0>, dim = 2 : i64, start = 0 : i64, end = 1 : i64} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 1, 4], f32>
  %y = graph.call "ctxc.linear_attention.default"(%q, %v, %d, %r) {query = #graph.operand<0>, key = #graph.operand<0>, value = #graph.operand<1>, decay = #graph.operand<2>, rates = #graph.operand<3>} in "mix" : (!graph.tensor<[1, "s", 1, 4], f32>, !graph.tensor<[1, "s", 2, 4], f32>, !graph.tensor<[1, "s", 2], f32>, !graph.tensor<[2], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 2, 4], f32>
}

// -----

// A softplus in two parts; rates behind axes of one entry, so that the decays are ops of their own; and the delta rule.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[A:.*]] = xf.param "A" : tensor<1x1x2x1xf32>
// CHECK: %[[STEP:.*]] = xf.activation softplus %{{.*}} : tensor<2x4xf32>
// CHECK: xf.scale %{{.*}} by %[[A]] : tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>
// CHECK: %[[EXP:.*]] = xf.activation exp %{{.*}} : tensor<2x1xf32>
// CHECK: %[[RATE:.*]] = xf.times %[[EXP]] by -1.000000e+00
// CHECK: %[[RATES:.*]] = xf.concat %[[RATE]], %[[RATE]], %[[RATE]], %[[RATE]] along 1
// CHECK: %[[DECAY:.*]] = xf.mul %[[STEP]], %[[RATES]]
// CHECK: xf.linear_attention %{{.*}} decay %[[DECAY]] delta %{{.*}} : tensor<2xf32> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
// CHECK-NOT: xf.contextual
graph.program @rows tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 2, 4], f32>
  %A = graph.stored "A" : !graph.tensor<[1, 1, 2, 1], f32>
  %e = graph.call "aten.exp.default"(%A) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[1, 1, 2, 1], f32>) -> !graph.tensor<[1, 1, 2, 1], f32>
  %r = graph.call "aten.neg.default"(%e) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[1, 1, 2, 1], f32>) -> !graph.tensor<[1, 1, 2, 1], f32>
  %larger = graph.call "aten.gt.Scalar"(%x) {self = #graph.operand<0>, other = 2.0e+1 : f64} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2, 4], i1>
  %p = graph.call "aten.exp.default"(%x) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %p1 = graph.call "aten.add.Tensor"(%p) {self = #graph.operand<0>, other = 1.0 : f64} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %log = graph.call "aten.log.default"(%p1) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %step = graph.call "aten.where.self"(%larger, %x, %log) {condition = #graph.operand<0>, self = #graph.operand<1>, other = #graph.operand<2>} in "mix" : (!graph.tensor<[1, "s", 2, 4], i1>, !graph.tensor<[1, "s", 2, 4], f32>, !graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %d = graph.call "aten.mul.Tensor"(%r, %step) {self = #graph.operand<0>, other = #graph.operand<1>} in "mix" : (!graph.tensor<[1, 1, 2, 1], f32>, !graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %b = graph.call "aten.select.int"(%x) {self = #graph.operand<0>, dim = -1 : i64, index = 0 : i64} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, "s", 2], f32>
  %y = graph.call "ctxc.linear_attention.default"(%x, %d, %b) {query = #graph.operand<0>, key = #graph.operand<0>, value = #graph.operand<0>, decay = #graph.operand<1>, delta = #graph.operand<2>} in "mix" : (!graph.tensor<[1, "s", 2, 4], f32>, !graph.tensor<[1, "s", 2, 4], f32>, !graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 2, 4], f32>
}

// -----

// RWKV: the values of the token before are a convolution's, mixed by numbers that are stored; one minus these is made of
// them. The decays and a token's own weight are the same for all tokens.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>)
// CHECK: %[[SHIFT:.*]] = xf.setting "shift" : tensor<8x2xf32> = dense<{{\[\[}}1.000000e+00, 0.000000e+00], [1.000000e+00, 0.000000e+00]
// CHECK: %[[LAST:.*]] = xf.conv %[[SHIFT]], %[[X]] : tensor<8x2xf32>, tensor<8xf32>
// CHECK: %[[M:.*]] = xf.param "m" frozen : tensor<1x1x8xf32>
// CHECK: xf.scale %{{.*}} by %[[M]]
// CHECK: xf.scale %{{.*}} by %[[M]]
// CHECK: %[[REST:.*]] = xf.add
// CHECK: %[[BEFORE:.*]] = xf.mul %[[LAST]], %[[REST]]
// CHECK: %[[K:.*]] = xf.add %{{.*}}, %[[BEFORE]] : tensor<8xf32>
// CHECK: %[[EXP:.*]] = xf.activation exp
// CHECK: %[[DECAY:.*]] = xf.times %[[EXP]] by -1.000000e+00
// CHECK: %[[FIRST:.*]] = xf.param "first"
// CHECK: %[[OWN:.*]] = xf.scale %{{.*}} by %[[FIRST]]
// CHECK: xf.decaying_mean %[[K]], %[[X]] decay %[[DECAY]] own %[[OWN]] : tensor<8xf32>
// CHECK-NOT: xf.contextual
graph.program @means tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %m = graph.stored "m" : !graph.tensor<[1, 1, 8], f32>
  %decay = graph.stored "decay" : !graph.tensor<[8], f32>
  %first = graph.stored "first" : !graph.tensor<[8], f32>
  %last = graph.call "aten.pad.default"(%x) {self = #graph.operand<0>, pad = [0, 0, 1, -1], mode = "constant", value = 0.0 : f64} in "mix" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %own = graph.call "aten.mul.Tensor"(%x, %m) {self = #graph.operand<0>, other = #graph.operand<1>} in "mix" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, 1, 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %rest = graph.call "aten.rsub.Scalar"(%m) {self = #graph.operand<0>, other = 1 : i64} in "mix" : (!graph.tensor<[1, 1, 8], f32>) -> !graph.tensor<[1, 1, 8], f32>
  %before = graph.call "aten.mul.Tensor"(%last, %rest) {self = #graph.operand<0>, other = #graph.operand<1>} in "mix" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, 1, 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %k = graph.call "aten.add.Tensor"(%own, %before) {self = #graph.operand<0>, other = #graph.operand<1>} in "mix" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %e = graph.call "aten.exp.default"(%decay) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[8], f32>) -> !graph.tensor<[8], f32>
  %d = graph.call "aten.neg.default"(%e) {self = #graph.operand<0>} in "mix" : (!graph.tensor<[8], f32>) -> !graph.tensor<[8], f32>
  %y = graph.call "ctxc.decaying_mean.default"(%k, %x, %d, %first) {key = #graph.operand<0>, value = #graph.operand<1>, decay = #graph.operand<2>, own = #graph.operand<3>} in "mix" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 8], f32>, !graph.tensor<[8], f32>, !graph.tensor<[8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}

// -----

// What is moved from later tokens is no convolution.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.conv
// CHECK: xf.contextual "mix"
graph.program @later tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %y = graph.call "aten.pad.default"(%x) {self = #graph.operand<0>, pad = [0, 0, -1, 1], mode = "constant", value = 0.0 : f64} in "mix" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}

// -----

// Sinks that a model applies behind its attention: σ(log Σ e^scores − b) is what they leave of the weights.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[B:.*]] = xf.param "b" : tensor<2xf32>
// CHECK: xf.attention %{{.*}} scale 5.000000e-01 sinks %[[B]] : tensor<2xf32> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
// CHECK-NOT: xf.contextual
graph.program @sinks tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %position_ids = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %b = graph.stored "b" : !graph.tensor<[2], f32>
  %row = graph.call "aten.view.default"(%position_ids) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, 1, "s", 1], si64>
  %column = graph.call "aten.view.default"(%position_ids) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, 1, 1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, 1, "s"], si64>, !graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<[1, 1, "s", "s"], i1>) -> !graph.tensor<[1, 1, "s", "s"], f32>
  %v = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %h = graph.call "aten.transpose.int"(%v) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %t = graph.call "aten.transpose.int"(%h) {self = #graph.operand<0>, dim0 = 2 : i64, dim1 = 3 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, 4, "s"], f32>
  %p = graph.call "aten.matmul.default"(%h, %t) {self = #graph.operand<0>, other = #graph.operand<1>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 2, 4, "s"], f32>) -> !graph.tensor<[1, 2, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%p) {self = #graph.operand<0>, other = 0.5 : f64} in "attn" : (!graph.tensor<[1, 2, "s", "s"], f32>) -> !graph.tensor<[1, 2, "s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%scaled, %added) {self = #graph.operand<0>, other = #graph.operand<1>} in "attn" : (!graph.tensor<[1, 2, "s", "s"], f32>, !graph.tensor<[1, 1, "s", "s"], f32>) -> !graph.tensor<[1, 2, "s", "s"], f32>
  %all = graph.call "aten.logsumexp.default"(%scores) {self = #graph.operand<0>, dim = [-1]} in "attn" : (!graph.tensor<[1, 2, "s", "s"], f32>) -> !graph.tensor<[1, 2, "s"], f32>
  %bv = graph.call "aten.view.default"(%b) {self = #graph.operand<0>, size = [1, -1, 1]} in "attn" : (!graph.tensor<[2], f32>) -> !graph.tensor<[1, 2, 1], f32>
  %less = graph.call "aten.sub.Tensor"(%all, %bv) {self = #graph.operand<0>, other = #graph.operand<1>} in "attn" : (!graph.tensor<[1, 2, "s"], f32>, !graph.tensor<[1, 2, 1], f32>) -> !graph.tensor<[1, 2, "s"], f32>
  %gate = graph.call "aten.sigmoid.default"(%less) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s"], f32>) -> !graph.tensor<[1, 2, "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {self = #graph.operand<0>, dim = -1 : i64} in "attn" : (!graph.tensor<[1, 2, "s", "s"], f32>) -> !graph.tensor<[1, 2, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %h) {self = #graph.operand<0>, other = #graph.operand<1>} in "attn" : (!graph.tensor<[1, 2, "s", "s"], f32>, !graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %factor = graph.call "aten.unsqueeze.default"(%gate) {self = #graph.operand<0>, dim = -1 : i64} in "attn" : (!graph.tensor<[1, 2, "s"], f32>) -> !graph.tensor<[1, 2, "s", 1], f32>
  %y = graph.call "aten.mul.Tensor"(%mixed, %factor) {self = #graph.operand<0>, other = #graph.operand<1>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 2, "s", 1], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %z = graph.call "aten.transpose.int"(%y) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  graph.return %z : !graph.tensor<[1, "s", 2, 4], f32>
}

// -----

// One of two values by a comparison, by a flag that is 1 or 0: a divisor of 0 counts as 1.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>)
// CHECK: %[[ABOVE:.*]] = xf.activation relu %{{.*}} : tensor<8xf32>
// CHECK: %[[LEAST:.*]] = xf.sub %{{.*}}, %[[ABOVE]] : tensor<8xf32>
// CHECK: %[[MORE:.*]] = xf.activation relu %{{.*}} : tensor<8xf32>
// CHECK: %[[FLAG:.*]] = xf.div %[[MORE]], %[[MORE]]
// CHECK: %[[CHOSEN:.*]] = xf.mul %[[FLAG]], %[[X]]
// CHECK: %[[REST:.*]] = xf.mul %{{.*}}, %[[LEAST]]
// CHECK: xf.add %[[CHOSEN]], %[[REST]]
// CHECK-NOT: graph.opaque
graph.program @choice tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 8], f32>
  %e = graph.stored "e" fixed : !graph.tensor<[1], f32>
  %larger = graph.call "aten.gt.Scalar"(%x) {self = #graph.operand<0>, other = 0.5 : f64} in "f" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 8], i1>
  %least = graph.call "aten.min.other"(%x, %e) {self = #graph.operand<0>, other = #graph.operand<1>} in "f" : (!graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %y = graph.call "aten.where.self"(%larger, %x, %least) {condition = #graph.operand<0>, self = #graph.operand<1>, other = #graph.operand<2>} in "f" : (!graph.tensor<[1, "s", 8], i1>, !graph.tensor<[1, "s", 8], f32>, !graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 8], f32>
  graph.return %y : !graph.tensor<[1, "s", 8], f32>
}

// -----

// Tokens on the last axis: a bias and a scale stand beside the axis in front of it. And a state of one number for each entry, to which the
// token adds its value: queries and keys are ones.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[B:.*]] = xf.scale %{{.*}} by %{{.*}} : tensor<4xf32>, tensor<4xf32>
// CHECK: %[[COLUMN:.*]] = xf.reshape %[[B]] : tensor<4xf32> to tensor<4x1xf32>
// CHECK: %[[ROW:.*]] = xf.reshape %[[COLUMN]] : tensor<4x1xf32> to tensor<4xf32>
// CHECK: %[[SUM:.*]] = xf.add %{{.*}}, %[[ROW]] : tensor<4xf32>
// CHECK: %[[V:.*]] = xf.mul %[[SUM]], %{{.*}} : tensor<4xf32>
// CHECK: %[[ONE:.*]] = xf.setting "one_1x1" : tensor<1x1xf32>
// CHECK: %[[Q:.*]] = xf.times %[[ONE]] by 1.000000e+00
// CHECK: xf.linear_attention %[[Q]], %{{.*}}, %{{.*}} decay %{{.*}} : tensor<1x1xf32>, tensor<1x1xf32>, tensor<4x1xf32>, tensor<4xf32>
// CHECK-NOT: xf.contextual
graph.program @columns tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
  %b = graph.stored "b" : !graph.tensor<[4], f32>
  %c = graph.stored "c" : !graph.tensor<[4], f32>
  %t = graph.call "aten.permute.default"(%x) {self = #graph.operand<0>, dims = [0, 2, 1]} in "mix" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 4, "s"], f32>
  %bv = graph.call "aten.view.default"(%b) {self = #graph.operand<0>, size = [4, 1]} in "mix" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1], f32>
  %cv = graph.call "aten.view.default"(%c) {self = #graph.operand<0>, size = [4, 1]} in "mix" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1], f32>
  %a = graph.call "aten.add.Tensor"(%t, %bv) {self = #graph.operand<0>, other = #graph.operand<1>} in "mix" : (!graph.tensor<[1, 4, "s"], f32>, !graph.tensor<[4, 1], f32>) -> !graph.tensor<[1, 4, "s"], f32>
  %m = graph.call "aten.mul.Tensor"(%a, %cv) {self = #graph.operand<0>, other = #graph.operand<1>} in "mix" : (!graph.tensor<[1, 4, "s"], f32>, !graph.tensor<[4, 1], f32>) -> !graph.tensor<[1, 4, "s"], f32>
  %p = graph.call "aten.permute.default"(%m) {self = #graph.operand<0>, dims = [0, 2, 1]} in "mix" : (!graph.tensor<[1, 4, "s"], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %v = graph.call "aten.view.default"(%p) {self = #graph.operand<0>, size = []} in "mix" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 1], f32>
  %f = graph.call "aten.full.default"() {size = [], fill_value = 1.0 : f64} in "mix" : () -> !graph.tensor<[], f32>
  %q = graph.call "aten.expand.default"(%f) {self = #graph.operand<0>, size = []} in "mix" : (!graph.tensor<[], f32>) -> !graph.tensor<[1, "s", 1, 1], f32>
  %y = graph.call "ctxc.linear_attention.default"(%q, %v, %x) {query = #graph.operand<0>, key = #graph.operand<0>, value = #graph.operand<1>, decay = #graph.operand<2>} in "mix" : (!graph.tensor<[1, "s", 1, 1], f32>, !graph.tensor<[1, "s", 4, 1], f32>, !graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 1], f32>
  graph.return %y : !graph.tensor<[1, "s", 4, 1], f32>
}
