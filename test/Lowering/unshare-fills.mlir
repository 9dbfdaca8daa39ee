// RUN: ctxc-opt %s --ctxc-unshare-fills | FileCheck %s
// RUN: ctxc-opt %s --one-shot-bufferize | FileCheck %s --check-prefix=SHARED
// RUN: ctxc-opt %s --ctxc-bufferize | FileCheck %s --check-prefix=OWN

// Each reader of a fill gets a fill of its own, with memory of its own. Sharing a fill would cost a
// copy.
// CHECK-LABEL: func.func @two(
// CHECK: %[[A:.*]] = linalg.fill {{.*}} -> tensor<4xf32>
// CHECK: %[[B:.*]] = linalg.fill {{.*}} -> tensor<4xf32>
// CHECK: linalg.reduce {{.*}}outs(%[[B]] :
// CHECK: linalg.reduce {{.*}}outs(%[[A]] :
// SHARED-LABEL: func.func @two(
// SHARED: memref.copy
// OWN-LABEL: func.func @two(
// OWN-NOT: memref.copy
// OWN: func.func @one(
func.func @two(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %a = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%fill : tensor<4xf32>) dimensions = [1]
  %b = linalg.reduce { arith.maximumf } ins(%x : tensor<4x8xf32>) outs(%fill : tensor<4xf32>) dimensions = [1]
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// A fill with one reader is left as it is.
// CHECK-LABEL: func.func @one(
// CHECK-COUNT-1: linalg.fill
// CHECK-NOT: linalg.fill
func.func @one(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %a = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%fill : tensor<4xf32>) dimensions = [1]
  return %a : tensor<4xf32>
}
