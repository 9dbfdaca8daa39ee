// Ops that do not get their fast form get a remark, where remarks are enabled.
// RUN: split-file %s %t
// RUN: ctxc-opt %t/sums.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 --remarks-filter-missed=ctxc 2>&1 >/dev/null | FileCheck %t/sums.mlir
// RUN: ctxc-opt %t/sums.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 2>&1 >/dev/null | count 0
// RUN: not ctxc-opt %t/quantized.mlir --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v4 --remarks-filter-missed=ctxc 2>&1 >/dev/null | FileCheck %t/quantized.mlir
// RUN: ctxc compile %source/test/goldens/mixtral --emit=asm --target=x86-64-v3 --remarks -o %t.s 2>&1 | FileCheck %s --check-prefix=COMPILE
// RUN: ctxc compile %source/test/goldens/mixtral --emit=asm --target=x86-64-v3 -o %t.s 2>&1 | count 0
// COMPILE: mixtral/config.json: model.layers.0: remark: {{.*}}reduction{{.*}}its result is not of float32

//--- sums.mlir
// A combination of experts is added up slot by slot; the product with the stored matrix has its fast form.
// CHECK-NOT: remark:
// CHECK: sums.mlir:10:8: remark: {{.*}}reduction{{.*}}an operand's numbers do not lie side by side along it
// CHECK-NOT: remark:
xf.block @sums(%x: tensor<64xf32>) -> tensor<32xf32> {
  %W = xf.param "w" : tensor<64x96xf32>
  %y = xf.linear %W * %x transposed : tensor<64x96xf32>, tensor<64xf32>
  %z = xf.reshape %y : tensor<96xf32> to tensor<3x32xf32>
  %s = xf.slice %x from 0 : tensor<64xf32> to tensor<3xf32>
  %c = xf.combine %s, %z : tensor<3xf32>, tensor<3x32xf32>
  xf.yield %c : tensor<32xf32>
}

//--- quantized.mlir
// CHECK: quantized.mlir:5:8: remark: {{.*}}contraction{{.*}}the blocks of a quantised matrix lie along its rows, and it is stored as (in, out)
// CHECK: error: a quantised matrix is read by an op that has no compiled kernel
xf.block @transposed(%x: tensor<64xf32>) -> tensor<32xf32> {
  %W = xf.param "w" : tensor<64x32x!xf.quantized<mxfp4>>
  %y = xf.linear %W * %x transposed : tensor<64x32x!xf.quantized<mxfp4>>, tensor<64xf32>
  xf.yield %y : tensor<32xf32>
}
