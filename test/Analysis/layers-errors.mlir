// RUN: ctxc-opt %s --xf-report-control --split-input-file --verify-diagnostics

// A parameter that is frozen in several layers is reported once for all of them.
// expected-remark @below {{controllable in layers 0, 2: input {}, output {w}}}
xf.block @frozen_in_layers(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark @below {{its data must not be zero, which fails on a null set}}
  // expected-note @below {{'w' is frozen}}
  %d = xf.linear %W * %x : tensor<8x8xf32>, tensor<8xf32>
  // expected-error @below {{block 'frozen_in_layers' cannot take the context into its parameters: none that may be patched reaches output 0}}
  // expected-note @below {{patch a parameter of the contextual part instead}}
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @model {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x1 = xf.layer @frozen_in_layers(%x0) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @below {{in layers 1, 3, which run block 'frozen_in_layers'}}
  %x2 = xf.layer @frozen_in_layers(%x1) at "1." frozen ["w"] : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @frozen_in_layers(%x2) at "2." : (tensor<8xf32>) -> tensor<8xf32>
  %x4 = xf.layer @frozen_in_layers(%x3) at "3." frozen ["w"] : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x4 : tensor<8xf32>
}

// -----

// A vector that the runs of a layer share is the same in all. Whether it could serve them all is not decided.
// expected-error @below {{the layer runs 2 times with the same parameters, and no change of one matrix is known to serve all runs}}
// expected-note @below {{one run by itself is}}
// expected-note @below {{fewer runs, a parameter that is each run's own}}
xf.block @shared_by_layers(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %b = xf.param "b" : tensor<8xf32>
  %y = xf.bias %v + %b : tensor<8xf32>, tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @model {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  // expected-note @below {{in layers 0-1, which run block 'shared_by_layers'}}
  %x1 = xf.layer @shared_by_layers(%x0) at "same." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @shared_by_layers(%x1) at "same." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x2 : tensor<8xf32>
}

// -----

// A verdict is on one model.
xf.block @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  xf.yield %x : tensor<4xf32>
}
// expected-note @below {{the first one is here}}
xf.model @first {
  %E = xf.param "embed" : tensor<5x4xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<5x4xf32>, tensor<i32>
  xf.yield %x : tensor<4xf32>
}
// expected-error @below {{is the second model of a module; expected at most one, whose layers are judged together}}
xf.model @second {
  %E = xf.param "embed" : tensor<5x4xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<5x4xf32>, tensor<i32>
  xf.yield %x : tensor<4xf32>
}
