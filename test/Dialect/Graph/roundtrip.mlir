// RUN: ctxc-opt %s | ctxc-opt | FileCheck %s

// CHECK-LABEL: graph.program @model tokens "s0"
graph.program @model tokens "s0" {
  // CHECK: graph.input "x" as "activation" : <[1, "s0", 4], f32>
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s0", 4], f32>
  // CHECK: graph.stored "w" fixed : <[4, 4], bf16>
  %w = graph.stored "w" fixed : !graph.tensor<[4, 4], bf16>
  // CHECK: graph.stored "mask" fixed is dense<[1.000000e+00, 0.000000e+00]> : tensor<2xf64> : <[2], i1>
  %c = graph.stored "mask" fixed is dense<[1.0, 0.0]> : tensor<2xf64> : !graph.tensor<[2], i1>
  // CHECK: graph.call "aten.linear.default"(%{{.*}}, %{{.*}}) {input = #graph.operand<0>, weight = #graph.operand<1>} in "mlp.up"
  %y = graph.call "aten.linear.default"(%x, %w) {input = #graph.operand<0>, weight = #graph.operand<1>} in "mlp.up"
     : (!graph.tensor<[1, "s0", 4], f32>, !graph.tensor<[4, 4], bf16>) -> !graph.tensor<[1, "s0", 4], f32>
  // CHECK: in "" visible
  %m = graph.call "aten.ones.default"() {size = ["s0", "s0"]} in "" visible : () -> !graph.tensor<["s0", "s0"], i1>
  graph.return %y : !graph.tensor<[1, "s0", 4], f32>
}

xf.block @opaque(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: graph.opaque "aten.cumprod.default" why "none"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.opaque "aten.cumprod.default" why "none" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// CHECK: graph.function @sum tokens "s0" axes [1] result_axis 1 counted
graph.function @sum tokens "s0" axes [1] result_axis 1 counted {
^bb0(%x: !graph.tensor<[1, "s0", 4], f32>):
  %y = graph.call "aten.cumsum.default"(%x) {dim = 1 : i64, self = #graph.operand<0>} in ""
     : (!graph.tensor<[1, "s0", 4], f32>) -> !graph.tensor<[1, "s0", 4], f32>
  graph.return %y : !graph.tensor<[1, "s0", 4], f32>
}

xf.block @run(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: xf.contextual "sum"(%{{.*}}) {graph.body = @sum}
  %y = xf.contextual "sum"(%x) {graph.body = @sum} : (tensor<4xf32>) -> tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
