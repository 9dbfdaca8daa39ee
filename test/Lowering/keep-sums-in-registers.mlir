// RUN: ctxc-opt %s --ctxc-linalg-to-loops --canonicalize --loop-invariant-code-motion --ctxc-keep-sums-in-registers | FileCheck %s
// RUN: ctxc-opt %s --canonicalize --loop-invariant-code-motion --ctxc-keep-sums-in-registers --ctxc-linalg-to-loops | FileCheck %s --check-prefix=BEFORE

// CHECK-LABEL: func.func @least(
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[FIRST:.*]] = memref.load %arg1[%[[I]]]
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = %[[FIRST]]) -> (f32)
// CHECK-NEXT: memref.load %arg0
// CHECK-NEXT: %[[NEXT:.*]] = arith.minimumf %[[SO_FAR]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: memref.store %[[LAST]], %arg1[%[[I]]]
// BEFORE-NOT: iter_args
func.func @least(%a: memref<4x33xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x33xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.minimumf %s, %x : f32
    linalg.yield %t : f32
  }
  return
}

// Where the inner loop goes over several sums, none of them is kept in a register.
// CHECK-LABEL: func.func @columns(
// CHECK-NOT: iter_args
// CHECK: return
func.func @columns(%a: memref<33x4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>],
                  iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<33x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.minimumf %s, %x : f32
    linalg.yield %t : f32
  }
  return
}

// A loop that is not made from linalg keeps its loads and stores: %a may alias %y.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: iter_args
// CHECK: return
func.func @others(%a: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %s = memref.load %y[%c0] : memref<?xf32>
    %x = memref.load %a[%k] : memref<?xf32>
    %t = arith.addf %s, %x : f32
    memref.store %t, %y[%c0] : memref<?xf32>
  }
  return
}
