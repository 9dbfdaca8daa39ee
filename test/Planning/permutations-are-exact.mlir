// What moves entries and changes none is solved for as a whole: the patches are exact, and the proofs hold.
// RUN: ctxc check %s --try --proof %t.json | FileCheck %s
// RUN: ctxc check-proof %s %t.json --seed 5 | FileCheck %s --check-prefix=PROOF
// PROOF-COUNT-6: replayed: error
// PROOF: the proof holds
// CHECK: 6 of 6 blocks can take the context into their parameters
// CHECK: tried on random weights
// CHECK-NOT: not exact
// CHECK: block 'permuted_heads': exact
// CHECK: block 'roll': exact
// CHECK: block 'channel_shuffle': exact
// CHECK: block 'cube': exact
// CHECK: block 'together': exact
// CHECK: block 'permuted_inside': exact

// The parts of one value in another order are one value: `down` is solved for as a whole.
xf.block @permuted_heads(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %r = xf.reshape %d : tensor<6xf32> to tensor<3x2xf32>
  %a = xf.slice %r from 0 : tensor<3x2xf32> to tensor<1x2xf32>
  %b = xf.slice %r from 1 : tensor<3x2xf32> to tensor<2x2xf32>
  %p = xf.concat %b, %a : tensor<2x2xf32>, tensor<1x2xf32>
  %f = xf.reshape %p : tensor<3x2xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A roll by two entries.
xf.block @roll(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %a = xf.slice %d from 0 : tensor<6xf32> to tensor<4xf32>
  %b = xf.slice %d from 4 : tensor<6xf32> to tensor<2xf32>
  %f = xf.concat %b, %a : tensor<2xf32>, tensor<4xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A channel shuffle: two groups of three become three of two.
xf.block @channel_shuffle(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %r = xf.reshape %d : tensor<6xf32> to tensor<2x3xf32>
  %t = xf.transpose %r by [1, 0] : tensor<2x3xf32>
  %f = xf.reshape %t : tensor<3x2xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// All three dimensions, and a known factor in the new order.
xf.block @cube(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %r = xf.reshape %d : tensor<6xf32> to tensor<1x2x3xf32>
  %t = xf.transpose %r by [2, 0, 1] : tensor<1x2x3xf32>
  %G = xf.param "gate" : tensor<6x6xf32>
  %g = xf.linear %G * %v : tensor<6x6xf32>, tensor<6xf32>
  %s = xf.activation sigmoid %g : tensor<6xf32>
  %k = xf.reshape %s : tensor<6xf32> to tensor<3x1x2xf32>
  %m = xf.mul %t, %k : tensor<3x1x2xf32>, tensor<3x1x2xf32>
  %f = xf.reshape %m : tensor<3x1x2xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Taken apart and put together again, along the second dimension.
xf.block @together(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %r = xf.reshape %d : tensor<6xf32> to tensor<2x3xf32>
  %a = xf.slice %r from 0 along 1 : tensor<2x3xf32> to tensor<2x1xf32>
  %b = xf.slice %r from 1 along 1 : tensor<2x3xf32> to tensor<2x2xf32>
  %p = xf.concat %a, %b along 1 : tensor<2x1xf32>, tensor<2x2xf32>
  %f = xf.reshape %p : tensor<2x3xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A permutation of what the outer matrix reads, and of two outputs that are put together.
xf.block @permuted_inside(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %h1 = xf.permute %h parts [3, 5] by [1, 0] : tensor<8xf32>
  %A = xf.param "a" : tensor<2x8xf32>
  %a = xf.linear %A * %h1 : tensor<2x8xf32>, tensor<8xf32>
  %B = xf.param "b" : tensor<4x8xf32>
  %b = xf.linear %B * %h1 : tensor<4x8xf32>, tensor<8xf32>
  %ab = xf.concat %a, %b : tensor<2xf32>, tensor<4xf32>
  %s = xf.add %ab, %d : tensor<6xf32>
  %f = xf.permute %s parts [1, 5] by [1, 0] : tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
