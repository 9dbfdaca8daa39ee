// Keys and values of earlier tokens are not copied: a kernel writes its S rows behind them and
// reads all of them. (NONE tests upstream's passes alone.)
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize | FileCheck %s
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --resolve-shaped-type-result-dims --one-shot-bufferize --canonicalize --cse | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: func.func private @attend(
// CHECK-SAME: %[[K:[a-z0-9]+]]: memref<?x2x2xf32> {kernel.arg = #kernel.arg<state>}
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<?x2x3xf32> {kernel.arg = #kernel.arg<state, index = 1>}
// CHECK: %[[S:.*]] = memref.dim %arg0
// CHECK: %[[SEEN:.*]] = arith.subi %{{.*}}, %[[S]]
// CHECK: %[[NEWK:.*]] = memref.subview %[[K]][%[[SEEN]], 0, 0] [%[[S]], 2, 2]
// CHECK: memref.copy %{{.*}}, %[[NEWK]]
// CHECK: %[[NEWV:.*]] = memref.subview %[[V]][%[[SEEN]], 0, 0] [%[[S]], 2, 3]
// CHECK: memref.copy %{{.*}}, %[[NEWV]]
// CHECK: kernel.attention(%{{.*}}, %[[K]], %[[V]]) causal

// S rows are copied twice, including the output, and nothing else is copied; there is no second
// cache.
// NONE-LABEL: func.func private @attend(
// NONE-NOT: memref.alloc{{.*}}: memref<?x2x3xf32>
// NONE-NOT: memref.copy
// NONE: memref.copy %{{.*}}, %subview
// NONE-NOT: memref.alloc{{.*}}: memref<?x2x3xf32>
// NONE-NOT: memref.copy
// NONE: memref.copy %{{.*}}, %subview
// NONE-NOT: memref.alloc{{.*}}: memref<?x2x3xf32>
// NONE-NOT: memref.copy
// NONE: memref.copy %{{.*}}, %arg3 : memref<?x8xf32>
// NONE-NOT: memref.copy
// NONE: return
xf.block @attend(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Q = xf.param "q.weight" : tensor<8x8xf32>
  %K = xf.param "k.weight" : tensor<4x8xf32>
  %V = xf.param "v.weight" : tensor<6x8xf32>
  %O = xf.param "o.weight" : tensor<8x12xf32>
  %q = xf.linear %Q * %x : tensor<8x8xf32>, tensor<8xf32>
  %k = xf.linear %K * %x : tensor<4x8xf32>, tensor<8xf32>
  %v = xf.linear %V * %x : tensor<6x8xf32>, tensor<8xf32>
  %qh = xf.reshape %q : tensor<8xf32> to tensor<4x2xf32>
  %kh = xf.reshape %k : tensor<4xf32> to tensor<2x2xf32>
  %vh = xf.reshape %v : tensor<6xf32> to tensor<2x3xf32>
  %a = xf.attention %qh, %kh, %vh scale 0.5 : tensor<4x2xf32>, tensor<2x2xf32>, tensor<2x3xf32> -> tensor<4x3xf32>
  %f = xf.reshape %a : tensor<4x3xf32> to tensor<12xf32>
  %y = xf.linear %O * %f : tensor<8x12xf32>, tensor<12xf32>
  %r = xf.add %x, %y : tensor<8xf32>
  xf.yield %r : tensor<8xf32>
}

// Each row of a dual block's reduced run is a sequence of its own: the kept tokens' state is read
// and not written, and the score of the row's own key is computed beside the kept ones.
// CHECK-LABEL: func.func private @alone(
// CHECK-SAME: %[[K:[a-z0-9]+]]: memref<?x2x2xf32> {kernel.arg = #kernel.arg<state, run = reduced>}
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<?x2x2xf32> {kernel.arg = #kernel.arg<state, index = 1, run = reduced>}
// CHECK: %[[KEPT:.*]] = arith.subi %{{.*}}, %c1
// CHECK-DAG: %[[KEPTV:.*]] = memref.subview %[[V]][0, 0, 0] [%[[KEPT]], 2, 2]
// CHECK-DAG: %[[KEPTK:.*]] = memref.subview %[[K]][0, 0, 0] [%[[KEPT]], 2, 2]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : memref<?x2x2x2xf32>, memref<?x2x2xf32>)
// CHECK: kernel.attention(%{{.*}}, %[[KEPTK]], %[[KEPTV]]) others({{.*}} own(
// NONE-LABEL: func.func private @alone(
// NONE-NOT: memref.copy
// NONE: memref.copy %{{.*}}, %arg4 : memref<?x4x2xf32>
// NONE-NOT: memref.copy
// NONE: return
xf.block @alone(%q: tensor<4x2xf32>, %k: tensor<2x2xf32>) -> tensor<4x2xf32> {
  %a = xf.attention %q, %k, %k scale 0.5 run reduced : tensor<4x2xf32>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<4x2xf32>
  xf.yield %a : tensor<4x2xf32>
}
