// RUN: split-file %s %t
// RUN: ctxc-opt %t/good.mlir --ctxc-blocks-to-linalg --ctxc-gpu-fix-rows --ctxc-bufferize --ctxc-gpu-launches=target=cuda:sm_90 | FileCheck %t/good.mlir
// RUN: ctxc-opt %t/refused.mlir --ctxc-gpu-pipeline="from-blocks target=vulkan" --verify-diagnostics | FileCheck %t/refused.mlir
// RUN: ctxc-opt %t/tensors.mlir --ctxc-gpu-launches --verify-diagnostics
// RUN: not ctxc-opt %t/tensors.mlir --ctxc-gpu-launches=target=cuda:sm_10 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not ctxc-opt %t/tensors.mlir --ctxc-gpu-pipeline=target=cuda:sm_10 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: target: cuda: found 'sm_10', expected sm_80 or sm_90

//--- good.mlir
// CHECK: module attributes {gpu.container_module}
// CHECK-LABEL: func.func private @ffn(
// CHECK-NEXT: arith.constant 1 : index
// CHECK: memref.alloc() : memref<3xf32>
// CHECK: gpu.launch_func @kernels::@ffn_0_rows
// CHECK: gpu.launch_func @kernels::@ffn_1_contract
// CHECK: gpu.module @kernels
// CHECK: gpu.func @ffn_0_rows(
// CHECK: gpu.func @ffn_1_contract(
// CHECK: gpu.shuffle xor
xf.block @ffn(%x: tensor<3xf32>) -> tensor<5xf32> {
  %W = xf.param "w" : tensor<5x3xf32>
  %a = xf.activation exp %x : tensor<3xf32>
  %y = xf.linear %W * %a : tensor<5x3xf32>, tensor<3xf32>
  xf.yield %y : tensor<5xf32>
}

//--- refused.mlir
// A kernel without a GPU form is left out, with a warning; the others are lowered.
// CHECK-NOT: @half
// CHECK: func.func private @whole(
// CHECK: gpu.launch_func
xf.block @half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %W = xf.param "w" : tensor<4x4xf16>
  // expected-warning @below {{kernel 'half' is not carried to vulkan:8: weights of storage type f16 are not read; bf16 and f32 are}}
  %y = xf.linear %W * %x : tensor<4x4xf16>, tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
xf.block @whole(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = xf.add %x, %x : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

//--- tensors.mlir
func.func @tensors(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{found on tensors, expected on memrefs: run ctxc-bufferize before ctxc-gpu-launches}}
  %z = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
  return %z : tensor<4xf32>
}
