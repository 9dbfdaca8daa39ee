// A quantised matrix is passed to a kernel as bytes. Its blocks are decoded in registers, and the
// numbers of one or two vectors multiplied there. A matrix whose scales are stored apart is decoded
// by calls: a panel of rows at a time for many vectors; otherwise the two rows of a tile, or a
// single row that is left.
// RUN: split-file %s %t
// RUN: ctxc-opt %t/good.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 | FileCheck %s
// RUN: ctxc-opt %t/apart.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 | FileCheck %s --check-prefix=APART
// RUN: ctxc-opt %t/bank.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 | FileCheck %s --check-prefix=BANK
// RUN: not ctxc-opt %t/transposed.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 2>&1 | FileCheck %s --check-prefix=TRANSPOSED
// RUN: not ctxc-opt %t/wide.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not ctxc-opt %t/row.mlir 2>&1 | FileCheck %s --check-prefix=ROW
// RUN: not ctxc-opt %t/vector.mlir 2>&1 | FileCheck %s --check-prefix=VECTOR

//--- good.mlir
// CHECK-LABEL: llvm.func @contract_16x64_q8_0(
// CHECK-NOT: llvm.call
// CHECK: llvm.load {{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<16xi8>
// CHECK: llvm.sext {{.*}} : vector<16xi8> to vector<16xi32>
// CHECK: llvm.sitofp
// CHECK: llvm.fmul
// CHECK: llvm.store {{.*}} : vector<16xf32>
// CHECK: llvm.intr.fmuladd
// CHECK-NOT: llvm.call
// CHECK: llvm.load {{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<16xi8>
// CHECK: llvm.sext {{.*}} : vector<16xi8> to vector<16xi32>
// CHECK: llvm.sitofp
// CHECK: llvm.fmul
// CHECK-NOT: llvm.store
// CHECK: llvm.intr.fmuladd
// CHECK-NOT: llvm.call
// CHECK: llvm.return
xf.block @good(%x: tensor<64xf32>) -> tensor<16xf32> {
  %W = xf.param "w" : tensor<16x64x!xf.quantized<q8_0>>
  %y = xf.linear %W * %x : tensor<16x64x!xf.quantized<q8_0>>, tensor<64xf32>
  xf.yield %y : tensor<16xf32>
}

//--- apart.mlir
// APART: llvm.func @ctxc_decode(i32, !llvm.ptr, i64, i64, !llvm.ptr)
// APART-LABEL: llvm.func @contract_17x45_f8e4m3(
// APART-NOT: llvm.{{func|call}}
// APART-COUNT-4: llvm.call @ctxc_decode(
// APART-NOT: llvm.call
xf.block @apart(%x: tensor<45xf32>) -> tensor<17xf32> {
  %W = xf.param "w" : tensor<17x45x!xf.quantized<f8e4m3>>
  %y = xf.linear %W * %x : tensor<17x45x!xf.quantized<f8e4m3>>, tensor<45xf32>
  xf.yield %y : tensor<17xf32>
}

//--- bank.mlir
// Each expert of a bank is a matrix with an address of its own.
// BANK-LABEL: llvm.func @contract_16x64_mxfp4(
// BANK: llvm.call @ctxc_decode(
xf.block @bank(%x: tensor<64xf32>) -> tensor<2x16xf32> {
  %top = xf.top_k %x k 2 : tensor<64xf32>
  %W = xf.param "w" : tensor<64x16x64x!xf.quantized<mxfp4>>
  %y = xf.expert_linear %W[%top] * %x : tensor<64x16x64x!xf.quantized<mxfp4>>, tensor<2xi32>, tensor<64xf32>
  xf.yield %y : tensor<2x16xf32>
}

//--- transposed.mlir
// TRANSPOSED: error: a quantised matrix is read by an op that has no compiled kernel for it; expected the reference engine, or weights of storage type f32
xf.block @transposed(%x: tensor<64xf32>) -> tensor<32xf32> {
  %W = xf.param "w" : tensor<64x32x!xf.quantized<mxfp4>>
  %y = xf.linear %W * %x transposed : tensor<64x32x!xf.quantized<mxfp4>>, tensor<64xf32>
  xf.yield %y : tensor<32xf32>
}

//--- wide.mlir
// WIDE: wide.mlir:4:8: error: a quantised matrix has rows of 131072 numbers; compiled kernels decode at most 65536; expected the reference engine, or weights of storage type f32
xf.block @wide(%x: tensor<131072xf32>) -> tensor<2xf32> {
  %W = xf.param "w" : tensor<2x131072x!xf.quantized<q4_k>>
  %y = xf.linear %W * %x : tensor<2x131072x!xf.quantized<q4_k>>, tensor<131072xf32>
  xf.yield %y : tensor<2xf32>
}

//--- row.mlir
// ROW: error: 'xf.param' op has type {{.*}}; a quantised parameter is a matrix, or a bank of matrices, with rows of a multiple of 256
xf.block @row(%x: tensor<64xf32>) -> tensor<64xf32> {
  %W = xf.param "w" : tensor<64x64x!xf.quantized<q6_k>>
  xf.yield %x : tensor<64xf32>
}

//--- vector.mlir
// VECTOR: error: 'xf.param' op has type {{.*}}; a quantised parameter is a matrix
xf.block @vector(%x: tensor<32xf32>) -> tensor<32xf32> {
  %m = xf.param "m" : tensor<32x!xf.quantized<q8_0>>
  xf.yield %x : tensor<32xf32>
}
