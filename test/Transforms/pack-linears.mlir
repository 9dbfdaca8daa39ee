// RUN: ctxc-opt %s --patch-pack-linears | FileCheck %s
// RUN: ctxc-opt %s --patch-build-dual="frozen=o" --patch-pack-linears | FileCheck %s --check-prefix=DUAL

// CHECK-LABEL: xf.block @both
// CHECK-SAME: (%[[A:.*]]: tensor<6xf32>, %[[B:.*]]: tensor<6xf32>)
// CHECK: %[[W:.*]] = xf.param "gate"
// CHECK: %[[G:.*]]:2 = patch.linears %[[W]] * (%[[A]], %[[B]]) : tensor<10x6xf32>, (tensor<6xf32>, tensor<6xf32>) -> (tensor<10xf32>, tensor<10xf32>)
// CHECK-NEXT: xf.yield %[[G]]#0, %[[G]]#1
xf.block @both(%z_C: tensor<6xf32>, %z: tensor<6xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
  %W = xf.param "gate" : tensor<10x6xf32>
  %g_C = xf.linear %W * %z_C : tensor<10x6xf32>, tensor<6xf32>
  %W2 = xf.param "gate" : tensor<10x6xf32>
  %g = xf.linear %W2 * %z : tensor<10x6xf32>, tensor<6xf32>
  xf.yield %g_C, %g : tensor<10xf32>, tensor<10xf32>
}

// Experts are packed with their selections; those with a vector for each slot have other types.
// CHECK-LABEL: xf.block @experts
// CHECK-SAME: (%[[A:.*]]: tensor<6xf32>, %[[B:.*]]: tensor<6xf32>, %[[SA:.*]]: tensor<2xi32>, %[[SB:.*]]: tensor<2xi32>)
// CHECK: %[[W:.*]] = xf.param "gate"
// CHECK: %[[G:.*]]:2 = patch.expert_linears %[[W]][%[[SA]], %[[SB]]] * (%[[A]], %[[B]]) : tensor<4x6x6xf32>, (tensor<2xi32>, tensor<2xi32>), (tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
// CHECK: xf.expert_linear %[[W]][%[[SA]]] * %[[G]]#0
xf.block @experts(%z_C: tensor<6xf32>, %z: tensor<6xf32>, %s_C: tensor<2xi32>, %s: tensor<2xi32>) -> (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
  %W = xf.param "gate" : tensor<4x6x6xf32>
  %g_C = xf.expert_linear %W[%s_C] * %z_C : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>
  %h_C = xf.expert_linear %W[%s_C] * %g_C : tensor<4x6x6xf32>, tensor<2xi32>, tensor<2x6xf32>
  %g = xf.expert_linear %W[%s] * %z : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>
  xf.yield %g_C, %h_C, %g : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
}

// One linear needs the result of the other.
// CHECK-LABEL: xf.block @sequence
// CHECK-NOT: patch.linears
// CHECK: xf.yield
xf.block @sequence(%z: tensor<6xf32>) -> tensor<6xf32> {
  %W = xf.param "w" : tensor<6x6xf32>
  %a = xf.linear %W * %z : tensor<6x6xf32>, tensor<6xf32>
  %s = xf.activation silu %a : tensor<6xf32>
  %b = xf.linear %W * %s : tensor<6x6xf32>, tensor<6xf32>
  xf.yield %b : tensor<6xf32>
}

// Every weight of a dual block is read in a single sweep.
// DUAL-LABEL: xf.block @layer_dual
// DUAL-NOT: xf.linear
// DUAL-COUNT-2: patch.linears
xf.block @layer(%x: tensor<6xf32>) -> tensor<6xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<6xf32>) -> tensor<6xf32>
  %O = xf.param "o" : tensor<6x6xf32>
  %o = xf.linear %O * %c : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %W = xf.param "w" : tensor<6x6xf32>
  %d = xf.linear %W * %x : tensor<6x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}
