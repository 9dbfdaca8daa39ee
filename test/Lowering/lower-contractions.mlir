// RUN: split-file %s %t
// RUN: ctxc-opt %t/good.mlir --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-lower-contractions="lanes=4 registers=16" | FileCheck %t/good.mlir
// RUN: ctxc-opt %t/tensors.mlir --ctxc-lower-contractions --verify-diagnostics
// RUN: ctxc-opt %t/strided.mlir --ctxc-lower-contractions | FileCheck %t/strided.mlir
// RUN: ctxc-opt %t/strided.mlir --ctxc-lower-contractions --remarks-filter-missed=ctxc 2>&1 >/dev/null | FileCheck %t/strided.mlir --check-prefix=REMARK

//--- good.mlir
// Both contractions of a shape share one function, which overwrites the sums: the zeros that they
// were added to are removed.
// CHECK-LABEL: func.func private @two(
// CHECK-NOT: linalg.fill
// CHECK: constant @contract_5x3_bf16 :
// CHECK: llvm.call
// CHECK: constant @contract_5x3_bf16 :
// CHECK: llvm.call
// CHECK-NOT: linalg.generic {{.*}}"reduction"
// CHECK: func.func private @contract_5x3_bf16(
// CHECK: vector<4xf32>
// CHECK-NOT: func.func
xf.block @two(%x: tensor<3xf32>) -> tensor<5xf32> {
  %V = xf.param "v" : tensor<5x3xbf16>
  %W = xf.param "w" : tensor<5x3xbf16>
  %a = xf.linear %V * %x : tensor<5x3xbf16>, tensor<3xf32>
  %b = xf.linear %W * %x : tensor<5x3xbf16>, tensor<3xf32>
  %y = xf.add %a, %b : tensor<5xf32>
  xf.yield %y : tensor<5xf32>
}

//--- tensors.mlir
func.func @tensors(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{found on tensors, expected on memrefs: run ctxc-bufferize before ctxc-lower-contractions}}
  %z = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
  return %z : tensor<4xf32>
}

//--- strided.mlir
// A matrix whose rows are not adjacent gets no function.
// CHECK: linalg.generic
// CHECK-NOT: @contract_
// REMARK: remark: {{.*}}contraction{{.*}}the matrix is not stored in rows that lie one after the other
func.func @strided(%W: memref<5x3xf32, strided<[4, 1]>>, %x: memref<?x3xf32>, %y: memref<?x5xf32>) {
  kernel.contract %W * %x into %y : memref<5x3xf32, strided<[4, 1]>>, memref<?x3xf32>, memref<?x5xf32>
  return
}
