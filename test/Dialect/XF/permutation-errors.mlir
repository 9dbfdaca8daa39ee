// Ops that move entries.
// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

xf.block @transpose_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.transpose' op orders the dimensions of 'tensor<2x3xf32>' by [0, 0]; each of 0 to 1 must be there once}}
  %y = xf.transpose %x by [0, 0] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @transpose_c1_few(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.transpose' op orders the dimensions of 'tensor<2x3xf32>' by [0]; each of 0 to 1 must be there once}}
  %y = xf.transpose %x by [0] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @transpose_c1_beyond(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.transpose' op orders the dimensions of 'tensor<2x3xf32>' by [2, 0]; each of 0 to 1 must be there once}}
  %y = xf.transpose %x by [2, 0] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @permute_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.permute' op orders parts along dimension 2 of 'tensor<2x3xf32>'}}
  %y = xf.permute %x parts [1, 1] by [1, 0] along 2 : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @permute_c2(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.permute' op divides a dimension of 3 into parts [1, 1]; the sizes must be positive, and their sum that dimension}}
  %y = xf.permute %x parts [1, 1] by [1, 0] along 1 : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @permute_c2_zero(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.permute' op divides a dimension of 2 into parts [2, 0]; the sizes must be positive, and their sum that dimension}}
  %y = xf.permute %x parts [2, 0] by [1, 0] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @permute_c2_overflow(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.permute' op divides a dimension of 2 into parts [1, 9223372036854775807]; the sizes must be positive, and their sum that dimension}}
  %y = xf.permute %x parts [1, 9223372036854775807] by [1, 0] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @permute_c3(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.permute' op orders 2 parts by [1, 1]; each of 0 to 1 must be there once}}
  %y = xf.permute %x parts [1, 1] by [1, 1] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @permute_c3_negative(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.permute' op orders 2 parts by [-1, 0]; each of 0 to 1 must be there once}}
  %y = xf.permute %x parts [1, 1] by [-1, 0] : tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}
