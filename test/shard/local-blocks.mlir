// RUN: ctxc-opt %s --xf-outline-model-ends --xf-print-local-blocks="ranks=2 rank=0" -o /dev/null | FileCheck %s --check-prefixes=CHECK,FIRST
// RUN: ctxc-opt %s --xf-outline-model-ends --xf-print-local-blocks="ranks=2 rank=1" -o /dev/null | FileCheck %s --check-prefixes=CHECK,SECOND
// RUN: not ctxc-opt %s --xf-outline-model-ends --xf-print-local-blocks="ranks=5" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FIVE

// Rows of the first matrix and columns of the second, whose results are terms of a sum. What every rank has whole, the first
// one adds. A value that is sliced is cut slice by slice.
// CHECK-LABEL: block mlp
// CHECK-NEXT: segment of 0 -> 1
// CHECK-NEXT: xf.block @mlp_segment0(%[[X:.*]]: tensor<6xf32>) -> tensor<6xf32> {
// CHECK-NEXT: %[[UP:.*]] = xf.param "up@0" : tensor<8x6xf32>
// CHECK-NEXT: %[[H:.*]] = xf.linear %[[UP]] * %[[X]]
// CHECK-NEXT: xf.slice %[[H]] from 0 : tensor<8xf32> to tensor<4xf32>
// CHECK-NEXT: xf.slice %[[H]] from 4 : tensor<8xf32> to tensor<4xf32>
// CHECK: %[[DOWN:.*]] = xf.param "down@1" : tensor<6x4xf32>
// CHECK-NEXT: %[[Y:.*]] = xf.linear %[[DOWN]]
// FIRST-NEXT: xf.add %[[X]], %[[Y]]
// SECOND-NEXT: %[[ZERO:.*]] = xf.times %[[X]] by 0.0
// SECOND-NEXT: xf.add %[[ZERO]], %[[Y]]
// CHECK: sum 1 -> 2: 6 numbers
// CHECK-NEXT: gives 2
// FIVE: tensor=5: block 'mlp' has no matrix that so many ranks can share evenly
xf.block @mlp(%x: tensor<6xf32>) -> tensor<6xf32> {
  %up = xf.param "up" : tensor<16x6xf32>
  %h = xf.linear %up * %x : tensor<16x6xf32>, tensor<6xf32>
  %a = xf.slice %h from 0 : tensor<16xf32> to tensor<8xf32>
  %b = xf.slice %h from 8 : tensor<16xf32> to tensor<8xf32>
  %g = xf.activation gelu_tanh %a : tensor<8xf32>
  %m = xf.mul %g, %b : tensor<8xf32>, tensor<8xf32>
  %down = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %down * %m : tensor<6x8xf32>, tensor<8xf32>
  %y = xf.add %x, %d : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Of one head of keys every rank has a part, which is gathered. Queries are rotated beside the keys, by the same table.
// CHECK-LABEL: block one_key_head
// CHECK: segment of 0 -> 1, 4, 5
// CHECK-NOT: xf.rotary
// CHECK: gather 4 -> 2: 4 numbers, in pieces of 4
// CHECK-NEXT: gather 5 -> 3: 4 numbers, in pieces of 4
// CHECK-NEXT: segment of 1, 2, 3, 0 -> 6
// CHECK: %[[TURNS:.*]] = xf.setting "rotary" : tensor<2xf32>
// CHECK-NEXT: xf.rotary half %{{.*}} by %[[TURNS]]
// CHECK-NEXT: xf.rotary half %{{.*}} by %[[TURNS]]
// CHECK-NEXT: xf.attention
xf.block @one_key_head(%x: tensor<6xf32>) -> tensor<6xf32> {
  %wq = xf.param "q" : tensor<8x6xf32>
  %wk = xf.param "k" : tensor<4x6xf32>
  %wv = xf.param "v" : tensor<4x6xf32>
  %wo = xf.param "o" : tensor<6x8xf32>
  %turns = xf.setting "rotary" : tensor<2xf32>
  %a = xf.linear %wq * %x : tensor<8x6xf32>, tensor<6xf32>
  %b = xf.linear %wk * %x : tensor<4x6xf32>, tensor<6xf32>
  %c = xf.linear %wv * %x : tensor<4x6xf32>, tensor<6xf32>
  %q = xf.reshape %a : tensor<8xf32> to tensor<2x4xf32>
  %k = xf.reshape %b : tensor<4xf32> to tensor<1x4xf32>
  %v = xf.reshape %c : tensor<4xf32> to tensor<1x4xf32>
  %s = xf.rotary half %q by %turns : tensor<2x4xf32>, tensor<2xf32>
  %t = xf.rotary half %k by %turns : tensor<1x4xf32>, tensor<2xf32>
  %h = xf.attention %s, %t, %v scale 5.000000e-01 : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %r = xf.reshape %h : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %wo * %r : tensor<6x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Of an odd vocabulary the first rank has a row more. The embedding is a sum of zeros and the token's row.
// CHECK-LABEL: block m_embed
// FIRST: %[[TABLE:.*]] = xf.param "embed.weight@0" : tensor<6x6xf32>
// FIRST: xf.embed %[[TABLE]][%{{.*}}] {kernel.rows_from = 0 : i32}
// SECOND: %[[TABLE:.*]] = xf.param "embed.weight@0" : tensor<5x6xf32>
// SECOND: xf.embed %[[TABLE]][%{{.*}}] {kernel.rows_from = 6 : i32}
// CHECK: sum 0 -> 1: 6 numbers

// Logits are needed on the first rank alone.
// CHECK-LABEL: block m_head
// FIRST: xf.linear {{.*}} tensor<6x6xf32>
// SECOND: xf.linear {{.*}} tensor<5x6xf32>
// CHECK: collect 1 -> 2: 11 numbers, in pieces of 11
// CHECK-NEXT: gives 2
xf.model @m {
  %id = xf.token : tensor<i32>
  %E = xf.param "embed.weight" : tensor<11x6xf32>
  %x = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
  %y = xf.layer @mlp(%x) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %logits = xf.linear %E * %y : tensor<11x6xf32>, tensor<6xf32>
  xf.yield %logits : tensor<11xf32>
}
