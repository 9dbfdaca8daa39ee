// RUN: ctxc-opt %s --split-input-file --graph-raise | FileCheck %s

// What grows with the column, by another number for each head (ALiBi): added with the products, whose scale it does not have.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[M:.*]] = xf.setting "slopes" : tensor<4xf32> = dense<[1.000000e+00, 5.000000e-01, 2.500000e-01, 1.250000e-01]>
// CHECK: xf.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 slopes %[[M]] : tensor<4xf32> : tensor<4x4xf32>
// CHECK-NOT: graph.body
graph.program @summed tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %mv = graph.call "aten.view.default"(%m) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1, 1], f32>
  %bias = graph.call "aten.mul.Tensor"(%mv, %n) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, 1], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<[4, 1, "s"], f32>
  %q3 = graph.call "aten.view.default"(%q) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[4, "s", 4], f32>
  %k3 = graph.call "aten.view.default"(%k) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[4, 4, "s"], f32>
  %sum = graph.call "aten.baddbmm.default"(%bias, %q3, %k3) {alpha = 5.000000e-01 : f64, batch1 = #graph.operand<1>, batch2 = #graph.operand<2>, beta = 1.000000e+00 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, "s"], f32>, !graph.tensor<[4, "s", 4], f32>, !graph.tensor<[4, 4, "s"], f32>) -> !graph.tensor<[4, "s", "s"], f32>
  %sum4 = graph.call "aten.view.default"(%sum) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%sum4, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// The last entries of a table: as many as there are tokens, which shifts all scores alike.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[M:.*]] = xf.setting "slopes" : tensor<4xf32> = dense<[1.000000e+00, 5.000000e-01, 2.500000e-01, 1.250000e-01]>
// CHECK: xf.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 slopes %[[M]] : tensor<4xf32> : tensor<4x4xf32>
// CHECK-NOT: graph.body
graph.program @sliced tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %all = graph.call "aten.arange.start"() {end = 1 : i64, start = -63 : i64} in "attn" : () -> !graph.tensor<[64], si64>
  %mv = graph.call "aten.view.default"(%m) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[1, 4, 1, 1], f32>
  %long = graph.call "aten.mul.Tensor"(%all, %mv) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[64], si64>, !graph.tensor<[1, 4, 1, 1], f32>) -> !graph.tensor<[1, 4, 1, 64], f32>
  %bias = graph.call "aten.slice.Tensor"(%long) {dim = 3 : i64, self = #graph.operand<0>, start = "Max(0, Add(64, Mul(-1, s)))"} in "attn" : (!graph.tensor<[1, 4, 1, 64], f32>) -> !graph.tensor<[1, 4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%scaled, %bias) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %hides = graph.call "aten.logical_not.default"(%causal) {self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], i1>
  %scores = graph.call "aten.masked_fill.Scalar"(%biased, %hides) {mask = #graph.operand<1>, self = #graph.operand<0>, value = -3.4e+38 : f64} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], i1>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// Products with the columns that are rounded to bfloat16, added twice: before the scale of one half, and as a mask.
// CHECK-LABEL: xf.block @model(
// CHECK: %[[M:.*]] = xf.setting "slopes" : tensor<4xf32> = dense<[0.333984375, 0.166992188, 0.0834960938, 0.0417480469]>
// CHECK: xf.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 slopes %[[M]] : tensor<4xf32> rounded : tensor<4x4xf32>
// CHECK-NOT: graph.body
graph.program @rounded tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %ones = graph.call "aten.ones.default"() {size = []} in "attn" : () -> !graph.tensor<[1, "s"], si64>
  %count = graph.call "aten.cumsum.default"(%ones) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %places = graph.call "aten.sub.Tensor"(%count) {other = 1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %third = graph.call "aten.mul.Tensor"(%m) {other = 0.3333333333 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4], f32>
  %short = graph.call "aten._to_copy.default"(%third) {dtype = 13 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4], bf16>
  %mv = graph.call "aten.view.default"(%short) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], bf16>) -> !graph.tensor<[4, 1], bf16>
  %bias = graph.call "aten.mul.Tensor"(%mv, %places) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1], bf16>, !graph.tensor<[1, "s"], si64>) -> !graph.tensor<[4, "s"], bf16>
  %bv = graph.call "aten.view.default"(%bias) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4, "s"], bf16>) -> !graph.tensor<[1, 4, 1, "s"], bf16>
  %wide = graph.call "aten._to_copy.default"(%bv) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, 1, "s"], bf16>) -> !graph.tensor<[1, 4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%product, %wide) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %half = graph.call "aten.mul.Tensor"(%biased) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %again = graph.call "aten.mul.Tensor"(%wide) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, 1, "s"], f32>) -> !graph.tensor<[1, 4, 1, "s"], f32>
  %hides = graph.call "aten.logical_not.default"(%causal) {self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], i1>
  %added = graph.call "aten.masked_fill.Scalar"(%again, %hides) {mask = #graph.operand<1>, self = #graph.operand<0>, value = -3.4e+38 : f64} in "attn" : (!graph.tensor<[1, 4, 1, "s"], f32>, !graph.tensor<["s", "s"], i1>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%half, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// By a factor that rounding does not go through, they are no slopes of an xf.attention.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: graph.why = "slopes that are rounded before a factor"
graph.program @rounded tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %ones = graph.call "aten.ones.default"() {size = []} in "attn" : () -> !graph.tensor<[1, "s"], si64>
  %count = graph.call "aten.cumsum.default"(%ones) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %places = graph.call "aten.sub.Tensor"(%count) {other = 1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %third = graph.call "aten.mul.Tensor"(%m) {other = 0.3333333333 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4], f32>
  %short = graph.call "aten._to_copy.default"(%third) {dtype = 13 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4], bf16>
  %mv = graph.call "aten.view.default"(%short) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], bf16>) -> !graph.tensor<[4, 1], bf16>
  %bias = graph.call "aten.mul.Tensor"(%mv, %places) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1], bf16>, !graph.tensor<[1, "s"], si64>) -> !graph.tensor<[4, "s"], bf16>
  %bv = graph.call "aten.view.default"(%bias) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4, "s"], bf16>) -> !graph.tensor<[1, 4, 1, "s"], bf16>
  %wide = graph.call "aten._to_copy.default"(%bv) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, 1, "s"], bf16>) -> !graph.tensor<[1, 4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%product, %wide) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %half = graph.call "aten.mul.Tensor"(%biased) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %again = graph.call "aten.mul.Tensor"(%wide) {other = 7.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, 1, "s"], f32>) -> !graph.tensor<[1, 4, 1, "s"], f32>
  %hides = graph.call "aten.logical_not.default"(%causal) {self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], i1>
  %added = graph.call "aten.masked_fill.Scalar"(%again, %hides) {mask = #graph.operand<1>, self = #graph.operand<0>, value = -3.4e+38 : f64} in "attn" : (!graph.tensor<[1, 4, 1, "s"], f32>, !graph.tensor<["s", "s"], i1>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%half, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// A mask inside of the scale.
// CHECK-LABEL: xf.block @model(
// CHECK: xf.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 : tensor<4x4xf32>
// CHECK-NOT: graph.body
graph.program @inside tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %masked = graph.call "aten.add.Tensor"(%product, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scores = graph.call "aten.div.Tensor"(%masked) {other = 2.000000e+00 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// A mask that keeps scores by a factor, and adds to the others.
// CHECK-LABEL: xf.block @model(
// CHECK: xf.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 : tensor<4x4xf32>
// CHECK-NOT: graph.body
graph.program @factor tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %b = graph.call "aten._to_copy.default"(%causal) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %causalf = graph.call "aten._to_copy.default"(%causal) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %kept = graph.call "aten.mul.Tensor"(%scaled, %b) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %rest = graph.call "aten.rsub.Scalar"(%causalf) {other = 1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], f32>) -> !graph.tensor<["s", "s"], f32>
  %added = graph.call "aten.mul.Tensor"(%rest) {other = -1.0e+4 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], f32>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%kept, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// A factor that makes a score that is seen 0 is none.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: graph.why = "aten.mul.Tensor"
graph.program @factor tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %strict = graph.call "aten.lt.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %b = graph.call "aten._to_copy.default"(%strict) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %causalf = graph.call "aten._to_copy.default"(%causal) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %kept = graph.call "aten.mul.Tensor"(%scaled, %b) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %rest = graph.call "aten.rsub.Scalar"(%causalf) {other = 1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], f32>) -> !graph.tensor<["s", "s"], f32>
  %added = graph.call "aten.mul.Tensor"(%rest) {other = -1.0e+4 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s", "s"], f32>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%kept, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// Inside of a cap a shift of all scores is one of all weights.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: graph.why = "slopes inside of a cap"
graph.program @capped tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mv = graph.call "aten.view.default"(%m) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1, 1], f32>
  %bias = graph.call "aten.mul.Tensor"(%mv, %n) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, 1], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<[4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%scaled, %bias) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %small = graph.call "aten.div.Tensor"(%biased) {other = 3.0 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %bent = graph.call "aten.tanh.default"(%small) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %cap = graph.call "aten.mul.Tensor"(%bent) {other = 3.0 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%cap, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// What grows in another way is no slope.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: graph.why = "aten.mul.Tensor"
graph.program @squared tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mv = graph.call "aten.view.default"(%m) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1, 1], f32>
  %nn = graph.call "aten.mul.Tensor"(%n) {other = #graph.operand<0>, self = #graph.operand<0>} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s"], si64>
  %bias = graph.call "aten.mul.Tensor"(%mv, %nn) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, 1], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<[4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%scaled, %bias) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%biased, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// Scores that grow with the column may be greater than what such a mask takes from others.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: graph.why = "slopes beside a mask that they may outgrow"
graph.program @outgrown tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mv = graph.call "aten.view.default"(%m) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1, 1], f32>
  %bias = graph.call "aten.mul.Tensor"(%mv, %n) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, 1], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<[4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%scaled, %bias) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -1.0e+4 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%biased, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// What was rounded after the product is another number.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: graph.why = "aten._to_copy.default"
graph.program @widened tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %h = graph.call "aten.view.default"(%x) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%h) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %k = graph.call "aten.transpose.int"(%q) {dim0 = 2 : i64, dim1 = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %n = graph.call "aten.arange.default"() {end = "s"} in "attn" : () -> !graph.tensor<["s"], si64>
  %row = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<["s", 1], si64>
  %column = graph.call "aten.view.default"(%n) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<["s"], si64>) -> !graph.tensor<[1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s"], si64>, !graph.tensor<["s", 1], si64>) -> !graph.tensor<["s", "s"], i1>
  %base = graph.call "aten.full.default"() {fill_value = 0.5 : f64, size = []} in "attn" : () -> !graph.tensor<[], f32>
  %powers = graph.call "aten.arange.start"() {end = 5 : i64, start = 1 : i64} in "attn" : () -> !graph.tensor<[4], si32>
  %m = graph.call "aten.pow.Tensor_Tensor"(%base, %powers) {exponent = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[], f32>, !graph.tensor<[4], si32>) -> !graph.tensor<[4], f32>
  %product = graph.call "aten.matmul.default"(%q, %k) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 5.000000e-01 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mv = graph.call "aten.view.default"(%m) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[4], f32>) -> !graph.tensor<[4, 1, 1], f32>
  %bias = graph.call "aten.mul.Tensor"(%mv, %n) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, 1], f32>, !graph.tensor<["s"], si64>) -> !graph.tensor<[4, 1, "s"], f32>
  %short = graph.call "aten._to_copy.default"(%bias) {dtype = 13 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, "s"], f32>) -> !graph.tensor<[4, 1, "s"], bf16>
  %wide = graph.call "aten._to_copy.default"(%short) {dtype = 7 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[4, 1, "s"], bf16>) -> !graph.tensor<[4, 1, "s"], f32>
  %biased = graph.call "aten.add.Tensor"(%scaled, %wide) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[4, 1, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %added = graph.call "aten.where.Scalar"(%causal) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<["s", "s"], i1>) -> !graph.tensor<["s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%biased, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<["s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {dim = -1 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %mixed = graph.call "aten.matmul.default"(%weights, %q) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %back = graph.call "aten.transpose.int"(%mixed) {dim0 = 1 : i64, dim1 = 2 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%back) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}
