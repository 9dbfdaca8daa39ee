// A bias takes any difference of one token, and the same of every token.
//
// RUN: %exits 0 ctxc check %s | FileCheck %s --check-prefix=ONE
// RUN: %exits 1 ctxc check %s --joint 2 2>&1 | FileCheck %s
// RUN: %exits 2 ctxc check %s --joint 2 --proof %t 2>&1 | FileCheck %s --check-prefix=PROOF

// ONE: block 'one_bias': output-only
// CHECK: :[[#@LINE+13]]:8: error: no change serves 2 tokens at once: the vector bias is all that a patch may change
// CHECK-SAME: [joint-capacity]
// CHECK: note: on random weights and activations the only change that is exact for one token leaves an error of {{[0-9.]+}} at another
// CHECK: block 'one_bias': rejected [joint-capacity]
// PROOF: error: --proof: is about patches for one token; leave --joint out
xf.block @one_bias(%x: tensor<8xf32>) -> tensor<8xf32> {
  %k = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %k, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %b = xf.param "bias" : tensor<8xf32>
  %e = xf.bias %d + %b : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
