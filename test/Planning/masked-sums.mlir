// Of a sum of products with known masks that share no entry, each entry comes from one of the products: both are patched.
// RUN: ctxc check %s --try --proof %t.json | FileCheck %s
// RUN: ctxc check-proof %s %t.json --seed 5 | FileCheck %s --check-prefix=PROOF
// PROOF-COUNT-3: replayed: error
// PROOF: the proof holds
// CHECK: 3 of 3 blocks can take the context into their parameters
// CHECK: block 'halves': exact
// CHECK: block 'rest': exact
// CHECK: block 'of_one': exact

// A sum of three terms, with masks that are no flags.
xf.block @halves(%x: tensor<4xf32>) -> tensor<4xf32> {
  %K = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %A = xf.param "a" : tensor<4x4xf32>
  %a = xf.linear %A * %v : tensor<4x4xf32>, tensor<4xf32>
  %B = xf.param "b" : tensor<4x4xf32>
  %b = xf.linear %B * %v : tensor<4x4xf32>, tensor<4xf32>
  %m = xf.setting "m" : tensor<4xf32> = dense<[0.5, 0.0, 0.0, -2.0]> : tensor<4xf32>
  %n = xf.setting "n" : tensor<4xf32> = dense<[0.0, 1.0, 3.0, 0.0]> : tensor<4xf32>
  %p = xf.mul %m, %a : tensor<4xf32>, tensor<4xf32>
  %q = xf.mul %b, %n : tensor<4xf32>, tensor<4xf32>
  %s = xf.add %v, %p : tensor<4xf32>
  %y = xf.sub %s, %q : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// The second mask is computed from the first.
xf.block @rest(%x: tensor<4xf32>) -> tensor<4xf32> {
  %K = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %A = xf.param "a" : tensor<4x4xf32>
  %a = xf.linear %A * %v : tensor<4x4xf32>, tensor<4xf32>
  %b = xf.activation tanh %v : tensor<4xf32>
  %B = xf.param "bias" : tensor<4xf32>
  %d = xf.bias %b + %B : tensor<4xf32>, tensor<4xf32>
  %m = xf.setting "m" : tensor<4xf32> = dense<[1.0, 1.0, 0.0, 0.0]> : tensor<4xf32>
  %one = xf.setting "one" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  %n = xf.sub %one, %m : tensor<4xf32>
  %p = xf.mul %m, %a : tensor<4xf32>, tensor<4xf32>
  %q = xf.mul %n, %d : tensor<4xf32>, tensor<4xf32>
  %s = xf.add %p, %q : tensor<4xf32>
  %y = xf.add %v, %s : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// Masks of one value add up.
xf.block @of_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %K = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %A = xf.param "a" : tensor<4x4xf32>
  %a = xf.linear %A * %v : tensor<4x4xf32>, tensor<4xf32>
  %m = xf.setting "m" : tensor<4xf32> = dense<[1.0, 0.0, 1.0, 1.0]> : tensor<4xf32>
  %n = xf.setting "n" : tensor<4xf32> = dense<[2.0, 1.0, 0.0, 0.0]> : tensor<4xf32>
  %p = xf.mul %m, %a : tensor<4xf32>, tensor<4xf32>
  %q = xf.mul %n, %a : tensor<4xf32>, tensor<4xf32>
  %s = xf.add %p, %q : tensor<4xf32>
  %y = xf.add %v, %s : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
