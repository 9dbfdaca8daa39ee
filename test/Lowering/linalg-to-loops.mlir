// RUN: split-file %s %t
// RUN: ctxc-opt %t/loops.mlir --ctxc-linalg-to-loops | FileCheck %t/loops.mlir
// RUN: ctxc-opt %t/tensors.mlir --ctxc-linalg-to-loops --verify-diagnostics

//--- loops.mlir
// A sum along the last dimension that may be reassociated: vectors of 16 lanes, whose halves are
// then added.
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>)
// CHECK: vector.load
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NOT: linalg
// CHECK: return
func.func @sum(%a: memref<4x33xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x33xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x fastmath<reassoc> : f32
    linalg.yield %t : f32
  }
  return
}

// A sum in a given order becomes scalar loops, with marks.
// CHECK-LABEL: func.func @ordered(
// CHECK-NOT: vector
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load
// CHECK: memref.load
// CHECK: arith.addf
// CHECK: memref.store
// CHECK: } {{{.*}}linalg_loop
// CHECK: } {{{.*}}linalg_loop
func.func @ordered(%a: memref<4x33xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x33xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  }
  return
}

//--- tensors.mlir
func.func @tensors(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{found on tensors, expected on memrefs: run ctxc-bufferize before ctxc-linalg-to-loops}}
  %z = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
  return %z : tensor<4xf32>
}
