// A product with a parameter stays one op until the target is known, and writes to the memory of
// its sums.
// RUN: split-file %s %t
// RUN: ctxc-opt %t/tensors.mlir --ctxc-blocks-to-linalg --ctxc-bufferize | FileCheck %t/tensors.mlir
// RUN: ctxc-opt %t/apart.mlir --ctxc-cpu-pipeline --remarks-filter-missed=ctxc 2>&1 | FileCheck %t/apart.mlir

//--- tensors.mlir
// CHECK: %[[SUMS:.*]] = memref.alloc({{.*}} : memref<?x5xf32>
// CHECK-NEXT: linalg.fill ins(%{{.*}} : f32) outs(%[[SUMS]] : memref<?x5xf32>)
// CHECK-NEXT: kernel.contract %{{.*}} * %{{.*}} into %[[SUMS]] transposed : memref<7x5xbf16>, memref<?x7xf32>, memref<?x5xf32>
// CHECK-NEXT: memref.copy %[[SUMS]]
xf.block @linear(%x: tensor<7xf32>) -> tensor<5xf32> {
  %W = xf.param "w" : tensor<7x5xbf16>
  %y = xf.linear %W * %x transposed : tensor<7x5xbf16>, tensor<7xf32>
  xf.yield %y : tensor<5xf32>
}

//--- apart.mlir
// A contraction without a function of its own becomes a linalg op, with a remark.
// CHECK: apart.mlir:[[@LINE+12]]:3: remark: {{.*}}contraction{{.*}}the vectors do not lie one after the other
// CHECK: llvm.func @apart_body(
// CHECK-NOT: @contract_
func.func private @apart(%p: memref<?xi32> {kernel.arg = #kernel.arg<positions>},
                         %W: memref<5x7xf32> {kernel.arg = #kernel.arg<param, name = "w">},
                         %x: memref<?x9xf32> {kernel.arg = #kernel.arg<input>},
                         %y: memref<?x5xf32> {kernel.arg = #kernel.arg<output>}, %call: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %p, %c0 : memref<?xi32>
  %s = memref.subview %x[0, 1] [%n, 7] [1, 1] : memref<?x9xf32> to memref<?x7xf32, strided<[9, 1], offset: 1>>
  linalg.fill ins(%zero : f32) outs(%y : memref<?x5xf32>)
  kernel.contract %W * %s into %y : memref<5x7xf32>, memref<?x7xf32, strided<[9, 1], offset: 1>>, memref<?x5xf32>
  return
}
