// RUN: ctxc-opt %s --graph-recompose | FileCheck %s
// What PyTorch's own table of decompositions takes apart is one op again, and stays as it is where it is something else.

!rows = !graph.tensor<[1, 2, "s", 4], f32>
!one = !graph.tensor<[2, "s", 4], f32>
!turned = !graph.tensor<[1, 2, 4, "s"], f32>
!oneTurned = !graph.tensor<[2, 4, "s"], f32>
!scores = !graph.tensor<[1, 2, "s", "s"], f32>
!oneScores = !graph.tensor<[2, "s", "s"], f32>

// CHECK-LABEL: graph.program @products
graph.program @products tokens "s" {
  %q = graph.input "q" as "activation" : !rows
  %k = graph.input "k" as "activation" : !turned
  %a = graph.call "aten.expand.default"(%q) {self = #graph.operand<0>, size = [1, 2, "s", 4]} in "" : (!rows) -> !rows
  %b = graph.call "aten.view.default"(%a) {self = #graph.operand<0>, size = [2, "s", 4]} in "" : (!rows) -> !one
  %c = graph.call "aten.view.default"(%k) {self = #graph.operand<0>, size = [2, 4, "s"]} in "" : (!turned) -> !oneTurned
  // Both leading axes are one, and two again; what is read as it is stays a product of three axes.
  // CHECK: [[B:%.*]] = graph.call "aten.view.default"
  // CHECK: [[C:%.*]] = graph.call "aten.view.default"
  // CHECK: [[ONE:%.*]] = graph.call "aten.matmul.default"([[B]], [[C]]) {other = #graph.operand<1>, self = #graph.operand<0>} in "attn"
  // CHECK: [[WHOLE:%.*]] = graph.call "aten.matmul.default"(%{{.*}}, %{{.*}}) {other = #graph.operand<1>, self = #graph.operand<0>} in "out" : (!graph.tensor<[1, 2, "s", 4], f32>, !graph.tensor<[1, 2, 4, "s"], f32>)
  %d = graph.call "aten.bmm.default"(%b, %c) {self = #graph.operand<0>, mat2 = #graph.operand<1>} in "attn" : (!one, !oneTurned) -> !oneScores
  %e = graph.call "aten.view.default"(%d) {self = #graph.operand<0>, size = [1, 2, "s", "s"]} in "out" : (!oneScores) -> !scores
  // Other axes than those that were made one.
  // CHECK: graph.call "aten.view.default"([[ONE]])
  %f = graph.call "aten.view.default"(%d) {self = #graph.operand<0>, size = [2, 1, "s", "s"]} in "out" : (!oneScores) -> !graph.tensor<[2, 1, "s", "s"], f32>
  // CHECK: graph.call "aten.softmax.int"([[WHOLE]]) {dim = -1 : i64, self = #graph.operand<0>}
  %g = graph.call "aten._softmax.default"(%e) {self = #graph.operand<0>, dim = -1, half_to_float = false} in "" : (!scores) -> !scores
  // In another type than its operand's.
  // CHECK: graph.call "aten._softmax.default"
  %h = graph.call "aten._softmax.default"(%e) {self = #graph.operand<0>, dim = -1, half_to_float = true} in "" : (!scores) -> !graph.tensor<[1, 2, "s", "s"], f64>
  // CHECK: graph.return [[ONE]],
  graph.return %d, %f, %g, %h : !oneScores, !graph.tensor<[2, 1, "s", "s"], f32>, !scores, !graph.tensor<[1, 2, "s", "s"], f64>
}

// CHECK-LABEL: graph.program @crossed
graph.program @crossed tokens "s" {
  %q = graph.input "q" as "activation" : !graph.tensor<[2, 3, "s", 4], f32>
  %k = graph.input "k" as "activation" : !graph.tensor<[3, 2, 4, "s"], f32>
  %b = graph.call "aten.view.default"(%q) {self = #graph.operand<0>, size = [6, "s", 4]} in "" : (!graph.tensor<[2, 3, "s", 4], f32>) -> !graph.tensor<[6, "s", 4], f32>
  %c = graph.call "aten.view.default"(%k) {self = #graph.operand<0>, size = [6, 4, "s"]} in "" : (!graph.tensor<[3, 2, 4, "s"], f32>) -> !graph.tensor<[6, 4, "s"], f32>
  %d = graph.call "aten.bmm.default"(%b, %c) {self = #graph.operand<0>, mat2 = #graph.operand<1>} in "" : (!graph.tensor<[6, "s", 4], f32>, !graph.tensor<[6, 4, "s"], f32>) -> !graph.tensor<[6, "s", "s"], f32>
  // The two have other leading axes.
  // CHECK: graph.call "aten.matmul.default"({{.*}}) {{.*}} -> !graph.tensor<[6, "s", "s"], f32>
  // CHECK-NEXT: graph.call "aten.view.default"
  %e = graph.call "aten.view.default"(%d) {self = #graph.operand<0>, size = [2, 3, "s", "s"]} in "" : (!graph.tensor<[6, "s", "s"], f32>) -> !graph.tensor<[2, 3, "s", "s"], f32>
  graph.return %e : !graph.tensor<[2, 3, "s", "s"], f32>
}

// CHECK-LABEL: graph.program @repeated
graph.program @repeated tokens "s" {
  %q = graph.input "q" as "activation" : !graph.tensor<[1, 2, "s", 4], f32>
  %k = graph.input "k" as "activation" : !graph.tensor<[2, 4, "s"], f32>
  // CHECK: [[A:%.*]] = graph.call "aten.expand.default"
  %a = graph.call "aten.expand.default"(%q) {self = #graph.operand<0>, size = [3, 2, "s", 4]} in "" : (!graph.tensor<[1, 2, "s", 4], f32>) -> !graph.tensor<[3, 2, "s", 4], f32>
  %b = graph.call "aten.view.default"(%a) {self = #graph.operand<0>, size = [6, "s", 4]} in "" : (!graph.tensor<[3, 2, "s", 4], f32>) -> !graph.tensor<[6, "s", 4], f32>
  %e = graph.call "aten.expand.default"(%k) {self = #graph.operand<0>, size = [3, 2, 4, "s"]} in "" : (!graph.tensor<[2, 4, "s"], f32>) -> !graph.tensor<[3, 2, 4, "s"], f32>
  %c = graph.call "aten.view.default"(%e) {self = #graph.operand<0>, size = [6, 4, "s"]} in "" : (!graph.tensor<[3, 2, 4, "s"], f32>) -> !graph.tensor<[6, 4, "s"], f32>
  // The first axis is repeated for both, so that the product needs it of one.
  // CHECK: graph.call "aten.matmul.default"([[A]], %{{.*}}) {{.*}} : (!graph.tensor<[3, 2, "s", 4], f32>, !graph.tensor<[2, 4, "s"], f32>)
  %d = graph.call "aten.bmm.default"(%b, %c) {self = #graph.operand<0>, mat2 = #graph.operand<1>} in "" : (!graph.tensor<[6, "s", 4], f32>, !graph.tensor<[6, 4, "s"], f32>) -> !graph.tensor<[6, "s", "s"], f32>
  %f = graph.call "aten.view.default"(%d) {self = #graph.operand<0>, size = [3, 2, "s", "s"]} in "" : (!graph.tensor<[6, "s", "s"], f32>) -> !graph.tensor<[3, 2, "s", "s"], f32>
  graph.return %f : !graph.tensor<[3, 2, "s", "s"], f32>
}

!positions = !graph.tensor<[1, "s"], si64>
!more = !graph.tensor<[1, "s + 1"], si64>

// CHECK-LABEL: graph.program @differences
graph.program @differences tokens "s" {
  %p = graph.input "position_ids" as "position" : !positions
  %f = graph.input "first" as "position" : !graph.tensor<[1, 1], si64>
  %c = graph.call "aten.cat.default"(%f, %p) {tensors = [#graph.operand<0>, #graph.operand<1>], dim = -1} in "" : (!graph.tensor<[1, 1], si64>, !positions) -> !more
  %e = graph.call "aten.slice.Tensor"(%c) {self = #graph.operand<0>, dim = -1, start = 0} in "" : (!more) -> !positions
  %l = graph.call "aten.slice.Tensor"(%c) {self = #graph.operand<0>, dim = -1, start = 1} in "" : (!more) -> !positions
  // CHECK: graph.call "aten.diff.default"(%{{.*}}, %{{.*}}) {dim = -1 : i64, n = 1 : i64, prepend = #graph.operand<1>, self = #graph.operand<0>}
  %d = graph.call "aten.sub.Tensor"(%l, %e) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!positions, !positions) -> !positions
  // The earlier minus the later.
  // CHECK: graph.call "aten.sub.Tensor"
  %r = graph.call "aten.sub.Tensor"(%e, %l) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!positions, !positions) -> !positions
  // CHECK: graph.call "aten.rsub.Scalar"(%{{.*}}) {other = 1 : i64, self = #graph.operand<0>}
  %o = graph.call "aten.sub.Tensor"(%p) {self = 1, other = #graph.operand<0>} in "" : (!positions) -> !positions
  // CHECK: graph.call "aten.sub.Tensor"(%{{.*}}) {other = 1 : i64, self = #graph.operand<0>}
  %u = graph.call "aten.sub.Tensor"(%p) {self = #graph.operand<0>, other = 1} in "" : (!positions) -> !positions
  graph.return %d, %r, %o, %u : !positions, !positions, !positions, !positions
}

!wide = !graph.tensor<[1, "s", 4], f32>
!flags = !graph.tensor<[1, "s", 4], i1>
!number = !graph.tensor<[], f32>

// CHECK-LABEL: graph.program @choices
graph.program @choices tokens "s" {
  %x = graph.input "x" as "activation" : !wide
  %o = graph.call "aten.gt.Scalar"(%x) {self = #graph.operand<0>, other = 20} in "" : (!wide) -> !flags
  %p = graph.call "aten.exp.default"(%x) {self = #graph.operand<0>} in "" : (!wide) -> !wide
  %l = graph.call "aten.log1p.default"(%p) {self = #graph.operand<0>} in "" : (!wide) -> !wide
  // CHECK: graph.call "aten.softplus.default"(%{{.*}}) {self = #graph.operand<0>}
  %s = graph.call "aten.where.self"(%o, %x, %l) {condition = #graph.operand<0>, self = #graph.operand<1>, other = #graph.operand<2>} in "" : (!flags, !wide, !wide) -> !wide
  // Where 5 is the limit, the two parts differ.
  // CHECK: graph.call "aten.where.self"
  %m = graph.call "aten.gt.Scalar"(%x) {self = #graph.operand<0>, other = 5} in "" : (!wide) -> !flags
  %t = graph.call "aten.where.self"(%m, %x, %l) {condition = #graph.operand<0>, self = #graph.operand<1>, other = #graph.operand<2>} in "" : (!flags, !wide, !wide) -> !wide
  // CHECK: graph.call "aten.masked_fill.Scalar"(%{{.*}}, %{{.*}}) {mask = #graph.operand<1>, self = #graph.operand<0>, value = 0 : i64}
  %z = graph.call "aten.full.default"() {size = [], fill_value = 0} in "" : () -> !number
  %g = graph.call "aten.where.self"(%o, %z, %x) {condition = #graph.operand<0>, self = #graph.operand<1>, other = #graph.operand<2>} in "" : (!flags, !number, !wide) -> !wide
  // The number stands where the condition does not hold.
  // CHECK: graph.call "aten.where.self"
  %h = graph.call "aten.where.self"(%o, %x, %z) {condition = #graph.operand<0>, self = #graph.operand<1>, other = #graph.operand<2>} in "" : (!flags, !wide, !number) -> !wide
  graph.return %s, %t, %g, %h : !wide, !wide, !wide, !wide
}

// CHECK-LABEL: graph.program @others
graph.program @others tokens "s" {
  %x = graph.input "x" as "activation" : !wide
  %w = graph.stored "norm.weight" : !graph.tensor<[4], f32>
  %b = graph.stored "norm.bias" : !graph.tensor<[4], f32>
  // CHECK: graph.call "aten.layer_norm.default"({{.*}}) {{.*}} -> !graph.tensor<[1, "s", 4], f32>
  %n:3 = graph.call "aten.native_layer_norm.default"(%x, %w, %b) {input = #graph.operand<0>, normalized_shape = [4], weight = #graph.operand<1>, bias = #graph.operand<2>, eps = 1.0e-5} in "" : (!wide, !graph.tensor<[4], f32>, !graph.tensor<[4], f32>) -> (!wide, !graph.tensor<[1, "s", 1], f32>, !graph.tensor<[1, "s", 1], f32>)
  // Its mean is read as well.
  // CHECK: graph.call "aten.native_layer_norm.default"
  %m:3 = graph.call "aten.native_layer_norm.default"(%x, %w, %b) {input = #graph.operand<0>, normalized_shape = [4], weight = #graph.operand<1>, bias = #graph.operand<2>, eps = 1.0e-5} in "" : (!wide, !graph.tensor<[4], f32>, !graph.tensor<[4], f32>) -> (!wide, !graph.tensor<[1, "s", 1], f32>, !graph.tensor<[1, "s", 1], f32>)
  // CHECK: graph.call "aten.squeeze.dim"({{.*}}) {dim = 2 : i64, self = #graph.operand<0>}
  %s = graph.call "aten.squeeze.dims"(%m#1) {self = #graph.operand<0>, dim = [2]} in "" : (!graph.tensor<[1, "s", 1], f32>) -> !graph.tensor<[1, "s"], f32>
  %t = graph.call "aten.permute.default"(%n#0) {self = #graph.operand<0>, dims = [0, 2, 1]} in "" : (!wide) -> !graph.tensor<[1, 4, "s"], f32>
  %k = graph.stored "conv.weight" : !graph.tensor<[4, 1, 3], f32>
  // CHECK: graph.call "aten.conv1d.default"({{.*}}) {dilation = [1], groups = 4 : i64, input = #graph.operand<0>, padding = [2], stride = [1], weight = #graph.operand<1>}
  %c = graph.call "aten.convolution.default"(%t, %k) {input = #graph.operand<0>, weight = #graph.operand<1>, stride = [1], padding = [2], dilation = [1], transposed = false, output_padding = [0], groups = 4} in "" : (!graph.tensor<[1, 4, "s"], f32>, !graph.tensor<[4, 1, 3], f32>) -> !graph.tensor<[1, 4, "s + 2"], f32>
  // CHECK: graph.call "aten.convolution.default"
  %d = graph.call "aten.convolution.default"(%t, %k) {input = #graph.operand<0>, weight = #graph.operand<1>, stride = [1], padding = [2], dilation = [1], transposed = true, output_padding = [0], groups = 4} in "" : (!graph.tensor<[1, 4, "s"], f32>, !graph.tensor<[4, 1, 3], f32>) -> !graph.tensor<[1, 4, "s - 2"], f32>
  graph.return %m#0, %s, %c, %d : !wide, !graph.tensor<[1, "s"], f32>, !graph.tensor<[1, 4, "s + 2"], f32>, !graph.tensor<[1, 4, "s - 2"], f32>
}

// CHECK-LABEL: graph.program @composed
graph.program @composed tokens "s" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 6], f32>
  %w = graph.stored "w" : !graph.tensor<[6, 4], f32>
  %a = graph.stored "a" : !graph.tensor<[6, 2], f32>
  %b = graph.stored "b" : !graph.tensor<[2, 4], f32>
  %ab = graph.call "aten.matmul.default"(%a, %b) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[6, 2], f32>, !graph.tensor<[2, 4], f32>) -> !graph.tensor<[6, 4], f32>
  %scaled = graph.call "aten.mul.Tensor"(%ab) {self = #graph.operand<0>, other = 2.000000e+00 : f64} in "" : (!graph.tensor<[6, 4], f32>) -> !graph.tensor<[6, 4], f32>
  %sum = graph.call "aten.add.Tensor"(%w, %scaled) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[6, 4], f32>, !graph.tensor<[6, 4], f32>) -> !graph.tensor<[6, 4], f32>
  // x (W + 2 A B) = x W + 2 (x A) B
  // CHECK: [[OWN:%.*]] = graph.call "aten.matmul.default"(%{{.*}}, %{{.*}}) {{.*}} : (!graph.tensor<[1, "s", 6], f32>, !graph.tensor<[6, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  // CHECK: [[THIN:%.*]] = graph.call "aten.matmul.default"{{.*}} -> !graph.tensor<[1, "s", 2], f32>
  // CHECK: [[BACK:%.*]] = graph.call "aten.matmul.default"([[THIN]], %{{.*}}) {{.*}} -> !graph.tensor<[1, "s", 4], f32>
  // CHECK: [[TWICE:%.*]] = graph.call "aten.mul.Tensor"([[BACK]])
  // CHECK: [[ALL:%.*]] = graph.call "aten.add.Tensor"([[OWN]], [[TWICE]])
  // CHECK: graph.return [[ALL]]
  %y = graph.call "aten.matmul.default"(%x, %sum) {self = #graph.operand<0>, other = #graph.operand<1>} in "" : (!graph.tensor<[1, "s", 6], f32>, !graph.tensor<[6, 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
  graph.return %y : !graph.tensor<[1, "s", 4], f32>
}
