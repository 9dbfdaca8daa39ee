// A quantised matrix that is marked is multiplied in integers: its vectors are rounded once for all
// matrices that read them, and the function of the contraction gets them.
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=cascadelake | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=alderlake | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=aarch64 | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=cascadelake | FileCheck %s --check-prefix=ONCE
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 | FileCheck %s --check-prefix=WIDE
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg | FileCheck %s --check-prefix=MARK

// MARK: kernel.quantized {{.*}} {kernel.integer}

// ONCE-LABEL: llvm.func @marked_body
// ONCE: llvm.call @round_to_bytes(
// ONCE-NOT: llvm.call @round_to_bytes(
// ONCE-LABEL: llvm.func @marked(

// CHECK: llvm.func @ctxc_round_to_bytes(!llvm.ptr, i64, i64, i64, !llvm.ptr)
// CHECK-LABEL: llvm.func @contract_16x96_q4_0_integer(
// CHECK-NOT: llvm.call @
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// PLAIN-NOT: llvm.call_intrinsic
// PLAIN: llvm.mul {{.*}} : vector<4xi32>
// CHECK-NOT: llvm.call @
// CHECK: llvm.return
xf.block @marked(%x: tensor<96xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %W = xf.param "w" {kernel.integer} : tensor<16x96x!xf.quantized<q4_0>>
  %V = xf.param "v" {kernel.integer} : tensor<16x96x!xf.quantized<q4_0>>
  %y = xf.linear %W * %x : tensor<16x96x!xf.quantized<q4_0>>, tensor<96xf32>
  %z = xf.linear %V * %x : tensor<16x96x!xf.quantized<q4_0>>, tensor<96xf32>
  xf.yield %y, %z : tensor<16xf32>, tensor<16xf32>
}

// Signed bytes take their sign from the other factor, so that two products fit 16 bits.
// PAIRS-LABEL: llvm.func @contract_16x96_q8_0_integer(
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.psign.b"
// PAIRS: llvm.intr.abs
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// WIDE-LABEL: llvm.func @contract_16x96_q8_0_integer(
// WIDE: llvm.select {{.*}} : vector<64xi1>, vector<64xi8>
// WIDE: llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
xf.block @signed(%x: tensor<96xf32>) -> tensor<16xf32> {
  %W = xf.param "w" {kernel.integer} : tensor<16x96x!xf.quantized<q8_0>>
  %y = xf.linear %W * %x : tensor<16x96x!xf.quantized<q8_0>>, tensor<96xf32>
  xf.yield %y : tensor<16xf32>
}

// Both banks have the same vectors in the same order, which are rounded before the first expert.
// ONCE-LABEL: llvm.func @experts_body
// ONCE: llvm.call @ctxc_group_by_expert(
// ONCE-NOT: llvm.call @ctxc_group_by_expert(
// ONCE: llvm.call @round_to_bytes(
// ONCE-NOT: llvm.call @round_to_bytes(
// ONCE: llvm.return
xf.block @experts(%x: tensor<96xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>) {
  %top = xf.top_k %x k 2 : tensor<96xf32>
  %W = xf.param "w" {kernel.integer} : tensor<96x16x96x!xf.quantized<q4_0>>
  %V = xf.param "v" {kernel.integer} : tensor<96x16x96x!xf.quantized<q4_0>>
  %y = xf.expert_linear %W[%top] * %x : tensor<96x16x96x!xf.quantized<q4_0>>, tensor<2xi32>, tensor<96xf32>
  %z = xf.expert_linear %V[%top] * %x : tensor<96x16x96x!xf.quantized<q4_0>>, tensor<2xi32>, tensor<96xf32>
  xf.yield %y, %z : tensor<2x16xf32>, tensor<2x16xf32>
}
