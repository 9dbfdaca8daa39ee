// RUN: ctxc-opt %s --pass-pipeline='builtin.module(gpu.module(ctxc-gpu-expand-rotations))' | FileCheck %s

// CHECK-LABEL: gpu.func @rotate(
// CHECK-NOT: math.{{cos|sin}}
// CHECK: math.floor
// CHECK: math.fma
// CHECK-NOT: math.{{cos|sin}}
// CHECK: math.sqrt
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @rotate(%angle: f32, %to: memref<3xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cos = math.cos %angle : f32
    %sin = math.sin %angle : f32
    %root = math.sqrt %angle : f32
    memref.store %cos, %to[%c0] : memref<3xf32>
    memref.store %sin, %to[%c1] : memref<3xf32>
    memref.store %root, %to[%c2] : memref<3xf32>
    gpu.return
  }
}

// Functions for the processor are left as they are.
// CHECK-LABEL: func.func @host(
// CHECK: math.cos
func.func @host(%x: f32) -> f32 {
  %y = math.cos %x : f32
  return %y : f32
}
