// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v3 | FileCheck %s --implicit-check-not=malloc --implicit-check-not=aligned_alloc --implicit-check-not=@free
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v2 | FileCheck %s --check-prefix=CALLS
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-cpu-pipeline=target=x86-64-v2 | FileCheck %s --check-prefix=ROWS

// The entry's only argument is the call; another function returns the size of its buffers.
// CHECK: llvm.func @ffn_body(
// CHECK: llvm.func @ffn(%{{[a-z0-9]+}}: !llvm.ptr) -> i32 {
// CHECK: llvm.func @ffn_workspace(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64) -> i64
// CHECK: vector<8xf32>

// Both weights go through the call's parallel_for, and so do the ops over rows, which run in this
// thread where there are few rows. Apart from these, only the kernel's body is called.
// CALLS-LABEL: llvm.func @ffn_body(
// CALLS-NOT: llvm.call @
// CALLS: %[[MANY:.*]] = llvm.icmp "uge" %{{.*}}, %{{.*}} : i64
// CALLS: llvm.cond_br %[[MANY]]
// CALLS: llvm.getelementptr %{{.*}}[0, 4]
// CALLS: llvm.getelementptr %{{.*}}[0, 5]
// CALLS: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> ()
// CALLS-NEXT: llvm.br
// CALLS-NOT: llvm.call
// CALLS: llvm.call @ffn_rows_0(
// CALLS-NOT: llvm.call @
// CALLS: llvm.call %{{[0-9]+}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> ()
// CALLS: llvm.cond_br %[[MANY]]
// CALLS: llvm.func @ffn(%{{.*}}: !llvm.ptr)
// CALLS: llvm.call @ffn_body
// CALLS-NOT: llvm.call
// CALLS: llvm.func

// Consecutive ops over rows are one function of a row, which is not inlined: the norm's sum, in
// vectors of 16 lanes on every target, and the ops that read it.
// ROWS-LABEL: llvm.func @ffn_body(
// ROWS: llvm.func @ffn_row_0(%{{.*}}: !llvm.ptr, %{{.*}}: i64) attributes {passthrough = ["noinline"]
// ROWS: vector<16xf32>
// ROWS: llvm.intr.masked.load
// ROWS: llvm.shufflevector %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>
// ROWS: llvm.intr.sqrt
// ROWS-NOT: llvm.call
// ROWS: llvm.func @ffn_rows_0(
// ROWS: llvm.call @ffn_row_0(
xf.block @ffn(%x: tensor<33xf32>) -> tensor<33xf32> {
  %W = xf.param "up.weight" : tensor<45x33xbf16>
  %V = xf.param "down.weight" : tensor<33x45xbf16>
  %n = xf.normalize rms %x eps 1.0e-6 : tensor<33xf32>
  %h = xf.linear %W * %n : tensor<45x33xbf16>, tensor<33xf32>
  %a = xf.activation silu %h : tensor<45xf32>
  %y = xf.linear %V * %a : tensor<33x45xbf16>, tensor<45xf32>
  %r = xf.add %x, %y : tensor<33xf32>
  xf.yield %r : tensor<33xf32>
}
