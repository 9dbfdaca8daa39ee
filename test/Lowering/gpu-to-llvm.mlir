// RUN: split-file %s %t
// RUN: ctxc-opt %t/sums.mlir --pass-pipeline='builtin.module(gpu.module(ctxc-gpu-to-llvm{target=cuda:sm_90}))' | FileCheck %t/sums.mlir --check-prefixes=CHECK,NVVM
// RUN: ctxc-opt %t/sums.mlir --pass-pipeline='builtin.module(gpu.module(ctxc-gpu-to-llvm{target=rocm:gfx90a}))' | FileCheck %t/sums.mlir --check-prefixes=CHECK,ROCDL
// RUN: not ctxc-opt %t/sums.mlir --pass-pipeline='builtin.module(gpu.module(ctxc-gpu-to-llvm{target=vulkan}))' 2>&1 | FileCheck %s --check-prefix=VULKAN
// RUN: not ctxc-opt %t/loop.mlir --pass-pipeline='builtin.module(gpu.module(ctxc-gpu-to-llvm))' 2>&1 | FileCheck %s --check-prefix=LOOP
// VULKAN: error: ctxc-gpu-to-llvm: target: LLVM makes no code for vulkan:8
// LOOP: error: failed to legalize operation 'scf.for'

//--- sums.mlir
gpu.module @kernels {
  // Math functions stay instructions; arguments are addresses that do not alias.
  // CHECK-LABEL: llvm.func @apart(
  // CHECK-SAME: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias})
  // NVVM-SAME: nvvm.kernel
  // NVVM-SAME: nvvm.minctasm = 1
  // ROCDL-SAME: rocdl.flat_work_group_size = "64,64"
  // CHECK: llvm.intr.fma
  // CHECK-NOT: llvm.call
  gpu.func @apart(%from: memref<?xf32>, %to: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %i = gpu.thread_id x
    %x = memref.load %from[%i] : memref<?xf32>
    %y = math.fma %x, %x, %x : f32
    memref.store %y, %to[%i] : memref<64xf32>
    gpu.return
  }
  // Threads that have barriers may exchange values through buffers.
  // CHECK-LABEL: llvm.func @together(
  // CHECK-NOT: llvm.noalias
  // NVVM: nvvm.barrier
  // ROCDL: rocdl.{{.*}}barrier
  gpu.func @together(%to: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %i = gpu.thread_id x
    %x = memref.load %to[%i] : memref<64xf32>
    gpu.barrier
    memref.store %x, %to[%i] : memref<64xf32>
    gpu.return
  }
}

//--- loop.mlir
gpu.module @kernels {
  gpu.func @loop(%to: memref<64xf32>, %x: f32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c64 step %c1 {
      memref.store %x, %to[%i] : memref<64xf32>
    }
    gpu.return
  }
}
