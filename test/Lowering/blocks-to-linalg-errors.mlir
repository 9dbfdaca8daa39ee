// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --split-input-file --verify-diagnostics

xf.block @convolution(%x: tensor<32xf32>) -> tensor<32xf32> {
  %W = xf.param "w" : tensor<32x32x!xf.quantized<q8_0>>
  // expected-error @below {{'xf.conv' op has no compiled kernel for a quantised weight; the reference engine runs it}}
  %y = xf.conv %W, %x : tensor<32x32x!xf.quantized<q8_0>>, tensor<32xf32>
  xf.yield %y : tensor<32xf32>
}

// -----

xf.block @opaque(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @below {{'xf.contextual' op has no compiled kernel; the reference engine runs it}}
  %y = xf.contextual "mystery"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  xf.yield %y : tensor<3xf32>
}

// -----

xf.block @computed(%x: tensor<3xf32>) -> tensor<2xf32> {
  %W = xf.param "w" : tensor<2x3xf32>
  %E = xf.activation exp %W : tensor<2x3xf32>
  // expected-error @below {{'xf.linear' op with a computed weight has no compiled kernel; the reference engine runs it}}
  %y = xf.linear %E * %x : tensor<2x3xf32>, tensor<3xf32>
  xf.yield %y : tensor<2xf32>
}
