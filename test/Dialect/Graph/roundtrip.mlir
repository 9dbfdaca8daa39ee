// RUN: ctxc-opt %s | ctxc-opt | FileCheck %s

// CHECK-LABEL: graph.program @model tokens "s0"
graph.program @model tokens "s0" {
  // CHECK: graph.input "x" as "activation" : <[1, "s0", 4], f32>
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s0", 4], f32>
  // CHECK: graph.stored "w" fixed : <[4, 4], bf16>
  %w = graph.stored "w" fixed : !graph.tensor<[4, 4], bf16>
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
