// RUN: not ctxc check %s 2>/dev/null | FileCheck %s --match-full-lines --strict-whitespace
// RUN: not ctxc check %s 2>&1 >/dev/null | FileCheck %s --check-prefix=ERROR
// RUN: not ctxc check %s --format json | FileCheck %s --check-prefix=JSON

// CHECK:layers 0-1, 3, block 'post_norm': controllable
// CHECK-NEXT:  input    up         rank 1  input controllability of MLPs
// CHECK-NEXT:  output   down       rank 1  output controllability of outer weight matrix
// CHECK-NEXT:           post_norm  vector  output controllability of outer element-wise multiply
// CHECK-NEXT:  needs    up         its input is not zero          almost everywhere
// CHECK-NEXT:           down       its input is not zero          not everywhere; checked at run time
// CHECK-NEXT:           post_norm  no entry of its input is zero  not everywhere; checked at run time
// CHECK-EMPTY:
// CHECK-NEXT:layer 2, block 'post_norm': rejected [bounded-output]
// CHECK-EMPTY:
// CHECK-NEXT:3 of 4 layers can take the context into their parameters

// ERROR: check.mlir:[[#@LINE+24]]:8: error: block 'post_norm' cannot take the context into its parameters
// ERROR: note: the scale after it is of no help: 'post_norm' is frozen
// ERROR: note: in layer 2, which runs block 'post_norm'
// ERROR-NOT: error:

// JSON: "block": "post_norm"
// JSON: "change": "rank 1"
// JSON-NEXT: "lemma": "input controllability of MLPs"
// JSON-NEXT: "parameter": "up"
// JSON: "verdict": "controllable"
// JSON: "bound": 5.65
// JSON: "location": "{{.*}}check.mlir:[[#@LINE+13]]:8"
// JSON: "verdict": "rejected"
// JSON: "controllable": 3
// JSON: "rejected": 1
xf.block @post_norm(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %Wu = xf.param "up" : tensor<16x8xf32>
  %Wd = xf.param "down" : tensor<8x16xf32>
  %m = xf.param "post_norm" : tensor<8xf32>
  %u = xf.linear %Wu * %v : tensor<16x8xf32>, tensor<8xf32>
  %s = xf.activation relu %u : tensor<16xf32>
  %d = xf.linear %Wd * %s : tensor<8x16xf32>, tensor<16xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %r = xf.scale %n by %m offset 1.0 : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %r : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.model @model {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x1 = xf.layer @post_norm(%x0) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @post_norm(%x1) at "1." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @post_norm(%x2) at "2." frozen ["post_norm"] : (tensor<8xf32>) -> tensor<8xf32>
  %x4 = xf.layer @post_norm(%x3) at "3." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x4 : tensor<8xf32>
}
