// RUN: ctxc-opt %s --ctxc-gpu-number-reads --cse | FileCheck %s
// RUN: ctxc-opt %s --cse | FileCheck %s --check-prefix=MERGED

// Two reads of a tensor are not merged: ops between them may write to its memory.
// CHECK-COUNT-2: bufferization.to_buffer
// MERGED-COUNT-1: bufferization.to_buffer
// MERGED-NOT: bufferization.to_buffer
func.func @reads(%x: tensor<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
  %a = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
  %b = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
  return %a, %b : memref<4xf32>, memref<4xf32>
}
