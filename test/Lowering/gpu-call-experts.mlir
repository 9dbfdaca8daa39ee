// RUN: split-file %s %t
// RUN: ctxc-opt %t/floats.mlir --ctxc-blocks-to-linalg --ctxc-gpu-call-experts | FileCheck %t/floats.mlir
// RUN: ctxc-opt %t/blocks.mlir --ctxc-blocks-to-linalg --ctxc-gpu-call-experts | FileCheck %t/blocks.mlir

//--- floats.mlir
// The table of addresses is a bank of numbers, and the loop over rows and slots a call.
// CHECK-LABEL: func.func private @bank(
// CHECK-SAME: %[[BANK:[a-z0-9]+]]: memref<8x16x64xbf16>
// CHECK-NOT: scf.for
// CHECK: call @ctxc_experts0(%[[BANK]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: func.func private @ctxc_experts0(
xf.block @bank(%x: tensor<64xf32>) -> tensor<2x16xf32> {
  %top = xf.top_k %x k 2 : tensor<64xf32>
  %W = xf.param "w" : tensor<8x16x64xbf16>
  %y = xf.expert_linear %W[%top] * %x : tensor<8x16x64xbf16>, tensor<2xi32>, tensor<64xf32>
  xf.yield %y : tensor<2x16xf32>
}

//--- blocks.mlir
// Quantised experts stay as they are.
// CHECK-LABEL: func.func private @bank(
// CHECK-SAME: memref<8xi64>
// CHECK: scf.for
// CHECK-NOT: ctxc_experts
xf.block @bank(%x: tensor<64xf32>) -> tensor<2x16xf32> {
  %top = xf.top_k %x k 2 : tensor<64xf32>
  %W = xf.param "w" : tensor<8x16x64x!xf.quantized<mxfp4>>
  %y = xf.expert_linear %W[%top] * %x : tensor<8x16x64x!xf.quantized<mxfp4>>, tensor<2xi32>, tensor<64xf32>
  xf.yield %y : tensor<2x16xf32>
}
