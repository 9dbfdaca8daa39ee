// RUN: ctxc-opt %s | ctxc-opt | FileCheck %s

// CHECK-LABEL: func.func private @roles(
// CHECK-SAME: memref<?xi32> {kernel.arg = #kernel.arg<positions>}
// CHECK-SAME: memref<?x8xf32> {kernel.arg = #kernel.arg<output, index = 1>}
// CHECK-SAME: memref<4x8xbf16> {kernel.arg = #kernel.arg<param, name = "w">}
// CHECK-SAME: memref<544xi8> {kernel.arg = #kernel.arg<param, name = "q", stored = tensor<8x64x!xf.quantized<q8_0>>>}
// CHECK-SAME: memref<5xi64> {kernel.arg = #kernel.arg<bank, name = "experts", stored = tensor<5x4x8xf32>>}
// CHECK-SAME: memref<?x2x4xf32> {kernel.arg = #kernel.arg<state, index = 2, run = reduced>}
// CHECK-SAME: memref<?xi32> {kernel.arg = #kernel.arg<slots, run = reduced>}
// CHECK-SAME: kernel.rounded
func.func private @roles(
    %p: memref<?xi32> {kernel.arg = #kernel.arg<positions>},
    %y: memref<?x8xf32> {kernel.arg = #kernel.arg<output, index = 1>},
    %w: memref<4x8xbf16> {kernel.arg = #kernel.arg<param, name = "w">},
    %q: memref<544xi8> {kernel.arg = #kernel.arg<param, name = "q", stored = tensor<8x64x!xf.quantized<q8_0>>>},
    %b: memref<5xi64> {kernel.arg = #kernel.arg<bank, name = "experts", stored = tensor<5x4x8xf32>>},
    %k: memref<?x2x4xf32> {kernel.arg = #kernel.arg<state, index = 2, run = reduced>},
    %s: memref<?xi32> {kernel.arg = #kernel.arg<slots, run = reduced>},
    %call: !llvm.ptr) attributes {kernel.rounded} {
  // CHECK: kernel.quantized %{{.*}} as tensor<8x64x!xf.quantized<q8_0>> : memref<544xi8> to memref<8x64xf32>
  %m = kernel.quantized %q as tensor<8x64x!xf.quantized<q8_0>> : memref<544xi8> to memref<8x64xf32>
  %c0 = arith.constant 0 : index
  // CHECK: {kernel.group_loop, kernel.linalg_loop, kernel.row_loop}
  scf.for %i = %c0 to %c0 step %c0 {} {kernel.row_loop, kernel.group_loop, kernel.linalg_loop}
  return
}

// Of the numbers of a bank on a GPU; and what a launch costs.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func private @launch(
  func.func private @launch(%b: memref<5x4x8xf32> {kernel.arg = #kernel.arg<bank, name = "experts", stored = tensor<5x4x8xf32>>}) {
    %c1 = arith.constant 1 : index
    // CHECK: {kernel.cost = #kernel.cost<weights = [1, 2, 3], operations = [-4, 0, 5]>}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) {kernel.cost = #kernel.cost<weights = [1, 2, 3], operations = [-4, 0, 5]>}
    return
  }
  gpu.module @kernels {
    gpu.func @f() kernel {
      gpu.return
    }
  }
}
