// What a marked loop says of its accesses is told to LLVM, which keeps it at each load and store.
// RUN: ctxc-opt %s --ctxc-linalg-to-loops --canonicalize --ctxc-mark-parallel-loops --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts --ctxc-mark-parallel-accesses | FileCheck %s
// RUN: ctxc-opt %s --ctxc-linalg-to-loops --canonicalize --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts --ctxc-mark-parallel-accesses | FileCheck %s --check-prefix=UNMARKED

// CHECK: #[[GROUP:.*]] = #llvm.access_group
// CHECK: #[[LOOP:.*]] = #llvm.loop_annotation<parallelAccesses = #[[GROUP]]>
// CHECK-LABEL: llvm.func @square(
// CHECK: llvm.load {{.*}}access_groups = [#[[GROUP]]]
// CHECK: llvm.store {{.*}}access_groups = [#[[GROUP]]]
// CHECK: llvm.br {{.*}}loop_annotation = #[[LOOP]]
// UNMARKED-NOT: access_groups
func.func @square(%a: memref<64xf32>, %y: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.mulf %x, %x : f32
    linalg.yield %t : f32
  }
  return
}

// A loop without a mark: an iteration may read what the one before wrote.
// CHECK-LABEL: llvm.func @shifted(
// CHECK-NOT: access_groups
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
