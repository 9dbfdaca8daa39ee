// RUN: ctxc-opt %s --xf-report-control=start-layer=1 --split-input-file --verify-diagnostics

// A layer that runs unpatched is read behind one that does not.
// expected-remark @below {{controllable in layers 1: input {w}, output {b}}}
xf.block @layer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark @below {{its data must not be zero, which fails on a null set}}
  %u = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %b = xf.param "b" : tensor<8xf32>
  %d = xf.bias %h + %b : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @skip {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  // expected-error @below {{layer 0, which runs unpatched, reads the context, which reaches the logits of model 'skip' past its patched layers}}
  // expected-note @below {{way out: patch this layer too (start layer 0 or less)}}
  %x1 = xf.layer @layer(%x0) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @layer(%x1) at "1." : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @below {{'xf.add' passes it on, as the logits}}
  %l = xf.add %x1, %x2 : tensor<8xf32>
  xf.yield %l : tensor<8xf32>
}

// -----

// One input of the layer depends on the context, and the other does not: it may go to an output as
// it is.
// expected-remark @below {{output-only in layers 1: input {}, output {b}}}
xf.block @carries(%x: tensor<8xf32>, %e: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %b = xf.param "b" : tensor<8xf32>
  %y = xf.bias %x + %b : tensor<8xf32>, tensor<8xf32>
  xf.yield %y, %e : tensor<8xf32>, tensor<8xf32>
}
xf.block @mixer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %a : tensor<8xf32>
}
xf.model @one_input {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x1 = xf.layer @mixer(%x0) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2, %e = xf.layer @carries(%x1, %x0) at "1." : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %l = xf.add %x2, %e : tensor<8xf32>
  xf.yield %l : tensor<8xf32>
}
