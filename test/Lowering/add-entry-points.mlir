// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-place-buffers --ctxc-add-entry-points | FileCheck %s
// RUN: not ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-add-entry-points 2>&1 | FileCheck %s --check-prefix=ALLOCATES

// The entry reads rows and visible tokens from ctxc_call, then the address of each argument, and
// calls the kernel.
// CHECK: func.func private @linear_body(
// CHECK: func.func @linear(%[[CALL:.*]]: !llvm.ptr) -> i32
// CHECK: llvm.getelementptr %[[CALL]][0, 0]
// CHECK: llvm.getelementptr %[[CALL]][0, 1, 0]
// CHECK: llvm.getelementptr %[[CALL]][0, 1, 1]
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[CALL]][0, 2]
// CHECK: %[[ARGUMENTS:.*]] = llvm.load %[[FIELD]]
// CHECK: llvm.getelementptr %[[ARGUMENTS]][0]
// CHECK: llvm.getelementptr %[[ARGUMENTS]][4]
// CHECK: call @linear_body({{.*}}, %[[CALL]])
// CHECK: return %{{.*}} : i32
// CHECK: func.func @linear_workspace(

// ALLOCATES: error: a kernel allocates no memory: run ctxc-place-buffers before ctxc-add-entry-points
xf.block @linear(%x: tensor<3xf32>) -> tensor<5xf32> {
  %W = xf.param "w" : tensor<5x3xf32>
  %y = xf.linear %W * %x : tensor<5x3xf32>, tensor<3xf32>
  xf.yield %y : tensor<5xf32>
}
