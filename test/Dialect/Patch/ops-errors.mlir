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

xf.block @expert_linears_c1(%W: tensor<3x4x8xf32>, %s: tensor<2xi32>, %x: tensor<8xf32>, %z: tensor<2x8xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'patch.expert_linears' op maps 'tensor<2x8xf32>' to 'tensor<2x4xf32>' by 2 matrices of 8 inputs and 4 outputs; it needs (in) or (k, in) and (k, out), of the same types in both runs}}
  %a, %b = patch.expert_linears %W[%s, %s] * (%x, %z) : tensor<3x4x8xf32>, (tensor<2xi32>, tensor<2xi32>), (tensor<8xf32>, tensor<2x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  xf.yield %a : tensor<2x4xf32>
}

// -----

xf.block @expert_linears_c1_count(%W: tensor<3x4x8xf32>, %s: tensor<2xi32>, %x: tensor<8xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'patch.expert_linears' op has 1 data operands and 2 results; it needs one result for each of at least one operand}}
  %a, %b = patch.expert_linears %W[%s] * (%x) : tensor<3x4x8xf32>, (tensor<2xi32>), (tensor<8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  xf.yield %a : tensor<2x4xf32>
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
  // expected-error @below {{'patch.store' op has parts ('tensor<8xf32>', 'tensor<8xf32>', 'tensor<8xf32>'); a patch is one delta, or u and v, or u, v and indices}}
  patch.store "w" %x, %x, %x : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @load_parts(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'patch.load' op has parts ('tensor<8xf32>', 'tensor<8xf32>', 'tensor<8xf32>'); a patch is one delta, or u and v, or u, v and indices}}
  %a, %b, %c = patch.load "w" : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  xf.yield %a : tensor<8xf32>
}

// -----

xf.block @apply_expert_rank1_c1(%x: tensor<6xf32>, %h: tensor<2x5xf32>, %v: tensor<2x4xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %s = xf.top_k %x k 2 : tensor<6xf32>
  // expected-error @below {{'patch.apply_expert_rank1' op adds to 'tensor<2x6xf32>' a change at 'tensor<2x5xf32>' by 'tensor<2x4xf32>' for 2 experts; it needs (k, out), (in) or (k, in), (k, in)}}
  %z = patch.apply_expert_rank1 %y + %y, %v for %s at %h[%s] : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x5xf32>, tensor<2xi32>
  xf.yield %z : tensor<2x6xf32>
}

// -----

xf.block @squared_norms_c1(%x: tensor<2x6xf32>) -> tensor<6xf32> {
  // expected-error @below {{'patch.squared_norms' op gives the norms of 'tensor<2x6xf32>' as 'tensor<6xf32>'; that must be its shape without the last dimension}}
  %n = patch.squared_norms %x : tensor<2x6xf32> -> tensor<6xf32>
  xf.yield %n : tensor<6xf32>
}

// -----

xf.block @obligation_c1(%x: tensor<2x6xf32>, %u: tensor<3x6xf32>) -> tensor<2x6xf32> {
  // expected-error @below {{'patch.obligation' op is for a change of type 'tensor<3x6xf32>' at 'tensor<2x6xf32>'; it needs nonzero_vector, and one vector for each of the data's}}
  patch.obligation nonzero_vector %x for %u counts 0 "mixture" : tensor<2x6xf32>, tensor<3x6xf32>
  xf.yield %x : tensor<2x6xf32>
}
