// RUN: ctxc-opt %s --split-input-file --verify-diagnostics --xf-outline-model-ends

xf.block @block(%x: tensor<6xf32>) -> tensor<6xf32> {
  xf.yield %x : tensor<6xf32>
}
xf.model @m {
  %x = xf.param "start" : tensor<6xf32>
  %y = xf.layer @block(%x) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  // expected-error @below {{stands between layers of model 'm'; put it into the block before or after it}}
  %n = xf.normalize rms %y eps 1.000000e-06 : tensor<6xf32>
  %z = xf.layer @block(%n) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
  xf.yield %z : tensor<6xf32>
}

// -----

// expected-note @below {{here; rename this}}
xf.block @m_head(%x: tensor<6xf32>) -> tensor<6xf32> {
  xf.yield %x : tensor<6xf32>
}
// expected-error @below {{needs the name 'm_head' for one of its ends, which is taken}}
xf.model @m {
  %x = xf.param "start" : tensor<6xf32>
  %y = xf.layer @m_head(%x) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %n = xf.normalize rms %y eps 1.000000e-06 : tensor<6xf32>
  xf.yield %n : tensor<6xf32>
}
