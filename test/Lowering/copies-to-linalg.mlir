// RUN: ctxc-opt %s --ctxc-copies-to-linalg | FileCheck %s --implicit-check-not=memref.copy

// A copy becomes a linalg op, whatever its strides are.
// CHECK-LABEL: func.func @copy(
// CHECK-SAME: %[[FROM:.*]]: memref<4x8xf32, strided<[16, 1]>>, %[[TO:.*]]: memref<4x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[FROM]] : memref<4x8xf32, strided<[16, 1]>>) outs(%[[TO]] : memref<4x8xf32>)
func.func @copy(%from: memref<4x8xf32, strided<[16, 1]>>, %to: memref<4x8xf32>) {
  memref.copy %from, %to : memref<4x8xf32, strided<[16, 1]>> to memref<4x8xf32>
  return
}

// A copy of a memref to itself is removed.
// CHECK-LABEL: func.func @itself(
// CHECK-NEXT: return
func.func @itself(%x: memref<4xf32>) {
  memref.copy %x, %x : memref<4xf32> to memref<4xf32>
  return
}
