// Loops that are made from linalg ops say which of their accesses are independent between iterations.
// RUN: ctxc-opt %s --ctxc-linalg-to-loops --canonicalize --ctxc-mark-parallel-loops | FileCheck %s
// RUN: ctxc-opt %s --canonicalize --ctxc-mark-parallel-loops --ctxc-linalg-to-loops | FileCheck %s --check-prefix=BEFORE

// CHECK: #[[LOOP:.*]] = #llvm.loop_annotation<parallelAccesses
// CHECK-LABEL: func.func @square(
// CHECK: } {{{.*}}llvm.loop_annotation = #[[LOOP]]
// BEFORE-NOT: loop_annotation
func.func @square(%a: memref<64xf32>, %y: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.mulf %x, %x : f32
    linalg.yield %t : f32
  }
  return
}

// A loop that is not made from linalg is left as it is: an iteration may read what the one before
// wrote.
// CHECK-LABEL: func.func @shifted(
// CHECK-NOT: loop_annotation
func.func @shifted(%y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  scf.for %i = %c0 to %c63 step %c1 {
    %next = arith.addi %i, %c1 : index
    %x = memref.load %y[%i] : memref<64xf32>
    memref.store %x, %y[%next] : memref<64xf32>
  }
  return
}
