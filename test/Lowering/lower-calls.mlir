// A kernel.call becomes a loop over the rows: memory is passed by the address of the row, but what the rows
// share by its own.
// RUN: ctxc-opt %s --ctxc-lower-calls --canonicalize --cse | FileCheck %s

// CHECK: func.func private @ctxc_rows_solve_scale(i32, i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func.func @scale(
// CHECK-SAME: %[[G:[^:]*]]: memref<?x64xf32>, %[[M:[^:]*]]: memref<64xf32>, %[[N:[^:]*]]: memref<?x64xf32>, %{{.*}}, %[[COUNTS:[^:]*]]: memref<?x3x2xi64>,
func.func @scale(%g: memref<?x64xf32>, %m: memref<64xf32>, %n: memref<?x64xf32>, %delta: memref<?x64xf32>,
                 %counts: memref<?x3x2xi64>, %scratch: memref<?x576xf64>) {
  // CHECK-DAG: %[[LEAST:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[D:.*]] = arith.constant 64 : i64
  // CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
  // CHECK-DAG: %[[BYTES:.*]] = arith.constant 256 : i64
  // CHECK-DAG: %[[PAIRS:.*]] = arith.constant 48 : i64
  // CHECK: memref.extract_aligned_pointer_as_index %[[G]]
  // CHECK: %[[GP:.*]] = llvm.inttoptr
  // CHECK: memref.extract_aligned_pointer_as_index %[[M]]
  // CHECK: %[[MP:.*]] = llvm.inttoptr
  // CHECK: memref.extract_aligned_pointer_as_index %[[N]]
  // CHECK: %[[COUNT0:.*]] = memref.extract_aligned_pointer_as_index %{{.*}} : memref<?x2xi64
  // CHECK: arith.addi %[[COUNT0]], %[[C16]]
  // CHECK: %[[COUNTSP:.*]] = llvm.inttoptr
  // CHECK: %[[ROWS:.*]] = memref.dim %{{.*}}, %c0 : memref<?x576xf64>
  // CHECK: scf.for %[[I:.*]] = %c0 to %[[ROWS]] step %c1 {
  // CHECK: %[[ROW:.*]] = arith.index_cast %[[I]] : index to i64
  // CHECK: %[[AT:.*]] = arith.muli %[[ROW]], %[[BYTES]] : i64
  // CHECK: %[[GROW:.*]] = llvm.getelementptr %[[GP]][%[[AT]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  // CHECK: arith.muli %[[ROW]], %[[PAIRS]] : i64
  // CHECK: llvm.getelementptr %[[COUNTSP]]
  // CHECK: func.call @ctxc_rows_solve_scale(%[[LEAST]], %[[ONE]], %[[D]], %[[GROW]], %[[MP]],
  // CHECK: } {kernel.row_loop}
  %c0 = arith.constant 0 : index
  %rows = memref.dim %g, %c0 : memref<?x64xf32>
  %count = memref.subview %counts[0, 1, 0] [%rows, 1, 2] [1, 1, 1] : memref<?x3x2xi64> to memref<?x2xi64, strided<[6, 1], offset: 2>>
  kernel.call @ctxc_rows_solve_scale [0 : i32, 1, 64] (%g, %m, %n, %delta, %count, %scratch)
      : memref<?x64xf32>, memref<64xf32>, memref<?x64xf32>, memref<?x64xf32>, memref<?x2xi64, strided<[6, 1], offset: 2>>, memref<?x576xf64>
  return
}

// One address where memory is passed twice, in whatever type.
// CHECK-LABEL: func.func @twice(
// CHECK-COUNT-2: memref.extract_aligned_pointer_as_index
// CHECK-NOT: memref.extract_aligned_pointer_as_index
// CHECK: func.call @ctxc_rows_count_different(
func.func @twice(%a: memref<?x3xi32>, %counts: memref<?x2xi64>) {
  %b = memref.cast %a : memref<?x3xi32> to memref<?x3xi32, strided<[3, 1], offset: ?>>
  kernel.call @ctxc_rows_count_different [1, 3] (%a, %b, %counts)
      : memref<?x3xi32>, memref<?x3xi32, strided<[3, 1], offset: ?>>, memref<?x2xi64>
  return
}
