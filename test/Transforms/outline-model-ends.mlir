// RUN: ctxc-opt %s --xf-outline-model-ends | FileCheck %s
// RUN: ctxc-opt %s --xf-outline-model-ends --xf-outline-model-ends | FileCheck %s

xf.block @block(%x: tensor<6xf32>) -> tensor<6xf32> {
  xf.yield %x : tensor<6xf32>
}

// Both ends have the tied table.
// CHECK-LABEL: xf.block @m_embed() -> tensor<6xf32>
// CHECK: xf.token
// CHECK: xf.param "embed.weight"
// CHECK: xf.embed
// CHECK-LABEL: xf.block @m_head(%{{.*}}: tensor<6xf32>) -> tensor<11xf32>
// CHECK: xf.param "embed.weight"
// CHECK: xf.linear
// CHECK-LABEL: xf.model @m {
// CHECK-NEXT: %[[X:.*]] = xf.layer @m_embed() at "" : () -> tensor<6xf32>
// CHECK-NEXT: %[[Y:.*]] = xf.layer @block(%[[X]]) at "layers.0."
// CHECK-NEXT: %[[LOGITS:.*]] = xf.layer @m_head(%[[Y]]) at "" : (tensor<6xf32>) -> tensor<11xf32>
// CHECK-NEXT: xf.yield %[[LOGITS]]
xf.model @m {
  %id = xf.token : tensor<i32>
  %E = xf.param "embed.weight" : tensor<11x6xf32>
  %x = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
  %y = xf.layer @block(%x) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %logits = xf.linear %E * %y : tensor<11x6xf32>, tensor<6xf32>
  xf.yield %logits : tensor<11xf32>
}
