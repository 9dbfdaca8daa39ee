// Attention on memory becomes functions of a frame and of a range of units. Memory is allocated for
// the results of a single row's tiles, 128 slots each, and none for scores.
// RUN: split-file %s %t
// RUN: ctxc-opt %t/causal.mlir --ctxc-lower-attention="lanes=16 registers=32" --canonicalize --cse | FileCheck %t/causal.mlir
// RUN: ctxc-opt %t/causal.mlir --ctxc-lower-attention="lanes=16 registers=32 bytes-ahead=8192" --canonicalize --cse | FileCheck %t/causal.mlir --check-prefix=FAR
// RUN: ctxc-opt %t/strided.mlir --ctxc-lower-attention --canonicalize | FileCheck %t/strided.mlir
// RUN: ctxc-opt %t/in-line.mlir --ctxc-lower-attention="lanes=16 registers=32" --canonicalize --cse | FileCheck %t/in-line.mlir
// RUN: ctxc-opt %t/in-line.mlir --ctxc-lower-attention="lanes=16 registers=32 asks-in-line=false" --canonicalize --cse | FileCheck %t/in-line.mlir --check-prefix=SILENT
// RUN: ctxc-opt %t/errors.mlir --split-input-file --ctxc-lower-attention --verify-diagnostics

//--- causal.mlir
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x2x4x32xf32>, %[[K:[a-z0-9]+]]: memref<?x2x32xf32>
// CHECK: %[[ROWS:.*]] = memref.dim %[[Q]]
// CHECK: %[[SLOTS:.*]] = memref.dim %[[K]]
// CHECK: %[[UP:.*]] = arith.addi %[[SLOTS]], %c127
// CHECK: %[[TILES:.*]] = arith.divui %[[UP]], %c128
// CHECK: %[[RESULTS:.*]] = arith.muli %[[TILES]], %c8
// CHECK: memref.alloc(%[[RESULTS]]) : memref<?xf32>
// CHECK: memref.alloc(%[[RESULTS]]) : memref<?xf32>
// CHECK: memref.alloc(%[[RESULTS]]) : memref<?x48xf32>
// CHECK-NOT: memref.alloc
// CHECK: %[[PRODUCTS:.*]] = arith.muli %[[ROWS]], %{{.*}}
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[ROWS]], %c1
// CHECK: scf.if %[[ONE]] {
// A single row's tiles begin with that of the first slot which it sees.
// CHECK: memref.load %{{.*}} : memref<1xi64>
// A second thread is asked for from 2^15 products on.
// CHECK: %[[SHARED:.*]] = arith.cmpi ugt, %[[PRODUCTS]], %c32768
// CHECK: scf.if %[[SHARED]] {
// CHECK: llvm.call
// CHECK: } else {
// CHECK: call @kernel_attention_0_one(
// The tiles of the 8 queries are merged; each tile has 8 times 48 numbers.
// CHECK: %[[MERGED:.*]] = arith.muli %{{.*}}, %c384
// CHECK: %[[MANY:.*]] = arith.cmpi ugt, %[[MERGED]], %c32768
// CHECK: scf.if %[[MANY]] {
// CHECK: llvm.call {{.*}}%c8_i64
// CHECK: } else {
// CHECK: call @kernel_attention_0_merge(%{{.*}}, %c8_i64)
// CHECK: } else {
// CHECK: %[[SHAREDROWS:.*]] = arith.cmpi ugt, %[[PRODUCTS]], %c32768
// CHECK: scf.if %[[SHAREDROWS]] {
// CHECK: llvm.call
// CHECK: call @kernel_attention_0_rows(
// CHECK-NOT: kernel.attention(

// Keys are copied so that 16 slots lie side by side. A row takes the largest score along, and the sum of the powers.
// CHECK-LABEL: func.func private @kernel_attention_0_rows(
// CHECK: vector.shuffle
// CHECK: memref<8x32x16xf32>
// CHECK: vector.fma
// CHECK: arith.maximumf {{.*}} : vector<16xf32>
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK: vector.fma
// CHECK: math.exp {{.*}} : f32
// CHECK: arith.divf {{.*}} : vector<16xf32>

// A single row takes a part of a unit's keys, and then of the values of the unit before it, whose
// powers it computes, so that it goes on reading memory; both are asked for ahead: 12 rows of
// 2 × 32 numbers are 3072 bytes, 32 rows 8192 bytes.
// CHECK-LABEL: func.func private @kernel_attention_0_one(
// FAR-LABEL: func.func private @kernel_attention_0_one(
// CHECK-SAME: %[[FRAME:[a-z0-9]+]]: !llvm.ptr
// CHECK: %[[KEYS:.*]] = {{.*}} : !llvm.struct{{.*}} to memref<?x2x32xf32>
// CHECK: %[[VALUES:.*]] = {{.*}} : !llvm.struct{{.*}} to memref<?x2x48xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c16 {
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK: arith.addi %{{.*}}, %c12 :
// CHECK: memref.prefetch %[[KEYS]]
// FAR: %[[AHEAD:.*]] = arith.addi %{{.*}}, %c32 :
// FAR-NEXT: memref.prefetch %{{.*}}[%[[AHEAD]],
// CHECK: memref.prefetch %[[VALUES]]
// CHECK: arith.maximumf {{.*}} : vector<16xf32>
// CHECK-LABEL: func.func private @kernel_attention_0_merge(
#row = affine_map<(s, g, r, t) -> (s)>
#slot = affine_map<(s, g, r, t) -> (t)>
func.func @kernel(%q: memref<?x2x4x32xf32>, %k: memref<?x2x32xf32>, %v: memref<?x2x48xf32>,
                  %p: memref<?xi32>, %slots: memref<?xi32>, %w: memref<1xi64>,
                  %y: memref<?x2x4x48xf32>, %call: !llvm.ptr) {
  %no = arith.constant 0xFF800000 : f32
  kernel.attention(%q, %k, %v) causal window(%w : memref<1xi64>)
      others(%p, %slots : memref<?xi32>, memref<?xi32>) at [#row, #slot] into %y {
  ^bb0(%x: f32, %row: i32, %at: i32):
    %seen = arith.cmpi sge, %row, %at : i32
    %score = arith.select %seen, %x, %no : f32
    kernel.attend %score
  } : (memref<?x2x4x32xf32>, memref<?x2x32xf32>, memref<?x2x48xf32>), memref<?x2x4x48xf32>
  return
}

//--- strided.mlir
// Keys whose numbers do not lie side by side are copied first.
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %{{.*}}: memref<?x2x4x32xf32>, %[[K:[a-z0-9]+]]: memref<?x2x32xf32, strided<[128, 64, 2]>>
// CHECK: %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?x2x32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[K]] : {{.*}}) outs(%[[COPY]]
// CHECK: kernel_attention_0
func.func @kernel(%q: memref<?x2x4x32xf32>, %k: memref<?x2x32xf32, strided<[128, 64, 2]>>,
                  %v: memref<?x2x32xf32>, %y: memref<?x2x4x32xf32>, %call: !llvm.ptr) {
  kernel.attention(%q, %k, %v) others() at [] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (memref<?x2x4x32xf32>, memref<?x2x32xf32, strided<[128, 64, 2]>>, memref<?x2x32xf32>),
      memref<?x2x4x32xf32>
  return
}

//--- in-line.mlir
// Where the slots of a group lie one after the other, a unit is a tile of one group, and the next
// unit is the next tile of that group: its lines are read in order. 24 rows of 32 numbers are 3072
// bytes; some processors ask for such lines by themselves.
// CHECK-LABEL: func.func private @kernel_attention_0_one(
// SILENT-LABEL: func.func private @kernel_attention_0_one(
// CHECK: scf.for %[[UNIT:.*]] =
// CHECK: %[[TILES:.*]] = arith.divui %{{.*}}, %c128
// CHECK: %[[ALL:.*]] = arith.maxui %[[TILES]], %c1
// CHECK: arith.divui %[[UNIT]], %[[ALL]]
// CHECK: arith.remui %[[UNIT]], %[[ALL]]
// CHECK: arith.addi %{{.*}}, %c24 :
// CHECK: memref.prefetch
// SILENT-NOT: memref.prefetch
// CHECK-LABEL: func.func private @kernel_attention_0_merge(
// SILENT-LABEL: func.func private @kernel_attention_0_merge(
func.func @kernel(%q: memref<?x2x4x32xf32>, %k: memref<?x2x32xf32, strided<[32, ?, 1]>>,
                  %v: memref<?x2x32xf32, strided<[32, ?, 1]>>, %y: memref<?x2x4x32xf32>,
                  %call: !llvm.ptr) {
  kernel.attention(%q, %k, %v) others() at [] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (memref<?x2x4x32xf32>, memref<?x2x32xf32, strided<[32, ?, 1]>>,
      memref<?x2x32xf32, strided<[32, ?, 1]>>), memref<?x2x4x32xf32>
  return
}

// Values of 80 numbers take two passes, for which lines are asked for. On those processors 4 slots,
// on others 8, are taken before keys and values change.
// CHECK-LABEL: func.func private @wide_attention_1_one(
// SILENT-LABEL: func.func private @wide_attention_1_one(
// CHECK: scf.for %[[FROM:.*]] = %c0 to %c128 step %c16
// SILENT: scf.for %[[FROM:.*]] = %c0 to %c128 step %c16
// CHECK: scf.for %{{.*}} = %[[FROM]] to %{{.*}} step %c8 {
// SILENT: scf.for %{{.*}} = %[[FROM]] to %{{.*}} step %c4 {
// SILENT: memref.prefetch
func.func @wide(%q: memref<?x1x4x80xf32>, %k: memref<?x1x80xf32>, %v: memref<?x1x80xf32>,
                %y: memref<?x1x4x80xf32>, %call: !llvm.ptr) {
  kernel.attention(%q, %k, %v) others() at [] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (memref<?x1x4x80xf32>, memref<?x1x80xf32>, memref<?x1x80xf32>), memref<?x1x4x80xf32>
  return
}

//--- errors.mlir
func.func @kernel(%q: memref<?x2x4x32xf32>, %k: memref<?x2x32xf32>, %v: memref<?x2x32xf32>,
                  %y: memref<?x2x4x32xf32>, %call: !llvm.ptr) {
  // expected-error @below {{its scores need an op that has no form over vectors}}
  kernel.attention(%q, %k, %v) others() at [] into %y {
  ^bb0(%x: f32):
    %s = func.call @f(%x) : (f32) -> f32
    kernel.attend %s
  } : (memref<?x2x4x32xf32>, memref<?x2x32xf32>, memref<?x2x32xf32>), memref<?x2x4x32xf32>
  return
}
func.func private @f(f32) -> f32
