// RUN: split-file %s %t
// RUN: ctxc-opt %t/two.mlir --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-place-buffers --canonicalize | FileCheck %t/two.mlir
// RUN: ctxc-opt %t/refused.mlir --ctxc-place-buffers --split-input-file --verify-diagnostics

//--- two.mlir
// Both buffers are in the workspace: 12 bytes for each row, rounded up to 64, followed by 20 bytes
// for each row.
// CHECK-LABEL: func.func private @two(
// CHECK-NOT: memref.alloc
// CHECK: %[[WORKSPACE:.*]] = llvm.load
// CHECK: arith.muli %{{.*}}, %c12
// CHECK: %[[UP:.*]] = arith.addi %{{.*}}, %c63
// CHECK: %[[LINES:.*]] = arith.shrui %[[UP]], %c6
// CHECK: %[[SECOND:.*]] = arith.shli %[[LINES]], %c6
// CHECK: %[[OFFSET:.*]] = arith.index_cast %[[SECOND]]
// CHECK: llvm.getelementptr %[[WORKSPACE]][%[[OFFSET]]]
// CHECK-NOT: memref.alloc
// CHECK: func.func @two_workspace(%[[ROWS:.*]]: i64, %{{.*}}: i64, %{{.*}}: i64) -> i64
// CHECK: %[[S:.*]] = arith.index_cast %[[ROWS]]
// CHECK-DAG: arith.muli %[[S]], %c12
// CHECK-DAG: arith.muli %[[S]], %c20
// CHECK: return
xf.block @two(%x: tensor<3xf32>) -> tensor<5xf32> {
  %W = xf.param "w" : tensor<5x3xf32>
  %a = xf.activation exp %x : tensor<3xf32>
  %y = xf.linear %W * %a : tensor<5x3xf32>, tensor<3xf32>
  xf.yield %y : tensor<5xf32>
}

//--- refused.mlir
func.func private @loop(%positions: memref<?xi32> {kernel.arg = #kernel.arg<positions>}, %call: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %positions, %c0 : memref<?xi32>
  scf.for %i = %c0 to %rows step %c1 {
    // expected-error @below {{a buffer inside a loop cannot be placed in the workspace}}
    %a = memref.alloc() : memref<4xf32>
  }
  return
}

// -----

func.func private @size(%positions: memref<?xi32> {kernel.arg = #kernel.arg<positions>}, %call: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %position = memref.load %positions[%c0] : memref<?xi32>
  %size = arith.index_cast %position : i32 to index
  // expected-error @below {{the size of a buffer does not follow from rows and visible tokens}}
  %a = memref.alloc(%size) : memref<?xf32>
  return
}
