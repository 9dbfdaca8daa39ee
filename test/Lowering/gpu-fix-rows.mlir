// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-gpu-fix-rows=rows=7 | FileCheck %s

// A function that is not a kernel is left as it is.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: memref<?xf32>
func.func @other(%x: memref<?xf32>) {
  return
}

// There are 7 rows; the number of visible tokens stays unknown.
// CHECK-LABEL: func.func private @attend(
// CHECK-SAME: memref<7xi32>
// CHECK-SAME: memref<7xi32>
// CHECK-SAME: memref<7x1x2xf32>
// CHECK-SAME: memref<7x1x2xf32>
// CHECK-SAME: memref<?x1x2xf32>
// CHECK-SAME: memref<?x1x2xf32>
// CHECK-SAME: memref<?xi32>
// CHECK: memref.cast %{{.*}} : memref<7xi32> to memref<?xi32>
xf.block @attend(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %a = xf.attention %x, %x, %x scale 1.0 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
  xf.yield %a : tensor<1x2xf32>
}

// The table of a bank's addresses becomes the bank; that of a quantised bank becomes its bytes, in the
// blocks of the device's memory: 8 · 16 · 64 / 32 of 17 bytes.
// CHECK-LABEL: func.func private @experts(
// CHECK-SAME: memref<8x16x64xbf16>
// CHECK-SAME: memref<4352xi8>
xf.block @experts(%x: tensor<64xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>) {
  %top = xf.top_k %x k 2 : tensor<64xf32>
  %W = xf.param "w" : tensor<8x16x64xbf16>
  %y = xf.expert_linear %W[%top] * %x : tensor<8x16x64xbf16>, tensor<2xi32>, tensor<64xf32>
  %Q = xf.param "q" : tensor<8x16x64x!xf.quantized<mxfp4>>
  %z = xf.expert_linear %Q[%top] * %x : tensor<8x16x64x!xf.quantized<mxfp4>>, tensor<2xi32>, tensor<64xf32>
  xf.yield %y, %z : tensor<2x16xf32>, tensor<2x16xf32>
}
