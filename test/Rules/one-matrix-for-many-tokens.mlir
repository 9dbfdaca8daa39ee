// A matrix takes the differences of as many tokens as it reads numbers.
//
// RUN: %exits 0 ctxc check %s --joint 8 | FileCheck %s
// RUN: %exits 1 ctxc check %s --joint 9 2>&1 | FileCheck %s --check-prefix=NINE

// CHECK: block 'one_matrix': output-only
// CHECK: w serves 8 tokens at once, if what it
// CHECK-NEXT: reads for them is independent
// NINE: error: no matrix of it is known to serve 9 tokens at once: w serves 8
// NINE-SAME: [joint-capacity]
// NINE: block 'one_matrix': undecided [joint-capacity]
xf.block @one_matrix(%x: tensor<6xf32>) -> tensor<6xf32> {
  %k = xf.param "conv" : tensor<6x3xf32>
  %a = xf.conv %k, %x : tensor<6x3xf32>, tensor<6xf32>
  %v = xf.add %x, %a : tensor<6xf32>
  %U = xf.param "u" frozen : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %W = xf.param "w" : tensor<6x8xf32>
  %d = xf.linear %W * %h : tensor<6x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
