// What repeats entries or leaves some out is no permutation, and what bounds entries bounds them wherever they are.
// RUN: not ctxc check %s --proof %t.json 2>&1 | FileCheck %s
// RUN: ctxc check-proof %s %t.json | FileCheck %s --check-prefix=PROOF
// PROOF: the proof holds

// One part twice: the two halves of what is added are equal.
// CHECK-DAG: block 'repeated': rejected {{\[}}counterexample{{\]}}
xf.block @repeated(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %a = xf.slice %d from 0 : tensor<6xf32> to tensor<3xf32>
  %f = xf.concat %a, %a : tensor<3xf32>, tensor<3xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// An entry twice, and another not at all.
// CHECK-DAG: block 'overlapping': rejected {{\[}}counterexample{{\]}}
xf.block @overlapping(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %a = xf.slice %d from 0 : tensor<6xf32> to tensor<3xf32>
  %b = xf.slice %d from 2 : tensor<6xf32> to tensor<3xf32>
  %f = xf.concat %b, %a : tensor<3xf32>, tensor<3xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Two entries are left out, with nothing that moves in their place.
// CHECK-DAG: block 'dropped': rejected {{\[}}thin-output{{\]}}
xf.block @dropped(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %a = xf.slice %d from 2 : tensor<6xf32> to tensor<4xf32>
  %k = xf.setting "k" : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
  %f = xf.concat %a, %k : tensor<4xf32>, tensor<2xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A vector without its own roll has entries whose sum is zero.
// CHECK-DAG: block 'difference': rejected {{\[}}counterexample{{\]}}
xf.block @difference(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %p = xf.permute %d parts [1, 5] by [1, 0] : tensor<6xf32>
  %f = xf.sub %d, %p : tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A norm of the columns, which no parameter follows.
// CHECK-DAG: block 'columns': rejected {{\[}}bounded-output{{\]}}
xf.block @columns(%x: tensor<6xf32>) -> tensor<6xf32> {
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
  %n = xf.normalize rms %t eps 1.0e-06 : tensor<3x2xf32>
  %b = xf.transpose %n by [1, 0] : tensor<3x2xf32>
  %f = xf.reshape %b : tensor<2x3xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A permutation of what is never negative.
// CHECK-DAG: block 'one_sided': rejected {{\[}}one-sided-output{{\]}}
xf.block @one_sided(%x: tensor<6xf32>) -> tensor<6xf32> {
  %K = xf.param "conv" : tensor<6x3xf32>
  %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %s = xf.activation softplus %d : tensor<6xf32>
  %f = xf.permute %s parts [2, 4] by [1, 0] : tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
