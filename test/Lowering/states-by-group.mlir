// The states of attention with several groups of heads, each group's in line.
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg="states-by-group" | FileCheck %s
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg | FileCheck %s --check-prefix=TOKEN
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg="states-by-group" --ctxc-cpu-pipeline=target=x86-64-v4 -o %t

// TOKEN-NOT: kernel.arg<room

// The kernel is told for how many tokens each group has memory: rows of 8 numbers, 8 times so many
// apart from group to group.
// CHECK-LABEL: func.func private @two(
// CHECK-SAME: %[[K:[a-z0-9]+]]: memref<?x2x8xf32> {kernel.arg = #kernel.arg<state>}
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<?x2x8xf32> {kernel.arg = #kernel.arg<state, index = 1>}
// CHECK-SAME: %[[ROOM:[a-z0-9]+]]: memref<1xi64> {kernel.arg = #kernel.arg<room>}
// CHECK: %[[NUMBER:.*]] = memref.load %[[ROOM]]
// CHECK: %[[TOKENS:.*]] = arith.index_cast %[[NUMBER]] : i64 to index
// CHECK: %[[APART:.*]] = arith.muli %[[TOKENS]], %c8
// CHECK: %[[VISIBLE:.*]] = memref.dim %[[K]], %c0
// CHECK: memref.reinterpret_cast %[[K]] to offset: [0], sizes: [%[[VISIBLE]], 2, 8], strides: [8, %[[APART]], 1]
// CHECK: memref.reinterpret_cast %[[V]]
// CHECK: kernel.attention
xf.block @two(%q: tensor<4x8xf32>, %k: tensor<2x8xf32>, %v: tensor<2x8xf32>) -> tensor<4x8xf32> {
  %a = xf.attention %q, %k, %v scale 1.0 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
  xf.yield %a : tensor<4x8xf32>
}

// A single group is in line as it is.
// CHECK-LABEL: func.func private @one(
// CHECK-NOT: kernel.arg<room
// CHECK-NOT: memref.reinterpret_cast
// CHECK: kernel.attention
xf.block @one(%q: tensor<4x8xf32>, %k: tensor<1x8xf32>, %v: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %a = xf.attention %q, %k, %v scale 1.0 : tensor<4x8xf32>, tensor<1x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  xf.yield %a : tensor<4x8xf32>
}

// Each run has its own memory.
// CHECK-LABEL: func.func private @streams(
// CHECK-SAME: kernel.arg<room>
// CHECK-SAME: kernel.arg<room, run = reduced>
xf.block @streams(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = xf.attention %x, %x, %x scale 1.0 run full : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %b = xf.attention %y, %y, %y scale 1.0 run reduced : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %d = xf.sub %a, %b : tensor<2x2xf32>
  xf.yield %d : tensor<2x2xf32>
}
