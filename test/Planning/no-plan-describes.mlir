// Blocks that have a patch which no plan describes: nothing is claimed of them. What is next to them, and has a plan or
// a counterexample, follows.
// RUN: not ctxc check %s 2>&1 | FileCheck %s

// Two branches of three dimensions each, which reach six together.
// CHECK-DAG: error: whether block 'two_narrow' can take the context into its parameters is undecided: 'pb' is frozen, and a fixed matrix reaches only the span of its columns
xf.block @two_narrow(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %A = xf.param "a" : tensor<3x8xf32>
  %a = xf.linear %A * %h : tensor<3x8xf32>, tensor<8xf32>
  %P = xf.param "pa" frozen : tensor<6x3xf32>
  %pa = xf.linear %P * %a : tensor<6x3xf32>, tensor<3xf32>
  %B = xf.param "b" : tensor<3x8xf32>
  %b = xf.linear %B * %h : tensor<3x8xf32>, tensor<8xf32>
  %Q = xf.param "pb" frozen : tensor<6x3xf32>
  %pb = xf.linear %Q * %b : tensor<6x3xf32>, tensor<3xf32>
  %s = xf.add %pa, %pb : tensor<6xf32>
  %y = xf.add %v, %s : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A convolution behind the MLP whose weights are computed: they may be zero, and others at each token.
// CHECK-DAG: error: whether block 'computed_conv' can take the context into its parameters is undecided: its weights are computed, not stored ones
xf.block @computed_conv(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %w = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %W = xf.slice %w from 0 : tensor<8xf32> to tensor<6xf32>
  %L = xf.reshape %W : tensor<6xf32> to tensor<6x1xf32>
  %L2 = xf.concat %L, %L along 1 : tensor<6x1xf32>, tensor<6x1xf32>
  %f = xf.conv %L2, %d : tensor<6x2xf32>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A convolution behind two outputs that are put together: each waits for the other's patch.
// CHECK-DAG: error: whether block 'parts_behind' can take the context into its parameters is undecided: what xf.conv leaves as it is has parts that wait for other patches
xf.block @parts_behind(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %A = xf.param "a" : tensor<3x6xf32>
  %a = xf.linear %A * %v : tensor<3x6xf32>, tensor<6xf32>
  %B = xf.param "b" : tensor<3x6xf32>
  %b = xf.linear %B * %v : tensor<3x6xf32>, tensor<6xf32>
  %d = xf.concat %a, %b : tensor<3xf32>, tensor<3xf32>
  %L = xf.param "behind" : tensor<6x3xf32>
  %f = xf.conv %L, %d : tensor<6x3xf32>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Two narrow branches beside each other.
// CHECK-DAG: block 'two_narrow_concat': controllable
xf.block @two_narrow_concat(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %A = xf.param "a" : tensor<3x8xf32>
  %a = xf.linear %A * %h : tensor<3x8xf32>, tensor<8xf32>
  %B = xf.param "b" : tensor<3x8xf32>
  %b = xf.linear %B * %h : tensor<3x8xf32>, tensor<8xf32>
  %s = xf.concat %a, %b : tensor<3xf32>, tensor<3xf32>
  %y = xf.add %v, %s : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// One number that is repeated and normed is a known factor of one sign.
// CHECK-DAG: block 'norm_broadcast': controllable
xf.block @norm_broadcast(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %S = xf.param "s" : tensor<1x8xf32>
  %q = xf.linear %S * %h : tensor<1x8xf32>, tensor<8xf32>
  %r = xf.broadcast %q : tensor<1xf32> to tensor<6xf32>
  %n = xf.normalize rms %r eps 1.0e-06 : tensor<6xf32>
  %f = xf.mul %d, %n : tensor<6xf32>, tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// And nothing else of it reaches the output.
// CHECK-DAG: block 'norm_broadcast_only': rejected {{\[}}bounded-output{{\]}}
xf.block @norm_broadcast_only(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %S = xf.param "s" : tensor<1x8xf32>
  %q = xf.linear %S * %h : tensor<1x8xf32>, tensor<8xf32>
  %r = xf.broadcast %q : tensor<1xf32> to tensor<6xf32>
  %n = xf.normalize rms %r eps 1.0e-06 : tensor<6xf32>
  %y = xf.add %v, %n : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Two branches in one direction.
// CHECK-DAG: block 'one_direction': rejected {{\[}}thin-output{{\]}}
xf.block @one_direction(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %A = xf.param "a" : tensor<1x8xf32>
  %a = xf.linear %A * %h : tensor<1x8xf32>, tensor<8xf32>
  %P = xf.param "pa" frozen : tensor<6x1xf32>
  %pa = xf.linear %P * %a : tensor<6x1xf32>, tensor<1xf32>
  %B = xf.param "b" : tensor<1x8xf32>
  %b = xf.linear %B * %h : tensor<1x8xf32>, tensor<8xf32>
  %pb = xf.linear %P * %b : tensor<6x1xf32>, tensor<1xf32>
  %s = xf.add %pa, %pb : tensor<6xf32>
  %y = xf.add %v, %s : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Two streams get the same vector, each through numbers of its own: they are no multiples of one vector, and a large
// vector would bring both to any target.
// CHECK-DAG: error: whether block 'gated_streams' can take the context into its parameters is undecided: a patch of 'down' would also change another output
xf.block @gated_streams(%x: tensor<6xf32>, %z: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %w = xf.add %z, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %G = xf.param "g" : tensor<6x8xf32>
  %g = xf.linear %G * %h : tensor<6x8xf32>, tensor<8xf32>
  %s = xf.activation tanh %g : tensor<6xf32>
  %H = xf.param "h" : tensor<6x8xf32>
  %k = xf.linear %H * %h : tensor<6x8xf32>, tensor<8xf32>
  %t = xf.activation tanh %k : tensor<6xf32>
  %p = xf.mul %d, %s : tensor<6xf32>, tensor<6xf32>
  %q = xf.mul %d, %t : tensor<6xf32>, tensor<6xf32>
  %y = xf.add %v, %p : tensor<6xf32>
  %e = xf.add %w, %q : tensor<6xf32>
  xf.yield %y, %e : tensor<6xf32>, tensor<6xf32>
}
