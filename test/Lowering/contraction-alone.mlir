// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v2 | FileCheck %s

// The contraction's function writes every sum: y is not filled with zeros first, so that no
// function over rows is needed.
// CHECK: llvm.func @linear_body(
// CHECK-NOT: @linear_row
// CHECK: llvm.func @contract_45x33_bf16(
xf.block @linear(%x: tensor<33xf32>) -> tensor<45xf32> {
  %W = xf.param "weight" : tensor<45x33xbf16>
  %y = xf.linear %W * %x : tensor<45x33xbf16>, tensor<33xf32>
  xf.yield %y : tensor<45xf32>
}
