// A causal convolution behind the MLP: what it reads of earlier tokens stays as it is, and the tap of the token itself
// divides.
// RUN: ctxc check %s --try --proof %t.json | FileCheck %s
// RUN: ctxc check-proof %s %t.json --seed 5 | FileCheck %s --check-prefix=PROOF
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --keep 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --generate 3
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --keep 3
// PROOF-COUNT-5: replayed: error
// PROOF: the proof holds
// CHECK: 5 of 5 layers can take the context into their parameters
// CHECK: block 'conv_behind', layer {{.}}: exact
// CHECK: block 'frozen_kernel', layer {{.}}: exact
// CHECK: block 'two_convs', layer {{.}}: exact
// CHECK: block 'scaled', layer {{.}}: exact
// CHECK: block 'two_streams', layer {{.}}: exact

// The earlier outputs are in the change, and the tap of the token itself divides.
xf.block @conv_behind(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %L = xf.param "behind" : tensor<6x3xf32>
  %f = xf.conv %L, %d : tensor<6x3xf32>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A frozen kernel in bfloat16, behind a gate.
xf.block @frozen_kernel(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %G = xf.param "gate" : tensor<6x6xf32>
  %g = xf.linear %G * %v : tensor<6x6xf32>, tensor<6xf32>
  %s = xf.activation sigmoid %g : tensor<6xf32>
  %m = xf.mul %d, %s : tensor<6xf32>, tensor<6xf32>
  %L = xf.param "behind" frozen : tensor<6x2xbf16>
  %f = xf.conv %L, %m : tensor<6x2xbf16>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Two of them, with the parts of the value in another order between.
xf.block @two_convs(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %L = xf.param "behind" : tensor<6x3xf32>
  %e = xf.conv %L, %d : tensor<6x3xf32>, tensor<6xf32>
  %p = xf.permute %e parts [2, 4] by [1, 0] : tensor<6xf32>
  %M = xf.param "last" : tensor<6x4xf32>
  %f = xf.conv %M, %p : tensor<6x4xf32>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A scale and a bias follow, of which the chain goes through one.
xf.block @scaled(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %D = xf.param "down" : tensor<6x6xf32>
  %d = xf.linear %D * %v : tensor<6x6xf32>, tensor<6xf32>
  %L = xf.param "behind" : tensor<6x3xf32>
  %e = xf.conv %L, %d : tensor<6x3xf32>, tensor<6xf32>
  %S = xf.param "scale" : tensor<6xf32>
  %s = xf.scale %e by %S : tensor<6xf32>, tensor<6xf32>
  %B = xf.param "bias" frozen : tensor<6xf32>
  %f = xf.bias %s + %B : tensor<6xf32>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// One for each of two streams: the earlier of them runs first.
xf.block @two_streams(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %A = xf.param "a" : tensor<6x6xf32>
  %a = xf.linear %A * %v : tensor<6x6xf32>, tensor<6xf32>
  %B = xf.param "b" : tensor<6x6xf32>
  %b = xf.linear %B * %v : tensor<6x6xf32>, tensor<6xf32>
  %L = xf.param "first" : tensor<6x3xf32>
  %e = xf.conv %L, %b : tensor<6x3xf32>, tensor<6xf32>
  %M = xf.param "second" : tensor<6x2xf32>
  %f = xf.conv %M, %a : tensor<6x2xf32>, tensor<6xf32>
  %y = xf.add %v, %e : tensor<6xf32>
  %z = xf.add %x, %f : tensor<6xf32>
  xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
}

xf.model @m {
  %id = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<11x6xf32>
  %x0 = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
  %x1 = xf.layer @conv_behind(%x0) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %x2 = xf.layer @frozen_kernel(%x1) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
  %x3 = xf.layer @two_convs(%x2) at "layers.2." : (tensor<6xf32>) -> tensor<6xf32>
  %x5 = xf.layer @scaled(%x3) at "layers.4." : (tensor<6xf32>) -> tensor<6xf32>
  %s, %t = xf.layer @two_streams(%x5) at "layers.3." : (tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>)
  %x4 = xf.add %s, %t : tensor<6xf32>
  %H = xf.param "head" : tensor<11x6xf32>
  %l = xf.linear %H * %x4 : tensor<11x6xf32>, tensor<6xf32>
  xf.yield %l : tensor<11xf32>
}
