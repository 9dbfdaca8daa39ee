// What a direction and a length do not reach together, or what one of them may not be patched for.
// RUN: not ctxc check %s --proof %t.json 2>&1 | FileCheck %s
// RUN: ctxc check-proof %s %t.json | FileCheck %s --check-prefix=PROOF
// PROOF: the proof holds

// The matrix is frozen: behind gelu no patch turns the vector to every direction.
// CHECK-DAG: error: whether block 'frozen_direction' can take the context into its parameters is undecided: 'gate' brings a part of it to its target, and no patch another part
xf.block @frozen_direction(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" frozen : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// No patch changes the number.
// CHECK-DAG: block 'known_number': rejected {{\[}}bounded-output{{\]}}
xf.block @known_number(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %g = xf.setting "g" : tensor<1xf32> = dense<3.0> : tensor<1xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// The number is between 0 and 1.
// CHECK-DAG: block 'positive': rejected {{\[}}bounded-output{{\]}}
xf.block @positive(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %l = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %g = xf.activation sigmoid %l : tensor<1xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A layer norm's vectors have mean zero, and so have their multiples.
// CHECK-DAG: block 'centred': {{rejected|undecided}}
xf.block @centred(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize layer %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// What the norm gives is an output as well, which must stay.
// CHECK-DAG: block 'read_twice': rejected {{\[}}few-vectors{{\]}}
xf.block @read_twice(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y, %n : tensor<6xf32>, tensor<6xf32>
}

// One direction for two outputs.
// CHECK-DAG: block 'two_lengths': rejected {{\[}}few-vectors{{\]}}
xf.block @two_lengths(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %H = xf.param "gate2" : tensor<1x8xf32>
  %k = xf.linear %H * %h : tensor<1x8xf32>, tensor<8xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %e = xf.mul %n, %k : tensor<6xf32>, tensor<1xf32>
  %q = xf.activation tanh %v : tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  %z = xf.add %q, %e : tensor<6xf32>
  xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
}

// The norm is also added elsewhere, where its length matters.
// CHECK-DAG: block 'added_elsewhere': rejected {{\[}}bounded-output{{\]}}
xf.block @added_elsewhere(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %B = xf.param "bias" : tensor<6xf32>
  %z = xf.add %v, %n : tensor<6xf32>
  %f = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  %r = xf.add %v, %f : tensor<6xf32>
  %y = xf.bias %r + %B : tensor<6xf32>, tensor<6xf32>
  xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
}

// Behind the residual stream the product is the output itself, whose parts are brought to theirs.
// CHECK-DAG: block 'residual': controllable
xf.block @residual(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %s = xf.add %v, %d : tensor<6xf32>
  %n = xf.normalize rms %s eps 1.0e-06 : tensor<6xf32>
  %G = xf.param "gate" : tensor<1x8xf32>
  %g = xf.linear %G * %h : tensor<1x8xf32>, tensor<8xf32>
  %y = xf.mul %n, %g : tensor<6xf32>, tensor<1xf32>
  xf.yield %y : tensor<6xf32>
}
