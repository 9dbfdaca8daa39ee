// RUN: ctxc-opt %s --verify-diagnostics --patch-build-dual

// A post-norm without a scale leaves nothing that could be patched.
xf.block @bare(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %W * %v : tensor<4x4xf32>, tensor<4xf32>
  // expected-error @below {{a normalisation's image is bounded}}
  %n = xf.normalize rms %d eps 1.000000e-06 : tensor<4xf32>
  %y = xf.add %v, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
