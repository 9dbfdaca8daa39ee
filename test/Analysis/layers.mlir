// RUN: ctxc-opt %s --xf-report-control --verify-diagnostics
// RUN: ctxc-opt %s --xf-report-control=start-layer=1 2>&1 | FileCheck %s --check-prefix=START

// Layers with equal bindings share a verdict. A frozen or shared parameter separates a layer from
// the others, and so does being the first patched layer above unpatched ones.

// START-DAG: remark: controllable in layers 1: input {up}, output {down}
// START-DAG: remark: controllable in layers 2-3: input {}, output {gain}
// START-DAG: remark: controllable in layers 4: input {}, output {down}
// expected-remark @below {{controllable in layers 0-1, 4: input {}, output {down}}}
// expected-remark @below {{controllable in layers 2-3: input {}, output {gain}}}
xf.block @parallel(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %Wu = xf.param "up" : tensor<8x8xf32>
  %Wd = xf.param "down" : tensor<8x8xf32>
  %m = xf.param "gain" : tensor<8xf32>
  %u = xf.linear %Wu * %x : tensor<8x8xf32>, tensor<8xf32>
  %s = xf.activation silu %u : tensor<8xf32>
  // expected-remark @below {{no entry of its data may be zero, which fails on an open set}}
  %g = xf.scale %s by %m : tensor<8xf32>, tensor<8xf32>
  // expected-remark @below {{its data must not be zero, which fails on a null set}}
  %d = xf.linear %Wd * %s : tensor<8x8xf32>, tensor<8xf32>
  %t = xf.add %a, %g : tensor<8xf32>
  %v = xf.add %x, %t : tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.model @model {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x1 = xf.layer @parallel(%x0) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @parallel(%x1) at "1." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @parallel(%x2) at "2." bind {down = "both"} : (tensor<8xf32>) -> tensor<8xf32>
  %x4 = xf.layer @parallel(%x3) at "3." bind {down = "both"} : (tensor<8xf32>) -> tensor<8xf32>
  %x5 = xf.layer @parallel(%x4) at "4." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x5 : tensor<8xf32>
}
