// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

// The constraints of KernelOps.td by op and number.

func.func @quantized_c1(%m: memref<544xi8>) {
  // expected-error @below {{'kernel.quantized' op makes 'memref<8x32xf32>' of 'memref<544xi8>'; 'tensor<8x64x!xf.quantized<q8_0>>' is in 544 bytes}}
  %w = kernel.quantized %m as tensor<8x64x!xf.quantized<q8_0>> : memref<544xi8> to memref<8x32xf32>
  return
}

// -----

func.func @quantized_c1_plain(%m: memref<512xi8>) {
  // expected-error @below {{'kernel.quantized' op stores 'tensor<8x64xi8>', which is not quantised}}
  %w = kernel.quantized %m as tensor<8x64xi8> : memref<512xi8> to memref<8x64xf32>
  return
}

// -----

func.func @contract_c1(%W: tensor<4x8xf32>, %x: tensor<?x6xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{'kernel.contract' op makes 'tensor<?x4xf32>' of 'tensor<?x6xf32>' by a matrix of type 'tensor<4x8xf32>'}}
  %z = kernel.contract %W * %x into %y : tensor<4x8xf32>, tensor<?x6xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @contract_c1_transposed(%W: memref<4x8xf32>, %x: memref<?x8xf32>, %y: memref<?x4xf32>) {
  // expected-error @below {{'kernel.contract' op makes 'memref<?x4xf32>' of 'memref<?x8xf32>' by a transposed matrix of type 'memref<4x8xf32>'}}
  kernel.contract %W * %x into %y transposed : memref<4x8xf32>, memref<?x8xf32>, memref<?x4xf32>
  return
}

// -----

func.func @contract_c1_rows(%W: memref<4x8xf32>, %x: memref<2x8xf32>, %y: memref<3x4xf32>) {
  // expected-error @below {{'kernel.contract' op makes 'memref<3x4xf32>' of 'memref<2x8xf32>' by a matrix of type 'memref<4x8xf32>'}}
  kernel.contract %W * %x into %y : memref<4x8xf32>, memref<2x8xf32>, memref<3x4xf32>
  return
}

// -----

func.func @contract_c2(%W: memref<4x8xf32>, %x: tensor<?x8xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{'kernel.contract' op has operands on tensors and in memory; all must be the same}}
  %z = kernel.contract %W * %x into %y : memref<4x8xf32>, tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @contract_c2_result(%W: tensor<4x8xf32>, %x: tensor<?x8xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{'kernel.contract' op needs a result of the type of its sums}}
  kernel.contract %W * %x into %y : tensor<4x8xf32>, tensor<?x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @contract_c2_memory(%W: memref<4x8xf32>, %x: memref<?x8xf32>, %y: memref<?x4xf32>) {
  // expected-error @below {{'kernel.contract' op needs no result, as it writes to memory}}
  %z = kernel.contract %W * %x into %y : memref<4x8xf32>, memref<?x8xf32>, memref<?x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @experts_c1(%W: memref<5xi64>, %x: memref<?x6xf32>, %top: memref<?x2xi32>, %y: memref<?x2x4xf32>) {
  // expected-error @below {{'kernel.experts' op makes 'memref<?x2x4xf32>' of 'memref<?x6xf32>', selected by 'memref<?x2xi32>', by matrices of 'tensor<5x4x8xf32>'}}
  kernel.experts %W[%top] * %x into %y of tensor<5x4x8xf32> : memref<5xi64>, memref<?x2xi32>, memref<?x6xf32>, memref<?x2x4xf32>
  return
}

// -----

func.func @experts_c1_slots(%W: memref<5xi64>, %x: memref<?x3x8xf32>, %top: memref<?x2xi32>, %y: memref<?x2x4xf32>) {
  // expected-error @below {{'kernel.experts' op makes 'memref<?x2x4xf32>' of 'memref<?x3x8xf32>'}}
  kernel.experts %W[%top] * %x into %y of tensor<5x4x8xf32> : memref<5xi64>, memref<?x2xi32>, memref<?x3x8xf32>, memref<?x2x4xf32>
  return
}

// -----

func.func @experts_c1_transposed(%W: memref<5xi64>, %x: memref<?x8xf32>, %top: memref<?x2xi32>, %y: memref<?x2x4xf32>) {
  // expected-error @below {{by transposed matrices of 'tensor<5x4x8xf32>'}}
  kernel.experts %W[%top] * %x into %y of tensor<5x4x8xf32> transposed : memref<5xi64>, memref<?x2xi32>, memref<?x8xf32>, memref<?x2x4xf32>
  return
}

// -----

func.func @attention_c1(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                          %z: tensor<?x2x5xf32>, %p: tensor<?xi32>, %w: tensor<1xi64>,
                          %h: tensor<?x2x3xf32>, %m: memref<?x2x8xf32>, %y: tensor<?x2x3x4xf32>) {
  // expected-error @below {{'kernel.attention' op has operands whose sizes do not fit 'tensor<?x2x3x8xf32>' and values of 'tensor<?x2x4xf32>'}}
  %r = kernel.attention(%q, %z, %v) others() at [] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, tensor<?x2x5xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                          %z: tensor<?x2x5xf32>, %p: tensor<?xi32>, %w: tensor<1xi64>,
                          %h: tensor<?x2x3xf32>, %m: memref<?x2x8xf32>, %y: tensor<?x2x3x4xf32>) {
  // expected-error @below {{'kernel.attention' op has operands on tensors and in memory; all must be the same}}
  %r = kernel.attention(%q, %m, %v) others() at [] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, memref<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  return
}

// -----

func.func @attention_c3_count(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                          %z: tensor<?x2x5xf32>, %p: tensor<?xi32>, %w: tensor<1xi64>,
                          %h: tensor<?x2x3xf32>, %m: memref<?x2x8xf32>, %y: tensor<?x2x3x4xf32>) {
  // expected-error @below {{'kernel.attention' op has 0 maps for 1 other operands}}
  %r = kernel.attention(%q, %k, %v) others(%p : tensor<?xi32>) at [] into %y {
  ^bb0(%x: f32, %a: i32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  return
}

// -----

func.func @attention_c3_map(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                          %z: tensor<?x2x5xf32>, %p: tensor<?xi32>, %w: tensor<1xi64>,
                          %h: tensor<?x2x3xf32>, %m: memref<?x2x8xf32>, %y: tensor<?x2x3x4xf32>) {
  // expected-error @below {{'kernel.attention' op reads 'tensor<?x2x3xf32>' at affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>; expected dimensions of (s, g, r, t) or 0}}
  %r = kernel.attention(%q, %k, %v) others(%h : tensor<?x2x3xf32>) at [affine_map<(s, g, r, t) -> (t, g, r)>] into %y {
  ^bb0(%x: f32, %a: f32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                          %z: tensor<?x2x5xf32>, %p: tensor<?xi32>, %w: tensor<1xi64>,
                          %h: tensor<?x2x3xf32>, %m: memref<?x2x8xf32>, %y: tensor<?x2x3x4xf32>) {
  // expected-error @below {{'kernel.attention' op needs a region of ('f32', 'i32') that ends with kernel.attend}}
  %r = kernel.attention(%q, %k, %v) others(%p : tensor<?xi32>) at [affine_map<(s, g, r, t) -> (t)>] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  return
}

// -----

func.func @attention_c5(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                          %z: tensor<?x2x5xf32>, %p: tensor<?xi32>, %w: tensor<1xi64>,
                          %h: tensor<?x2x3xf32>, %m: memref<?x2x8xf32>, %y: tensor<?x2x3x4xf32>) {
  // expected-error @below {{'kernel.attention' op has a window and is not causal}}
  %r = kernel.attention(%q, %k, %v) window(%w : tensor<1xi64>) others() at [] into %y {
  ^bb0(%x: f32):
    kernel.attend %x
  } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32> -> tensor<?x2x3x4xf32>
  return
}

// -----

func.func @call_c1(%x: memref<?x8xf32>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op calls @ctxc_count; expected one of @ctxc_decode_rows @ctxc_rows_invert_rms_norm}}
  kernel.call @ctxc_count [] (%x, %counts) : memref<?x8xf32>, memref<?x2xi64>
  return
}

// -----

// A support function, but for processors alone.
func.func @call_c1_decode(%x: memref<8xi8>, %y: memref<8xf32>) {
  // expected-error @below {{'kernel.call' op calls @ctxc_decode; expected one of}}
  kernel.call @ctxc_decode [0 : i32, 0, 8] (%x, %y) : memref<8xi8>, memref<8xf32>
  return
}

// -----

func.func @call_c2(%x: memref<?x8xf32>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros the numbers [0 : i32, 8]; expected numbers of ('i32', 'i64', 'i64')}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 8] (%x, %counts) : memref<?x8xf32>, memref<?x2xi64>
  return
}

// -----

func.func @call_c2_types(%m: memref<8xf32>, %x: memref<?x8xf32>, %error: memref<?xf64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_predict_scale_replay the numbers [1, 8, 5.000000e-01]; expected numbers of ('i64', 'i64', 'f32')}}
  kernel.call @ctxc_rows_predict_scale_replay [1, 8, 0.5 : f64] (%m, %x, %x, %x, %error)
      : memref<8xf32>, memref<?x8xf32>, memref<?x8xf32>, memref<?x8xf32>, memref<?xf64>
  return
}

// -----

func.func @call_c2_unit(%x: memref<?x8xf32>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros the numbers [0 : i32, 1, unit]; expected}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, unit] (%x, %counts) : memref<?x8xf32>, memref<?x2xi64>
  return
}

// -----

func.func @call_c3(%x: memref<?x8xf32>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros memory of ('memref<?x8xf32>'); expected elements of ('f32', 'i64')}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 8] (%x) : memref<?x8xf32>
  return
}

// -----

func.func @call_c3_types(%x: memref<?x8xf64>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros memory of ('memref<?x8xf64>', 'memref<?x2xi64>'); expected elements of ('f32', 'i64')}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 8] (%x, %counts) : memref<?x8xf64>, memref<?x2xi64>
  return
}

// -----

func.func @call_c4(%x: memref<?x8xf32, strided<[?, 1]>>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros 'memref<?x8xf32, strided<[?, 1]>>'; expected rows at a known distance, whose elements lie one after the other}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 8] (%x, %counts) : memref<?x8xf32, strided<[?, 1]>>, memref<?x2xi64>
  return
}

// -----

func.func @call_c4_apart(%x: memref<?x8xf32, strided<[16, 2]>>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros 'memref<?x8xf32, strided<[16, 2]>>'; expected rows at a known distance}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 8] (%x, %counts) : memref<?x8xf32, strided<[16, 2]>>, memref<?x2xi64>
  return
}

// -----

func.func @call_c4_none(%x: memref<f32>, %counts: memref<?x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros 'memref<f32>'; expected rows at a known distance}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 1] (%x, %counts) : memref<f32>, memref<?x2xi64>
  return
}

// -----

func.func @call_c4_last(%m: memref<8xf32>, %x: memref<?x8xf32>, %error: memref<f64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_predict_scale_replay 'memref<f64>'; expected rows at a known distance}}
  kernel.call @ctxc_rows_predict_scale_replay [1, 8, 0.5 : f32] (%m, %x, %x, %x, %error)
      : memref<8xf32>, memref<?x8xf32>, memref<?x8xf32>, memref<?x8xf32>, memref<f64>
  return
}

// -----

func.func @call_c4_rows(%x: memref<3x8xf32>, %counts: memref<4x2xi64>) {
  // expected-error @below {{'kernel.call' op gives @ctxc_rows_count_zeros 'memref<3x8xf32>' and 'memref<4x2xi64>'; expected as many rows in both}}
  kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 8] (%x, %counts) : memref<3x8xf32>, memref<4x2xi64>
  return
}

// -----

#both = affine_map<(s, p) -> (s, p)>
func.func @scan_c1(%x: memref<?x4x8xf32>, %h: memref<4x8xf32>, %after: memref<4x7xf32>) {
  // expected-error @below {{'kernel.scan' op carries 'memref<4x8xf32>'; it needs one known shape of one or more dimensions}}
  kernel.scan(%x : memref<?x4x8xf32>) at [#both] from %h : memref<4x8xf32> to %after : memref<4x7xf32> into %x : memref<?x4x8xf32> {
  ^bb0(%state: memref<8xf32>, %a: memref<8xf32>, %y: memref<8xf32>):
  }
  return
}

// -----

#both = affine_map<(s, p) -> (s, p)>
func.func @scan_c1_results(%x: memref<?x3x8xf32>, %h: memref<4x8xf32>) {
  // expected-error @below {{'kernel.scan' op writes 'memref<?x3x8xf32>'; expected (rows, 4, …)}}
  kernel.scan(%x : memref<?x3x8xf32>) at [#both] from %h : memref<4x8xf32> into %x : memref<?x3x8xf32> {
  ^bb0(%state: memref<8xf32>, %a: memref<8xf32>, %y: memref<8xf32>):
  }
  return
}

// -----

func.func @scan_c2(%x: memref<?x4x8xf32>, %h: memref<4x8xf32>) {
  // expected-error @below {{'kernel.scan' op has 0 maps for 1 operands that it reads}}
  kernel.scan(%x : memref<?x4x8xf32>) at [] from %h : memref<4x8xf32> into %x : memref<?x4x8xf32> {
  ^bb0(%state: memref<8xf32>, %a: memref<8xf32>, %y: memref<8xf32>):
  }
  return
}

// -----

func.func @scan_c2_map(%x: memref<?x4x8xf32>, %h: memref<4x8xf32>) {
  // expected-error @below {{'kernel.scan' op reads 'memref<?x4x8xf32>' at affine_map<(d0) -> (d0)>; expected a map from (s, p) to its first dimensions}}
  kernel.scan(%x : memref<?x4x8xf32>) at [affine_map<(s) -> (s)>] from %h : memref<4x8xf32> into %x : memref<?x4x8xf32> {
  ^bb0(%state: memref<8xf32>, %a: memref<4x8xf32>, %y: memref<8xf32>):
  }
  return
}

// -----

#both = affine_map<(s, p) -> (s, p)>
func.func @scan_c3(%x: memref<?x4x8xf32>, %h: memref<4x8xf32>) {
  // expected-error @below {{'kernel.scan' op needs a region of what is left of each operand; found ('memref<8xf32>', 'memref<4x8xf32>', 'memref<8xf32>')}}
  kernel.scan(%x : memref<?x4x8xf32>) at [#both] from %h : memref<4x8xf32> into %x : memref<?x4x8xf32> {
  ^bb0(%state: memref<8xf32>, %a: memref<4x8xf32>, %y: memref<8xf32>):
  }
  return
}
