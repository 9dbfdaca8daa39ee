// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

// The constraints of KernelAttrs.td by attribute and number.

// expected-error @below {{'func.func' op argument #0 has role #kernel.arg<positions> and type 'memref<?xf32>'; it must be one i32 for each token}}
func.func private @arg_c1(%p: memref<?xf32> {kernel.arg = #kernel.arg<positions>}) { return }

// -----

// expected-error @below {{role #kernel.arg<state> and type 'tensor<?x4xf32>'; it must be a memref}}
func.func private @arg_c1_tensor(%k: tensor<?x4xf32> {kernel.arg = #kernel.arg<state>}) { return }

// -----

// expected-error @below {{role #kernel.arg<input> and type 'memref<?x4xf16>'; it must be numbers of f32 for each token}}
func.func private @arg_c1_input(%x: memref<?x4xf16> {kernel.arg = #kernel.arg<input>}) { return }

// -----

// expected-error @below {{type 'memref<?x4xf32>'; it must be of a known shape}}
func.func private @arg_c1_param(%w: memref<?x4xf32> {kernel.arg = #kernel.arg<param, name = "w">}) { return }

// -----

// expected-error @below {{type 'memref<543xi8>'; it must be the bytes of its stored type}}
func.func private @arg_c1_quantized(%w: memref<543xi8> {kernel.arg = #kernel.arg<param, name = "w", stored = tensor<8x64x!xf.quantized<q8_0>>>}) { return }

// -----

// expected-error @below {{type 'memref<4xi64>'; it must be an i64 for each slice, or what is stored}}
func.func private @arg_c1_bank(%w: memref<4xi64> {kernel.arg = #kernel.arg<bank, name = "w", stored = tensor<5x4x8xf32>>}) { return }

// -----

// expected-error @below {{type 'memref<4xi32>'; it must be numbers of f32 or i64, of a known shape}}
func.func private @arg_c1_setting(%w: memref<4xi32> {kernel.arg = #kernel.arg<setting, name = "window">}) { return }

// -----

// expected-error @below {{type 'memref<?x3x1xi64>'; it must be a pair of i64 for each row and obligation}}
func.func private @arg_c1_counts(%c: memref<?x3x1xi64> {kernel.arg = #kernel.arg<counts>}) { return }

// -----

// expected-error @below {{role #kernel.arg<room> and type 'memref<2xi64>'; it must be one i64}}
func.func private @arg_c1_room(%r: memref<2xi64> {kernel.arg = #kernel.arg<room>}) { return }

// -----

// expected-error @below {{type 'memref<?xf32>'; it must be one f64 for each row}}
func.func private @arg_c1_replay(%c: memref<?xf32> {kernel.arg = #kernel.arg<replay>}) { return }

// -----

// expected-error @below {{role 'param' needs name}}
func.func private @arg_c2(%w: memref<4x4xf32> {kernel.arg = #kernel.arg<param>}) { return }

// -----

// expected-error @below {{role 'input' has no name}}
func.func private @arg_c2_no(%x: memref<?x4xf32> {kernel.arg = #kernel.arg<input, name = "x">}) { return }

// -----

// expected-error @below {{role 'state' has index -1; it counts from 0}}
func.func private @arg_c3(%k: memref<?x4xf32> {kernel.arg = #kernel.arg<state, index = -1>}) { return }

// -----

// expected-error @below {{role 'slots' has index 1; there is one}}
func.func private @arg_c3_one(%k: memref<?xi32> {kernel.arg = #kernel.arg<slots, index = 1>}) { return }

// -----

// expected-error @below {{role 'input' is of no run; states and slots are}}
func.func private @arg_c4(%k: memref<?x4xf32> {kernel.arg = #kernel.arg<input, run = reduced>}) { return }

// -----

// expected-error @below {{role 'bank' needs the stored type of the whole parameter}}
func.func private @arg_c5(%w: memref<5xi64> {kernel.arg = #kernel.arg<bank, name = "w">}) { return }

// -----

// expected-error @below {{role 'load' has no stored type; a bank and a parameter have}}
func.func private @arg_c5_no(%w: memref<5xf32> {kernel.arg = #kernel.arg<load, name = "w", stored = tensor<5xf32>>}) { return }

// -----

// expected-error @below {{role 'param' has stored type 'tensor<5xf32>'; only a quantised one differs from the argument's}}
func.func private @arg_c5_plain(%w: memref<5xf32> {kernel.arg = #kernel.arg<param, name = "w", stored = tensor<5xf32>>}) { return }

// -----

// expected-error @below {{'func.func' op argument #1 has role #kernel.arg<input, index = 1>, which is argument #0's}}
func.func private @arg_c6(%x: memref<?x4xf32> {kernel.arg = #kernel.arg<input, index = 1>},
                          %y: memref<?x4xf32> {kernel.arg = #kernel.arg<input, index = 1>}) { return }

// -----

// expected-error @below {{'func.func' op argument #0 has 'kernel.role'; an argument of func.func may have kernel.arg, of type #kernel.arg}}
func.func private @unknown_role(%x: memref<?x4xf32> {kernel.role = #kernel.arg<input>}) { return }

// -----

// expected-error @below {{a cost has 2 numbers; it needs a fixed one, and one for each run's visible tokens}}
#cost = #kernel.cost<weights = [1, 2]>

// -----

func.func @mark_place(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'scf.for' op has 'kernel.causal', which is for an op of linalg}}
  scf.for %i = %c0 to %c0 step %c0 {} {kernel.causal}
  return
}

// -----

func.func @mark_place_loop(%x: memref<4xf32>) {
  %c0 = arith.constant 0.0 : f32
  // expected-error @below {{'linalg.fill' op has 'kernel.row_loop', which is for scf.for}}
  linalg.fill {kernel.row_loop} ins(%c0 : f32) outs(%x : memref<4xf32>)
  return
}

// -----

func.func @product(%q: memref<?x2x3x8xf32>, %k: memref<?x3x8xf32>, %y: memref<?x2x3x?xf32>) {
  // expected-error @below {{'linalg.generic' op has 'kernel.product' = #kernel.product<scores>; see the kernel dialect for what it must be}}
  linalg.generic {indexing_maps = [affine_map<(s, g, r, t, d) -> (s, g, r, d)>, affine_map<(s, g, r, t, d) -> (t, r, d)>,
                                   affine_map<(s, g, r, t, d) -> (s, g, r, t)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<?x2x3x8xf32>, memref<?x3x8xf32>) outs(%y : memref<?x2x3x?xf32>)
      attrs = {kernel.product = #kernel.product<scores>} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  }
  return
}

// -----

func.func @mark_type(%x: tensor<4xf32>) {
  // expected-error @below {{'bufferization.to_buffer' op has 'kernel.read' = -1 : i64; see the kernel dialect for what it must be}}
  %m = bufferization.to_buffer %x {kernel.read = -1} : tensor<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @below {{'func.func' op has 'kernel.fast', which is no mark of the kernel dialect}}
func.func private @mark_unknown() attributes {kernel.fast}

// -----

// expected-error @below {{'func.func' op has 'kernel.integer', which is for a quantised matrix, or a bank of them}}
func.func private @mark_integer() attributes {kernel.integer}

// -----

xf.block @not_embed(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'xf.add' op has 'kernel.rows_from', which is for xf.embed}}
  %y = xf.add %x, %x {kernel.rows_from = 3 : i32} : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

xf.block @negative() -> tensor<4xf32> {
  %id = xf.token : tensor<i32>
  %E = xf.param "e" : tensor<5x4xf32>
  // expected-error @below {{'xf.embed' op has 'kernel.rows_from' = -1 : i32; see the kernel dialect for what it must be}}
  %y = xf.embed %E[%id] {kernel.rows_from = -1 : i32} : tensor<5x4xf32>, tensor<i32>
  xf.yield %y : tensor<4xf32>
}

// -----

// expected-error @below {{role 'after' is of the full run alone: a reduced one carries nothing on}}
func.func private @after_of_reduced(memref<4xf32> {kernel.arg = #kernel.arg<after, run = reduced>})
