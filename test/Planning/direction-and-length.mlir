// A norm without a scale reaches a sphere, and a number the multiples of a vector. Together they reach everything: a patch
// of the matrix before the norm turns the vector to its target's direction, and one of the number gives it its length.
// RUN: ctxc check %s --try --proof %t.json | FileCheck %s
// RUN: ctxc check-proof %s %t.json --seed 5 | FileCheck %s --check-prefix=PROOF
// PROOF-COUNT-6: replayed: error
// PROOF: the proof holds
// CHECK-NOT: fragile
// CHECK: 6 of 6 blocks can take the context into their parameters
// CHECK: tried on random weights
// CHECK-NOT: not exact
// CHECK: block 'number': exact
// CHECK: block 'gate': exact
// CHECK: block 'gate_of_branch': exact
// CHECK: block 'links': exact
// CHECK: block 'exponential': exact
// CHECK: block 'over_exponential': exact

// One trainable number behind a norm without a scale.
xf.block @number(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %A = xf.param "alpha" : tensor<1xf32>
  %one = xf.setting "one" : tensor<1xf32> = dense<1.0> : tensor<1xf32>
  %g = xf.scale %one by %A : tensor<1xf32>, tensor<1xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A number that is computed, and a norm with a large ε.
xf.block @gate(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize l2 %d eps 1.0e-02 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// The number is computed from the branch, so that the branch is patched first.
xf.block @gate_of_branch(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x6xf32>
  %g = xf.linear %G * %d : tensor<1x6xf32>, tensor<6xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Links in front of the product and behind it, and no ε.
xf.block @links(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 0.0 : tensor<6xf32>
  %B = xf.param "bias" : tensor<1xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %l = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %g = xf.bias %l + %B : tensor<1xf32>, tensor<1xf32>
  %p = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %f = xf.times %p by 3.0 : tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A length is positive, and so is an exponential.
xf.block @exponential(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %D = xf.param "down" : tensor<6x6xf32>
  %d = xf.linear %D * %v : tensor<6x6xf32>, tensor<6xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x6xf32>
  %l = xf.linear %G * %v : tensor<1x6xf32>, tensor<6xf32>
  %g = xf.activation exp %l : tensor<1xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// The other way round, and no ε.
xf.block @over_exponential(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %D = xf.param "down" : tensor<6x6xf32>
  %d = xf.linear %D * %v : tensor<6x6xf32>, tensor<6xf32>
  %n = xf.normalize rms %d eps 0.0 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x6xf32>
  %l = xf.linear %G * %v : tensor<1x6xf32>, tensor<6xf32>
  %g = xf.activation exp %l : tensor<1xf32>
  %f = xf.div %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
