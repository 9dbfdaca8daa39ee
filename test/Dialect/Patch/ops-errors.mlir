// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

// The constraints of PatchOps.td by op and number.

xf.block @linears_c1(%W: tensor<4x8xf32>, %x: tensor<8xf32>, %z: tensor<6xf32>) -> tensor<4xf32> {
  // expected-error @below {{'patch.linears' op maps 'tensor<6xf32>' to 'tensor<4xf32>' by a matrix of 8 inputs and 4 outputs}}
  %a, %b = patch.linears %W * (%x, %z) : tensor<4x8xf32>, (tensor<8xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  xf.yield %a : tensor<4xf32>
}

// -----

xf.block @linears_c1_count(%W: tensor<4x8xf32>, %x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'patch.linears' op has 1 data operands and 2 results; it needs one result for each of at least one operand}}
  %a, %b = patch.linears %W * (%x) : tensor<4x8xf32>, (tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  xf.yield %a : tensor<4xf32>
}

// -----

xf.block @apply_delta_c1(%p: tensor<8xbf16>, %d: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{'patch.apply_delta' op adds 'tensor<4xf32>' to a parameter of type 'tensor<8xbf16>'; the shapes must be equal}}
  %y = patch.apply_delta %p + %d : tensor<8xbf16>, tensor<4xf32> -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @solve_scale_c1(%t: tensor<2x8xf32>, %m: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'patch.solve_scale' op solves a scale of type 'tensor<8xf32>' for a target of type 'tensor<2x8xf32>'; the shapes must be equal}}
  %y = patch.solve_scale least to %t by %m at %t counts 0 : tensor<2x8xf32>, tensor<8xf32> -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @store_parts(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'patch.store' op has 3 parts; a patch is u and v, or one delta}}
  patch.store "w" %x, %x, %x : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @load_parts(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'patch.load' op has 3 parts; a patch is u and v, or one delta}}
  %a, %b, %c = patch.load "w" : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  xf.yield %a : tensor<8xf32>
}
