// Chains that are solved for a part: grouped outer matrices, whose results lie side by side; a slice of
// a matrix that is wider than the stream; and both at once. Every part needs a patch of its own.
//
// RUN: %exits 1 ctxc check --try %s 2>&1 | FileCheck %s
// RUN: not ctxc check %s --proof %t.json
// RUN: %exits 0 ctxc check-proof %s %t.json

// CHECK: note: 'd1' brings a part of it to its target, and no patch another part
// CHECK: block 'grouped': controllable
// CHECK: output {{ *}}d1{{ }}
// CHECK-NEXT: {{ *}}d2{{ }}
// CHECK: block 'sliced': controllable
// CHECK: output {{ *}}d{{ }}
// CHECK: block 'nested': output-only
// CHECK: block 'half': rejected [counterexample]
// CHECK: block 'grouped': exact
// CHECK: block 'sliced': exact
// CHECK: block 'nested': exact
xf.block @grouped(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %U = xf.param "up" : tensor<8x8xf32>
  %u = xf.linear %U * %v : tensor<8x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %h1 = xf.slice %h from 0 : tensor<8xf32> to tensor<5xf32>
  %h2 = xf.slice %h from 5 : tensor<8xf32> to tensor<3xf32>
  %D1 = xf.param "d1" : tensor<5x5xf32>
  %p = xf.linear %D1 * %h1 : tensor<5x5xf32>, tensor<5xf32>
  %D2 = xf.param "d2" : tensor<3x3xf32>
  %q = xf.linear %D2 * %h2 : tensor<3x3xf32>, tensor<3xf32>
  %c = xf.concat %p, %q : tensor<5xf32>, tensor<3xf32>
  %S = xf.param "scale" frozen : tensor<8xf32>
  %e = xf.scale %c by %S : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// The other rows of the matrix, which set the gate, stay as they are.
xf.block @sliced(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %U = xf.param "up" : tensor<6x8xf32>
  %u = xf.linear %U * %v : tensor<6x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "d" : tensor<12x6xf32>
  %d = xf.linear %D * %h : tensor<12x6xf32>, tensor<6xf32>
  %s = xf.slice %d from 2 : tensor<12xf32> to tensor<8xf32>
  %y = xf.add %v, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @nested(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %D1 = xf.param "d1" : tensor<4x8xf32>
  %p = xf.linear %D1 * %v : tensor<4x8xf32>, tensor<8xf32>
  %p2 = xf.reshape %p : tensor<4xf32> to tensor<2x2xf32>
  %D2 = xf.param "d2" : tensor<6x4xf32>
  %q = xf.linear %D2 * %p : tensor<6x4xf32>, tensor<4xf32>
  %q1 = xf.slice %q from 1 : tensor<6xf32> to tensor<2xf32>
  %q2 = xf.reshape %q1 : tensor<2xf32> to tensor<2x1xf32>
  %D3 = xf.param "d3" : tensor<2x8xf32>
  %r = xf.linear %D3 * %v : tensor<2x8xf32>, tensor<8xf32>
  %r2 = xf.reshape %r : tensor<2xf32> to tensor<2x1xf32>
  %qr = xf.concat %q2, %r2 along 1 : tensor<2x1xf32>, tensor<2x1xf32>
  %qr1 = xf.times %qr by 0.5 : tensor<2x2xf32>
  %c2 = xf.concat %p2, %qr1 : tensor<2x2xf32>, tensor<2x2xf32>
  %c = xf.reshape %c2 : tensor<4x2xf32> to tensor<8xf32>
  %y = xf.add %v, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @half(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %U = xf.param "up" : tensor<8x8xf32>
  %u = xf.linear %U * %v : tensor<8x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %h1 = xf.slice %h from 0 : tensor<8xf32> to tensor<4xf32>
  %h2 = xf.slice %h from 4 : tensor<8xf32> to tensor<4xf32>
  %D1 = xf.param "d1" : tensor<4x4xf32>
  %p = xf.linear %D1 * %h1 : tensor<4x4xf32>, tensor<4xf32>
  %D2 = xf.param "d2" frozen : tensor<4x4xf32>
  %q = xf.linear %D2 * %h2 : tensor<4x4xf32>, tensor<4xf32>
  %c = xf.concat %p, %q : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
