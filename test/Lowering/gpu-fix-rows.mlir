// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-gpu-fix-rows=rows=7 | FileCheck %s

// A function that is no kernel is left alone.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: memref<?xf32>
func.func @other(%x: memref<?xf32>) {
  return
}

// Rows are 7; how many tokens are seen stays unknown.
// CHECK-LABEL: func.func private @attend(
// CHECK-SAME: memref<7xi32>
// CHECK-SAME: memref<7xi32>
// CHECK-SAME: memref<7x1x2xf32>
// CHECK-SAME: memref<7x1x2xf32>
// CHECK-SAME: memref<?x1x2xf32>
// CHECK-SAME: memref<?x1x2xf32>
// CHECK-SAME: memref<?xi32>
// CHECK: memref.cast %{{.*}} : memref<7xi32> to memref<?xi32>
xf.block @attend(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %a = xf.attention %x, %x, %x scale 1.0 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
  xf.yield %a : tensor<1x2xf32>
}
