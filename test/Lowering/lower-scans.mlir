// A recurrence becomes a function of units of parts, which goes through the rows in order, and calls another for each
// row. A part carries 80 numbers, so that a unit has 13 of them.
// RUN: split-file %s %t
// RUN: ctxc-opt %t/full.mlir --ctxc-lower-scans --canonicalize --cse | FileCheck %t/full.mlir
// RUN: ctxc-opt %t/reduced.mlir --ctxc-lower-scans --canonicalize --cse | FileCheck %t/reduced.mlir
// RUN: ctxc-opt %t/errors.mlir --split-input-file --ctxc-lower-scans --verify-diagnostics

//--- full.mlir
#both = affine_map<(s, p) -> (s, p)>
#one = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: memref<?x32x80xf32>, %{{.*}}: memref<32x80xf32>
// CHECK: memref.dim
// CHECK-NOT: memref.alloc
// A second thread is asked for from 2^14 numbers on.
// CHECK: arith.cmpi ugt, %{{.*}}, %c16384
// CHECK: scf.if
// CHECK: llvm.call
// CHECK: } else {
// CHECK: call @kernel_scan_0_units(
// CHECK-NOT: kernel.scan

// CHECK-LABEL: func.func private @kernel_scan_0_units(
// CHECK-SAME: passthrough = ["noinline", "no-builtins"]
// CHECK: scf.for
// What is carried comes to where it is changed once for all rows.
// CHECK: linalg.generic
// CHECK: scf.for
// CHECK-NOT: linalg.generic
// CHECK: call @kernel_scan_0_row(

// CHECK-LABEL: func.func private @kernel_scan_0_row(
// CHECK: scf.for
// CHECK-DAG: memref.subview %{{.*}}[%{{.*}}, 0] [1, 80] [1, 1] : memref<32x80xf32>
// CHECK-DAG: memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [1, 1, 80] [1, 1, 1] : memref<?x32x80xf32>
// CHECK: linalg.generic
func.func @kernel(%x: memref<?x32x80xf32>, %h: memref<32x80xf32>, %y: memref<?x32x80xf32>, %call: !llvm.ptr) {
  kernel.scan(%x : memref<?x32x80xf32>) at [#both] from %h : memref<32x80xf32> to %h : memref<32x80xf32> into %y : memref<?x32x80xf32> {
  ^bb0(%state: memref<80xf32, strided<[1], offset: ?>>, %a: memref<80xf32, strided<[1], offset: ?>>, %result: memref<80xf32, strided<[1], offset: ?>>):
    linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
        ins(%a : memref<80xf32, strided<[1], offset: ?>>) outs(%state : memref<80xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %in, %out : f32
      linalg.yield %sum : f32
    }
  }
  return
}

//--- reduced.mlir
// Without `after`, each row begins with a copy of what there is before.
#both = affine_map<(s, p) -> (s, p)>
// CHECK-LABEL: func.func @kernel(
// CHECK: memref.alloc() : memref<2x8xf32>
// CHECK-LABEL: func.func private @kernel_scan_0_units(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK: call @kernel_scan_0_row(
func.func @kernel(%x: memref<?x2x8xf32>, %h: memref<2x8xf32>, %y: memref<?x2x8xf32>, %call: !llvm.ptr) {
  kernel.scan(%x : memref<?x2x8xf32>) at [#both] from %h : memref<2x8xf32> into %y : memref<?x2x8xf32> {
  ^bb0(%state: memref<8xf32, strided<[1], offset: ?>>, %a: memref<8xf32, strided<[1], offset: ?>>, %result: memref<8xf32, strided<[1], offset: ?>>):
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%result : memref<8xf32, strided<[1], offset: ?>>)
  }
  return
}

//--- errors.mlir
func.func @kernel(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{found on tensors, expected on memrefs: run ctxc-bufferize before ctxc-lower-scans}}
  %z = linalg.add ins(%x, %x : tensor<?x4xf32>, tensor<?x4xf32>) outs(%y : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}

// -----

#both = affine_map<(s, p) -> (s, p)>
func.func @kernel(%x: memref<?x2x8xf32>, %h: memref<2x8xf32>, %z: f32, %call: !llvm.ptr) {
  // expected-error @below {{its region uses a value from outside of it that is no constant; what it reads are its operands}}
  kernel.scan(%x : memref<?x2x8xf32>) at [#both] from %h : memref<2x8xf32> into %x : memref<?x2x8xf32> {
  ^bb0(%state: memref<8xf32, strided<[1], offset: ?>>, %a: memref<8xf32, strided<[1], offset: ?>>, %result: memref<8xf32, strided<[1], offset: ?>>):
    linalg.fill ins(%z : f32) outs(%result : memref<8xf32, strided<[1], offset: ?>>)
  }
  return
}
