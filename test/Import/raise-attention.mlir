// RUN: ctxc-opt %s --split-input-file --graph-raise | FileCheck %s

// Attention as a model spells it out: rotated queries and keys, keys and values that two heads share, and a mask of which a
// token sees itself and the two before.
// CHECK-LABEL: xf.block @model(
// CHECK-SAME: %[[X:.*]]: tensor<16xf32>)
// CHECK-DAG: %[[F:.*]] = xf.setting "rope" : tensor<2xf32> = dense<[1.000000e+00, 2.500000e-01]>
// CHECK-DAG: %[[Q:.*]] = xf.rotary half %{{.*}} by %[[F]] : tensor<4x4xf32>
// CHECK-DAG: %[[K:.*]] = xf.rotary half %{{.*}} by %[[F]] : tensor<2x4xf32>
// CHECK-DAG: %[[W:.*]] = xf.setting "window" : index = 3
// CHECK: xf.attention %[[Q]], %{{.*}}, %{{.*}} scale 5.000000e-01 window %[[W]] : tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
// CHECK-NOT: graph.body
graph.program @windowed tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %position_ids = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %wq = graph.stored "wq" : !graph.tensor<[16, 16], f32>
  %wk = graph.stored "wk" : !graph.tensor<[8, 16], f32>
  %wv = graph.stored "wv" : !graph.tensor<[8, 16], f32>
  %f = graph.stored "f" fixed is dense<[1.0, 0.25]> : tensor<2xf64> : !graph.tensor<[2], f32>
  %p = graph.call "aten.unsqueeze.default"(%position_ids) {self = #graph.operand<0>, dim = 2 : i64} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s", 1], si64>
  %pf = graph.call "aten._to_copy.default"(%p) {self = #graph.operand<0>, dtype = 7 : i64} in "attn" : (!graph.tensor<[1, "s", 1], si64>) -> !graph.tensor<[1, "s", 1], f32>
  %a = graph.call "aten.mul.Tensor"(%pf, %f) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 1], f32>, !graph.tensor<[2], f32>) -> !graph.tensor<[1, "s", 2], f32>
  %ab = graph.call "aten.cat.default"(%a) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<0>]} in "attn" : (!graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %cos0 = graph.call "aten.cos.default"(%ab) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %cos = graph.call "aten.unsqueeze.default"(%cos0) {self = #graph.operand<0>, dim = 1 : i64} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 1, "s", 4], f32>
  %sin0 = graph.call "aten.sin.default"(%ab) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %sin = graph.call "aten.unsqueeze.default"(%sin0) {self = #graph.operand<0>, dim = 1 : i64} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 1, "s", 4], f32>
  %row = graph.call "aten.view.default"(%position_ids) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, 1, "s", 1], si64>
  %column = graph.call "aten.view.default"(%position_ids) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, 1, 1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, 1, "s"], si64>, !graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %edge = graph.call "aten.sub.Tensor"(%row) {other = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", 1], si64>
  %near = graph.call "aten.gt.Tensor"(%column, %edge) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, 1, "s"], si64>, !graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %both = graph.call "aten.__and__.Tensor"(%causal, %near) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, "s", "s"], i1>, !graph.tensor<[1, 1, "s", "s"], i1>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %added = graph.call "aten.where.Scalar"(%both) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<[1, 1, "s", "s"], i1>) -> !graph.tensor<[1, 1, "s", "s"], f32>
  %qr = graph.call "aten.linear.default"(%x, %wq) {input = #graph.operand<0>, weight = #graph.operand<1>} in "attn" : (!graph.tensor<[1, "s", 16], f32>, !graph.tensor<[16, 16], f32>) -> !graph.tensor<[1, "s", 16], f32>
  %qv = graph.call "aten.view.default"(%qr) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%qv) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %kr = graph.call "aten.linear.default"(%x, %wk) {input = #graph.operand<0>, weight = #graph.operand<1>} in "attn" : (!graph.tensor<[1, "s", 16], f32>, !graph.tensor<[8, 16], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %kv = graph.call "aten.view.default"(%kr) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %k = graph.call "aten.transpose.int"(%kv) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %vr = graph.call "aten.linear.default"(%x, %wv) {input = #graph.operand<0>, weight = #graph.operand<1>} in "attn" : (!graph.tensor<[1, "s", 16], f32>, !graph.tensor<[8, 16], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %vv = graph.call "aten.view.default"(%vr) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %v = graph.call "aten.transpose.int"(%vv) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %qtc = graph.call "aten.mul.Tensor"(%q, %cos) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %qt1 = graph.call "aten.slice.Tensor"(%q) {self = #graph.operand<0>, dim = 3 : i64, start = 0 : i64, end = 2 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 2], f32>
  %qt2 = graph.call "aten.slice.Tensor"(%q) {self = #graph.operand<0>, dim = 3 : i64, start = 2 : i64, end = 9223372036854775807 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 2], f32>
  %qtn = graph.call "aten.neg.default"(%qt2) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 2], f32>) -> !graph.tensor<[1, 4, "s", 2], f32>
  %qth = graph.call "aten.cat.default"(%qtn, %qt1) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<1>]} in "attn" : (!graph.tensor<[1, 4, "s", 2], f32>, !graph.tensor<[1, 4, "s", 2], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %qts = graph.call "aten.mul.Tensor"(%qth, %sin) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %qt = graph.call "aten.add.Tensor"(%qtc, %qts) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %ktc = graph.call "aten.mul.Tensor"(%k, %cos) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kt1 = graph.call "aten.slice.Tensor"(%k) {self = #graph.operand<0>, dim = 3 : i64, start = 0 : i64, end = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 2], f32>
  %kt2 = graph.call "aten.slice.Tensor"(%k) {self = #graph.operand<0>, dim = 3 : i64, start = 2 : i64, end = 9223372036854775807 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 2], f32>
  %ktn = graph.call "aten.neg.default"(%kt2) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 2], f32>) -> !graph.tensor<[1, 2, "s", 2], f32>
  %kth = graph.call "aten.cat.default"(%ktn, %kt1) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<1>]} in "attn" : (!graph.tensor<[1, 2, "s", 2], f32>, !graph.tensor<[1, 2, "s", 2], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kts = graph.call "aten.mul.Tensor"(%kth, %sin) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kt = graph.call "aten.add.Tensor"(%ktc, %kts) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kku = graph.call "aten.unsqueeze.default"(%kt) {self = #graph.operand<0>, dim = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, 1, "s", 4], f32>
  %kke = graph.call "aten.expand.default"(%kku) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, 2, "s", 4], f32>
  %kk = graph.call "aten.view.default"(%kke) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 2, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %vrepu = graph.call "aten.unsqueeze.default"(%v) {self = #graph.operand<0>, dim = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, 1, "s", 4], f32>
  %vrepe = graph.call "aten.expand.default"(%vrepu) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, 2, "s", 4], f32>
  %vrep = graph.call "aten.view.default"(%vrepe) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 2, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %kT = graph.call "aten.transpose.int"(%kk) {self = #graph.operand<0>, dim0 = 2 : i64, dim1 = 3 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %product = graph.call "aten.matmul.default"(%qt, %kT) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 0.5 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%scaled, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 1, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {self = #graph.operand<0>, dim = -1 : i64} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %o = graph.call "aten.matmul.default"(%weights, %vrep) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %ot = graph.call "aten.transpose.int"(%o) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%ot) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}

// -----

// A mask of another form leaves the region as it is, and names the op that was not understood.
// CHECK-LABEL: xf.block @model(
// CHECK-NOT: xf.attention
// CHECK: xf.contextual "attn"({{.*}}) {graph.body = @attn_of_program, graph.why = "aten.floor_divide.default"}
graph.program @chunked tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 16], f32>
  %position_ids = graph.input "position_ids" as "position" : !graph.tensor<[1, "s"], si64>
  %wq = graph.stored "wq" : !graph.tensor<[16, 16], f32>
  %wk = graph.stored "wk" : !graph.tensor<[8, 16], f32>
  %wv = graph.stored "wv" : !graph.tensor<[8, 16], f32>
  %f = graph.stored "f" fixed is dense<[1.0, 0.25]> : tensor<2xf64> : !graph.tensor<[2], f32>
  %p = graph.call "aten.unsqueeze.default"(%position_ids) {self = #graph.operand<0>, dim = 2 : i64} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, "s", 1], si64>
  %pf = graph.call "aten._to_copy.default"(%p) {self = #graph.operand<0>, dtype = 7 : i64} in "attn" : (!graph.tensor<[1, "s", 1], si64>) -> !graph.tensor<[1, "s", 1], f32>
  %a = graph.call "aten.mul.Tensor"(%pf, %f) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 1], f32>, !graph.tensor<[2], f32>) -> !graph.tensor<[1, "s", 2], f32>
  %ab = graph.call "aten.cat.default"(%a) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<0>]} in "attn" : (!graph.tensor<[1, "s", 2], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %cos0 = graph.call "aten.cos.default"(%ab) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %cos = graph.call "aten.unsqueeze.default"(%cos0) {self = #graph.operand<0>, dim = 1 : i64} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 1, "s", 4], f32>
  %sin0 = graph.call "aten.sin.default"(%ab) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  %sin = graph.call "aten.unsqueeze.default"(%sin0) {self = #graph.operand<0>, dim = 1 : i64} in "attn" : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, 1, "s", 4], f32>
  %row = graph.call "aten.view.default"(%position_ids) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, 1, "s", 1], si64>
  %column = graph.call "aten.view.default"(%position_ids) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s"], si64>) -> !graph.tensor<[1, 1, 1, "s"], si64>
  %causal = graph.call "aten.le.Tensor"(%column, %row) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, 1, "s"], si64>, !graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %edge = graph.call "aten.sub.Tensor"(%row) {other = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", 1], si64>
  %near = graph.call "aten.gt.Tensor"(%column, %edge) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, 1, "s"], si64>, !graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %rc = graph.call "aten.floor_divide.default"(%row) {other = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, "s", 1], si64>) -> !graph.tensor<[1, 1, "s", 1], si64>
  %cc = graph.call "aten.floor_divide.default"(%column) {other = 3 : i64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, 1, "s"], si64>) -> !graph.tensor<[1, 1, 1, "s"], si64>
  %near2 = graph.call "aten.eq.Tensor"(%rc, %cc) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, "s", 1], si64>, !graph.tensor<[1, 1, 1, "s"], si64>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %both = graph.call "aten.__and__.Tensor"(%causal, %near2) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 1, "s", "s"], i1>, !graph.tensor<[1, 1, "s", "s"], i1>) -> !graph.tensor<[1, 1, "s", "s"], i1>
  %added = graph.call "aten.where.Scalar"(%both) {condition = #graph.operand<0>, other = -3.4e+38 : f64, self = 0.0 : f64} in "attn" : (!graph.tensor<[1, 1, "s", "s"], i1>) -> !graph.tensor<[1, 1, "s", "s"], f32>
  %qr = graph.call "aten.linear.default"(%x, %wq) {input = #graph.operand<0>, weight = #graph.operand<1>} in "attn" : (!graph.tensor<[1, "s", 16], f32>, !graph.tensor<[16, 16], f32>) -> !graph.tensor<[1, "s", 16], f32>
  %qv = graph.call "aten.view.default"(%qr) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 16], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %q = graph.call "aten.transpose.int"(%qv) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %kr = graph.call "aten.linear.default"(%x, %wk) {input = #graph.operand<0>, weight = #graph.operand<1>} in "attn" : (!graph.tensor<[1, "s", 16], f32>, !graph.tensor<[8, 16], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %kv = graph.call "aten.view.default"(%kr) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %k = graph.call "aten.transpose.int"(%kv) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %vr = graph.call "aten.linear.default"(%x, %wv) {input = #graph.operand<0>, weight = #graph.operand<1>} in "attn" : (!graph.tensor<[1, "s", 16], f32>, !graph.tensor<[8, 16], f32>) -> !graph.tensor<[1, "s", 8], f32>
  %vv = graph.call "aten.view.default"(%vr) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 8], f32>) -> !graph.tensor<[1, "s", 2, 4], f32>
  %v = graph.call "aten.transpose.int"(%vv) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, "s", 2, 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %qtc = graph.call "aten.mul.Tensor"(%q, %cos) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %qt1 = graph.call "aten.slice.Tensor"(%q) {self = #graph.operand<0>, dim = 3 : i64, start = 0 : i64, end = 2 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 2], f32>
  %qt2 = graph.call "aten.slice.Tensor"(%q) {self = #graph.operand<0>, dim = 3 : i64, start = 2 : i64, end = 9223372036854775807 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 2], f32>
  %qtn = graph.call "aten.neg.default"(%qt2) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 2], f32>) -> !graph.tensor<[1, 4, "s", 2], f32>
  %qth = graph.call "aten.cat.default"(%qtn, %qt1) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<1>]} in "attn" : (!graph.tensor<[1, 4, "s", 2], f32>, !graph.tensor<[1, 4, "s", 2], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %qts = graph.call "aten.mul.Tensor"(%qth, %sin) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %qt = graph.call "aten.add.Tensor"(%qtc, %qts) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %ktc = graph.call "aten.mul.Tensor"(%k, %cos) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kt1 = graph.call "aten.slice.Tensor"(%k) {self = #graph.operand<0>, dim = 3 : i64, start = 0 : i64, end = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 2], f32>
  %kt2 = graph.call "aten.slice.Tensor"(%k) {self = #graph.operand<0>, dim = 3 : i64, start = 2 : i64, end = 9223372036854775807 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 2], f32>
  %ktn = graph.call "aten.neg.default"(%kt2) {self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 2], f32>) -> !graph.tensor<[1, 2, "s", 2], f32>
  %kth = graph.call "aten.cat.default"(%ktn, %kt1) {dim = -1 : i64, tensors = [#graph.operand<0>, #graph.operand<1>]} in "attn" : (!graph.tensor<[1, 2, "s", 2], f32>, !graph.tensor<[1, 2, "s", 2], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kts = graph.call "aten.mul.Tensor"(%kth, %sin) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kt = graph.call "aten.add.Tensor"(%ktc, %kts) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, "s", 4], f32>
  %kku = graph.call "aten.unsqueeze.default"(%kt) {self = #graph.operand<0>, dim = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, 1, "s", 4], f32>
  %kke = graph.call "aten.expand.default"(%kku) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, 2, "s", 4], f32>
  %kk = graph.call "aten.view.default"(%kke) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 2, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %vrepu = graph.call "aten.unsqueeze.default"(%v) {self = #graph.operand<0>, dim = 2 : i64} in "attn" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[1, 2, 1, "s", 4], f32>
  %vrepe = graph.call "aten.expand.default"(%vrepu) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 1, "s", 4], f32>) -> !graph.tensor<[1, 2, 2, "s", 4], f32>
  %vrep = graph.call "aten.view.default"(%vrepe) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, 2, 2, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %kT = graph.call "aten.transpose.int"(%kk) {self = #graph.operand<0>, dim0 = 2 : i64, dim1 = 3 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, 4, "s"], f32>
  %product = graph.call "aten.matmul.default"(%qt, %kT) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>, !graph.tensor<[1, 4, 4, "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scaled = graph.call "aten.mul.Tensor"(%product) {other = 0.5 : f64, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %scores = graph.call "aten.add.Tensor"(%scaled, %added) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 1, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %weights = graph.call "aten.softmax.int"(%scores) {self = #graph.operand<0>, dim = -1 : i64} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>) -> !graph.tensor<[1, 4, "s", "s"], f32>
  %o = graph.call "aten.matmul.default"(%weights, %vrep) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn" : (!graph.tensor<[1, 4, "s", "s"], f32>, !graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, 4, "s", 4], f32>
  %ot = graph.call "aten.transpose.int"(%o) {self = #graph.operand<0>, dim0 = 1 : i64, dim1 = 2 : i64} in "attn" : (!graph.tensor<[1, 4, "s", 4], f32>) -> !graph.tensor<[1, "s", 4, 4], f32>
  %y = graph.call "aten.view.default"(%ot) {self = #graph.operand<0>, size = []} in "attn" : (!graph.tensor<[1, "s", 4, 4], f32>) -> !graph.tensor<[1, "s", 16], f32>
  graph.return %y : !graph.tensor<[1, "s", 16], f32>
}
