// RUN: ctxc-opt %s --verify-diagnostics --patch-build-dual

// A post-norm without a scale leaves nothing that could be patched.
xf.block @bare(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @below {{the context reaches output 0 from here}}
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %W * %v : tensor<4x4xf32>, tensor<4xf32>
  // expected-error @below {{past this xf.normalize no patch moves the output by more than 2·√4 = 4.0}}
  // expected-note @below {{a normalisation's image is bounded, so it cannot reach every target}}
  // expected-note @below {{add a trainable scale after this norm}}
  %n = xf.normalize rms %d eps 1.000000e-06 : tensor<4xf32>
  %y = xf.add %v, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
