// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

// The constraints of XFMixtureOps.td by op and number, and that of names with a star.

xf.block @param_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.param' op has the name 'experts.*.*.w' and type 'tensor<4x8xf32>'; one '*' may count tensors, by the first dimension}}
  %W = xf.param "experts.*.*.w" : tensor<4x8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @top_k_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.top_k' op selects 9 entries of 'tensor<8xf32>'; it needs a vector, and from 1 to all of its entries}}
  %s = xf.top_k %x k 9 : tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @top_k_c1_matrix(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'xf.top_k' op selects 1 entries of 'tensor<2x4xf32>'}}
  %s = xf.top_k %x k 1 : tensor<2x4xf32>
  xf.yield %x : tensor<2x4xf32>
}

// -----

xf.block @top_k_c2_uneven(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.top_k' op selects 2 entries of 1 of 3 groups of 'tensor<8xf32>'; it needs groups of one size, of two entries or more, and enough of them kept}}
  %s = xf.top_k %x k 2 groups 3 keep 1 : tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @top_k_c2_too_few(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.top_k' op selects 5 entries of 1 of 2 groups of 'tensor<8xf32>'}}
  %s = xf.top_k %x k 5 groups 2 keep 1 : tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @top_k_c2_keep(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.top_k' op selects 2 entries of 3 of 2 groups of 'tensor<8xf32>'}}
  %s = xf.top_k %x k 2 groups 2 keep 3 : tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @gather_c1(%x: tensor<8xf32>, %m: tensor<2x2x4xf32>) -> tensor<8xf32> {
  %s = xf.top_k %x k 2 : tensor<8xf32>
  // expected-error @below {{'xf.gather' op takes entries of 'tensor<2x2x4xf32>'; it needs a vector or a matrix}}
  %g = xf.gather %m[%s] : tensor<2x2x4xf32>, tensor<2xi32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @expert_linear_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = xf.top_k %x k 2 : tensor<8xf32>
  %W = xf.param "w" : tensor<8x5x7xf32>
  // expected-error @below {{'xf.expert_linear' op multiplies matrices of 7 inputs, 'tensor<8x5x7xf32>', with 'tensor<8xf32>'; the last dimension must be 7}}
  %y = xf.expert_linear %W[%s] * %x : tensor<8x5x7xf32>, tensor<2xi32>, tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @expert_linear_c2(%x: tensor<8xf32>, %m: tensor<3x7xf32>) -> tensor<8xf32> {
  %s = xf.top_k %x k 2 : tensor<8xf32>
  %W = xf.param "w" : tensor<8x5x7xf32>
  // expected-error @below {{'xf.expert_linear' op selects 2 experts for 'tensor<3x7xf32>'; it needs one vector, or a row for each expert}}
  %y = xf.expert_linear %W[%s] * %m : tensor<8x5x7xf32>, tensor<2xi32>, tensor<3x7xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @expert_linear_c3(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = xf.top_k %x k 5 : tensor<8xf32>
  %W = xf.param "w" : tensor<4x5x8xf32>
  // expected-error @below {{'xf.expert_linear' op selects 5 experts of 4}}
  %y = xf.expert_linear %W[%s] * %x : tensor<4x5x8xf32>, tensor<5xi32>, tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @combine_c1(%x: tensor<8xf32>, %m: tensor<3x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.combine' op weighs 'tensor<3x8xf32>' by 'tensor<8xf32>'; it needs a vector of weights, one for each row}}
  %y = xf.combine %x, %m : tensor<8xf32>, tensor<3x8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @outer_c1(%x: tensor<8xf32>, %m: tensor<3x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.outer' op joins 'tensor<8xf32>' and 'tensor<3x8xf32>'; both must be vectors}}
  %y = xf.outer %x, %m : tensor<8xf32>, tensor<3x8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @slice_c3(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'xf.slice' op takes entries along dimension 1 of 'tensor<8xf32>'}}
  %y = xf.slice %x from 0 along 1 : tensor<8xf32> to tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

xf.block @slice_c2_along(%x: tensor<2x8xf32>) -> tensor<1x4xf32> {
  // expected-error @below {{'xf.slice' op takes 'tensor<1x4xf32>' from 'tensor<2x8xf32>'; only the dimension that it goes along may differ}}
  %y = xf.slice %x from 0 along 1 : tensor<2x8xf32> to tensor<1x4xf32>
  xf.yield %y : tensor<1x4xf32>
}
