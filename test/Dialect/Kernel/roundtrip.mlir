// RUN: ctxc-opt %s | ctxc-opt | FileCheck %s

// CHECK-LABEL: func.func private @roles(
// CHECK-SAME: memref<?xi32> {kernel.arg = #kernel.arg<positions>}
// CHECK-SAME: memref<?x8xf32> {kernel.arg = #kernel.arg<output, index = 1>}
// CHECK-SAME: memref<4x8xbf16> {kernel.arg = #kernel.arg<param, name = "w">}
// CHECK-SAME: memref<544xi8> {kernel.arg = #kernel.arg<param, name = "q", stored = tensor<8x64x!xf.quantized<q8_0>>>}
// CHECK-SAME: memref<5xi64> {kernel.arg = #kernel.arg<bank, name = "experts", stored = tensor<5x4x8xf32>>}
// CHECK-SAME: memref<?x2x4xf32> {kernel.arg = #kernel.arg<state, index = 2, run = reduced>}
// CHECK-SAME: memref<?xi32> {kernel.arg = #kernel.arg<slots, run = reduced>}
// CHECK-SAME: kernel.rounded
func.func private @roles(
    %p: memref<?xi32> {kernel.arg = #kernel.arg<positions>},
    %y: memref<?x8xf32> {kernel.arg = #kernel.arg<output, index = 1>},
    %w: memref<4x8xbf16> {kernel.arg = #kernel.arg<param, name = "w">},
    %q: memref<544xi8> {kernel.arg = #kernel.arg<param, name = "q", stored = tensor<8x64x!xf.quantized<q8_0>>>},
    %b: memref<5xi64> {kernel.arg = #kernel.arg<bank, name = "experts", stored = tensor<5x4x8xf32>>},
    %k: memref<?x2x4xf32> {kernel.arg = #kernel.arg<state, index = 2, run = reduced>},
    %s: memref<?xi32> {kernel.arg = #kernel.arg<slots, run = reduced>},
    %call: !llvm.ptr) attributes {kernel.rounded} {
  // CHECK: kernel.quantized %{{.*}} as tensor<8x64x!xf.quantized<q8_0>> : memref<544xi8> to memref<8x64xf32>
  %m = kernel.quantized %q as tensor<8x64x!xf.quantized<q8_0>> : memref<544xi8> to memref<8x64xf32>
  %c0 = arith.constant 0 : index
  // CHECK: {kernel.linalg_loop, kernel.row_loop}
  scf.for %i = %c0 to %c0 step %c0 {} {kernel.row_loop, kernel.linalg_loop}
  return
}

// CHECK-LABEL: func.func @contractions(
func.func @contractions(%W: tensor<4x8xbf16>, %V: memref<8x4xf32>, %x: tensor<?x8xf32>, %y: tensor<?x4xf32>,
                        %bank: memref<5xi64>, %top: memref<?x2xi32>, %z: memref<?x8xf32>,
                        %one: memref<?x4xf32>, %each: memref<?x2x4xf32>) {
  // CHECK: kernel.contract %{{.*}} * %{{.*}} into %{{.*}} : tensor<4x8xbf16>, tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %r = kernel.contract %W * %x into %y : tensor<4x8xbf16>, tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK: kernel.contract %{{.*}} * %{{.*}} into %{{.*}} transposed : memref<8x4xf32>, memref<?x8xf32>, memref<?x4xf32>
  kernel.contract %V * %z into %one transposed : memref<8x4xf32>, memref<?x8xf32>, memref<?x4xf32>
  // CHECK: kernel.experts %{{.*}}[%{{.*}}] * %{{.*}} into %{{.*}} of tensor<5x8x4xf32> transposed : memref<5xi64>, memref<?x2xi32>, memref<?x8xf32>, memref<?x2x4xf32>
  kernel.experts %bank[%top] * %z into %each of tensor<5x8x4xf32> transposed : memref<5xi64>, memref<?x2xi32>, memref<?x8xf32>, memref<?x2x4xf32>
  return
}

// CHECK-LABEL: func.func @mixed(
func.func @mixed(%w: memref<?x2x3x?xf32>, %v: memref<?x2x8xf32>, %y: memref<?x2x3x8xf32>) {
  // CHECK: attrs = {kernel.causal, kernel.product = #kernel.product<mixed>}
  linalg.generic {indexing_maps = [affine_map<(s, g, r, t, x) -> (s, g, r, t)>, affine_map<(s, g, r, t, x) -> (t, g, x)>,
                                   affine_map<(s, g, r, t, x) -> (s, g, r, x)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
      ins(%w, %v : memref<?x2x3x?xf32>, memref<?x2x8xf32>) outs(%y : memref<?x2x3x8xf32>)
      attrs = {kernel.causal, kernel.product = #kernel.product<mixed>} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  }
  return
}

// CHECK-LABEL: func.func @attention(
func.func @attention(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %w: tensor<1xi64>,
                     %p: tensor<?xi32>, %h: tensor<?x2x3xf32>, %own: tensor<?x2x4xf32>,
                     %y: tensor<?x2x3x4xf32>, %m: memref<?x2x3x8xf32>, %n: memref<?x2x8xf32>) -> tensor<?x2x3x4xf32> {
  // CHECK: kernel.attention(%{{.*}}, %{{.*}}, %{{.*}}) causal window(%{{.*}} : tensor<1xi64>) others(%{{.*}} : tensor<?xi32>) at [#{{.*}}] sinks(%{{.*}} : tensor<?x2x3xf32>) own(%{{.*}}, %{{.*}} : tensor<?x2x3xf32>, tensor<?x2x4xf32>) into %{{.*}} {
  // CHECK: kernel.attend
  // CHECK: } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  %r = kernel.attention(%q, %k, %v) causal window(%w : tensor<1xi64>) others(%p : tensor<?xi32>)
      at [affine_map<(s, g, r, t) -> (t)>] sinks(%h : tensor<?x2x3xf32>)
      own(%h, %own : tensor<?x2x3xf32>, tensor<?x2x4xf32>) into %y {
  ^bb0(%x: f32, %at: i32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  // CHECK: kernel.attention(%{{.*}}, %{{.*}}, %{{.*}}) others() at [] into %{{.*}} {
  kernel.attention(%m, %n, %n) others() at [] into %m {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (memref<?x2x3x8xf32>, memref<?x2x8xf32>, memref<?x2x8xf32>), memref<?x2x3x8xf32>
  return %r : tensor<?x2x3x4xf32>
}

// CHECK-LABEL: func.func @scan(
func.func @scan(%x: memref<?x4x8xf32>, %shared: memref<4xf32>, %h: memref<4x8xf32>, %y: memref<?x4x8xf32>) {
  // CHECK: kernel.scan(%{{.*}}, %{{.*}} : memref<?x4x8xf32>, memref<4xf32>) at [#{{.*}}, #{{.*}}] from %{{.*}} : memref<4x8xf32> to %{{.*}} : memref<4x8xf32> into %{{.*}} : memref<?x4x8xf32> {
  // CHECK-NEXT: ^bb0(%{{.*}}: memref<8xf32, strided<[1], offset: ?>>, %{{.*}}: memref<8xf32, strided<[1], offset: ?>>, %{{.*}}: memref<f32, strided<[], offset: ?>>, %{{.*}}: memref<8xf32, strided<[1], offset: ?>>):
  kernel.scan(%x, %shared : memref<?x4x8xf32>, memref<4xf32>) at [affine_map<(s, p) -> (s, p)>, affine_map<(s, p) -> (p)>]
      from %h : memref<4x8xf32> to %h : memref<4x8xf32> into %y : memref<?x4x8xf32> {
  ^bb0(%state: memref<8xf32, strided<[1], offset: ?>>, %a: memref<8xf32, strided<[1], offset: ?>>,
       %b: memref<f32, strided<[], offset: ?>>, %result: memref<8xf32, strided<[1], offset: ?>>):
    memref.copy %a, %result : memref<8xf32, strided<[1], offset: ?>> to memref<8xf32, strided<[1], offset: ?>>
  }
  // Rows that are sequences of their own, which read nothing.
  // CHECK: kernel.scan() at [] from %{{.*}} : memref<4x8xf32> into %{{.*}} : memref<?x4x8xf32> {
  kernel.scan() at [] from %h : memref<4x8xf32> into %y : memref<?x4x8xf32> {
  ^bb0(%state: memref<8xf32, strided<[1], offset: ?>>, %result: memref<8xf32, strided<[1], offset: ?>>):
  }
  return
}

// CHECK-LABEL: func.func @call(
func.func @call(%table: memref<680xi8>, %ids: memref<?xi32>, %x: memref<?x32xf32>, %m: memref<32xf32>,
                %packed: memref<?x32xf32, strided<[32, 1], offset: ?>>, %error: memref<?xf64>) {
  // CHECK: kernel.call @ctxc_decode_rows [4 : i32, 1, 32](%{{.*}}, %{{.*}}, %{{.*}}) : memref<680xi8>, memref<?xi32>, memref<?x32xf32>
  kernel.call @ctxc_decode_rows [4 : i32, 1, 32] (%table, %ids, %x) : memref<680xi8>, memref<?xi32>, memref<?x32xf32>
  // CHECK: kernel.call @ctxc_rows_predict_scale_replay [1, 32, 9.99999997E-7 : f32](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {note}
  kernel.call @ctxc_rows_predict_scale_replay [1, 32, 1.0e-6 : f32] (%m, %x, %packed, %x, %error) {note}
      : memref<32xf32>, memref<?x32xf32>, memref<?x32xf32, strided<[32, 1], offset: ?>>, memref<?x32xf32>, memref<?xf64>
  return
}

// The numbers of a bank on a GPU; and the cost of a launch.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func private @launch(
  func.func private @launch(%b: memref<5x4x8xf32> {kernel.arg = #kernel.arg<bank, name = "experts", stored = tensor<5x4x8xf32>>}) {
    %c1 = arith.constant 1 : index
    // CHECK: {kernel.cost = #kernel.cost<weights = [1, 2, 3], operations = [-4, 0, 5]>}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) {kernel.cost = #kernel.cost<weights = [1, 2, 3], operations = [-4, 0, 5]>}
    return
  }
  gpu.module @kernels {
    gpu.func @f() kernel {
      gpu.return
    }
  }
}
