// RUN: ctxc-opt %s --ctxc-blocks-to-linalg | FileCheck %s
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg | FileCheck %s --check-prefix=SWEEPS

// The arguments of a kernel have roles.
// CHECK-LABEL: func.func private @ffn(
// CHECK-SAME: %{{.*}}: memref<?xi32> {kernel.arg = #kernel.arg<positions>}
// CHECK-SAME: %{{.*}}: memref<?xi32> {kernel.arg = #kernel.arg<tokens>}
// CHECK-SAME: %[[X:.*]]: memref<?x33xf32> {kernel.arg = #kernel.arg<input>}
// CHECK-SAME: %[[Y:.*]]: memref<?x33xf32> {kernel.arg = #kernel.arg<output>}
// CHECK-SAME: %[[UP:.*]]: memref<45x33xbf16> {kernel.arg = #kernel.arg<param, name = "up.weight">}
// CHECK-SAME: %[[DOWN:.*]]: memref<33x45xbf16> {kernel.arg = #kernel.arg<param, name = "down.weight">}
// CHECK-SAME: %{{.*}}: !llvm.ptr) {
// CHECK-DAG: %[[W:.*]] = bufferization.to_tensor %[[UP]] restrict
// CHECK-DAG: %[[V:.*]] = bufferization.to_tensor %[[DOWN]] restrict

// Each weight has one contraction, with the weight's stored type.
// CHECK: %[[H:.*]] = kernel.contract %[[W]] * %{{.*}} into %{{.*}} : tensor<45x33xbf16>, tensor<?x33xf32>, tensor<?x45xf32>
// CHECK: kernel.contract %[[V]] * %{{.*}} into %{{.*}} : tensor<33x45xbf16>, tensor<?x45xf32>, tensor<?x33xf32>
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[Y]]
xf.block @ffn(%x: tensor<33xf32>) -> tensor<33xf32> {
  %W = xf.param "up.weight" : tensor<45x33xbf16>
  %V = xf.param "down.weight" : tensor<33x45xbf16>
  %n = xf.normalize rms %x eps 1.0e-6 : tensor<33xf32>
  %h = xf.linear %W * %n : tensor<45x33xbf16>, tensor<33xf32>
  %a = xf.activation silu %h : tensor<45xf32>
  %y = xf.linear %V * %a : tensor<33x45xbf16>, tensor<45xf32>
  %r = xf.add %x, %y : tensor<33xf32>
  xf.yield %r : tensor<33xf32>
}

// Packed linears are a single contraction over the rows of both runs.
// SWEEPS-LABEL: func.func private @packed(
// SWEEPS: %[[TWICE:.*]] = arith.muli %[[S:.*]], %c2
// SWEEPS: tensor.empty(%[[TWICE]]) : tensor<?x7xf32>
// SWEEPS-COUNT-1: kernel.contract {{.*}} : tensor<5x7xf16>, tensor<?x7xf32>
// SWEEPS-NOT: tensor<5x7xf16>
// SWEEPS: return
xf.block @packed(%a: tensor<7xf32>, %b: tensor<7xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %W = xf.param "w" : tensor<5x7xf16>
  %y:2 = patch.linears %W * (%a, %b) : tensor<5x7xf16>, (tensor<7xf32>, tensor<7xf32>) -> (tensor<5xf32>, tensor<5xf32>)
  xf.yield %y#0, %y#1 : tensor<5xf32>, tensor<5xf32>
}

// A dual block reads the states of both runs, and returns its patch and counts.
// CHECK-LABEL: func.func private @streams(
// CHECK-SAME: memref<?x1x2xf32> {kernel.arg = #kernel.arg<state>}
// CHECK-SAME: memref<?x1x2xf32> {kernel.arg = #kernel.arg<state, index = 1>}
// CHECK-SAME: memref<?x1x2xf32> {kernel.arg = #kernel.arg<state, index = 2, run = reduced>}
// CHECK-SAME: memref<?x1x2xf32> {kernel.arg = #kernel.arg<state, index = 3, run = reduced>}
// CHECK-SAME: memref<?xi32> {kernel.arg = #kernel.arg<slots>}
// CHECK-SAME: memref<?xi32> {kernel.arg = #kernel.arg<slots, run = reduced>}
// CHECK-SAME: memref<?x2xf32> {kernel.arg = #kernel.arg<store, name = "b">}
// CHECK-SAME: memref<?x1x2xi64> {kernel.arg = #kernel.arg<counts>}
// CHECK-SAME: memref<?xf64> {kernel.arg = #kernel.arg<replay>}
xf.block @streams(%x: tensor<1x2xf32>, %y: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %a = xf.attention %x, %x, %x scale 1.0 run full : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
  %b = xf.attention %y, %y, %y scale 1.0 run reduced : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
  %d = xf.sub %a, %b : tensor<1x2xf32>
  %f = xf.reshape %d : tensor<1x2xf32> to tensor<2xf32>
  patch.obligation nonzero_vector %f counts 0 "Lemma 1" : tensor<2xf32>
  patch.store "b" %f : tensor<2xf32>
  xf.yield %d : tensor<1x2xf32>
}

// Of a part of a table, other ids are those of no row, for which there are zeros.
// CHECK-LABEL: func.func private @rows_of_part(
// CHECK: %[[PLACE:.*]] = arith.subi %{{.*}}, %c50_i32
// CHECK-NEXT: %[[THERE:.*]] = arith.cmpi ult, %[[PLACE]], %c7_i32
// CHECK: arith.select %[[THERE]], %[[PLACE]], %c0_i32
// CHECK: arith.uitofp
// CHECK: tensor.extract %{{.*}} : tensor<7x4xf32>
// CHECK: arith.mulf
xf.block @rows_of_part() -> tensor<4xf32> {
  %id = xf.token : tensor<i32>
  %E = xf.param "e" : tensor<7x4xf32>
  %y = xf.embed %E[%id] {kernel.rows_from = 50 : i32} : tensor<7x4xf32>, tensor<i32>
  xf.yield %y : tensor<4xf32>
}
