// RUN: split-file %s %t
// RUN: ctxc-opt %t/rows.mlir --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-copies-to-linalg --ctxc-share-rows | FileCheck %t/rows.mlir
// RUN: ctxc-opt %t/tensors.mlir --ctxc-share-rows --verify-diagnostics

//--- rows.mlir
// Consecutive ops over rows become a function of a row, and one of a range of rows: of all rows,
// or, from 16 rows on, of those that the caller's parallel-for chooses.
// CHECK-LABEL: func.func private @elementwise(
// CHECK: %[[MANY:.*]] = arith.cmpi uge, %{{.*}}, %c16
// CHECK: scf.if %[[MANY]] {
// CHECK: constant @elementwise_rows_0 :
// CHECK: llvm.call
// CHECK: } else {
// CHECK: call @elementwise_rows_0(
// CHECK-NOT: linalg.generic
// CHECK: func.func private @elementwise_row_0(
// CHECK-SAME: "noinline"
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: func.func private @elementwise_rows_0(
// CHECK: scf.for
// CHECK: call @elementwise_row_0(
// CHECK-NOT: func.func
xf.block @elementwise(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = xf.activation exp %x : tensor<3xf32>
  %y = xf.add %a, %x : tensor<3xf32>
  xf.yield %y : tensor<3xf32>
}

//--- tensors.mlir
func.func @tensors(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{found on tensors, expected on memrefs: run ctxc-bufferize before ctxc-share-rows}}
  %z = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
  return %z : tensor<4xf32>
}
