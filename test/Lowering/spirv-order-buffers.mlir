// Upstream's barrier orders the memory of a workgroup alone; the threads of ours also meet in buffers.
// RUN: ctxc-opt %s --pass-pipeline='builtin.module(ctxc-gpu-prepare-spirv,map-memref-spirv-storage-class,convert-gpu-to-spirv)' | FileCheck %s --check-prefix=BEFORE
// RUN: ctxc-opt %s --pass-pipeline='builtin.module(ctxc-gpu-prepare-spirv,map-memref-spirv-storage-class,convert-gpu-to-spirv,spirv.module(ctxc-spirv-order-buffers))' | FileCheck %s

// BEFORE: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|UniformMemory|WorkgroupMemory>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @meet(%to: memref<64xf32>) workgroup(%shared : memref<64xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      %x = memref.load %to[%i] : memref<64xf32>
      memref.store %x, %shared[%i] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %y = memref.load %shared[%i] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %y, %to[%i] : memref<64xf32>
      gpu.return
    }
  }
}
