// What the upstream conversion to SPIR-V needs before it: a target, and reads within bounds.
// RUN: ctxc-opt %s --ctxc-gpu-prepare-spirv=lanes=16 | FileCheck %s

// CHECK-NOT: func.func
// CHECK: gpu.module @kernels attributes {spirv.target_env = {{.*}}subgroup_size = 16
// CHECK: gpu.func @meet(
// CHECK-NOT: workgroup(
// CHECK-SAME: spirv.entry_point_abi = #spirv.entry_point_abi<workgroup_size = [64, 1, 1]>
// CHECK: memref.alloc() : memref<64xf32, #spirv.storage_class<Workgroup>>
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: arith.select %{{.*}}, %[[SUM]], %{{.*}} : f32
module attributes {gpu.container_module} {
  func.func private @launches(%to: memref<64xf32>, %n: index) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@meet blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%to : memref<64xf32>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @meet(%to: memref<64xf32>, %n: index) workgroup(%shared : memref<64xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %i = gpu.thread_id x
      %x = memref.load %to[%i] : memref<64xf32>
      memref.store %x, %shared[%i] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %x) -> f32 {
        %y = memref.load %shared[%k] : memref<64xf32, #gpu.address_space<workgroup>>
        %t = arith.addf %s, %y : f32
        scf.yield %t : f32
      }
      memref.store %sum, %to[%i] : memref<64xf32>
      gpu.return
    }
  }
}
