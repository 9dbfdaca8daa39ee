// RUN: ctxc-opt %s --patch-build-dual | FileCheck %s
// RUN: ctxc-opt %s --patch-build-dual | ctxc-opt | FileCheck %s

// The example of the pass's description.
xf.block @ffn(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// CHECK-LABEL: xf.block @ffn_dual
// CHECK-SAME: (%[[X_C:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[C_C:.*]] = xf.contextual "mix"(%[[X_C]]) run full
// CHECK-NEXT: %[[C:.*]] = xf.contextual "mix"(%[[X]]) run reduced
// CHECK-NEXT: %[[V_C:.*]] = xf.add %[[X_C]], %[[C_C]]
// CHECK-NEXT: %[[V:.*]] = xf.add %[[X]], %[[C]]
// CHECK-NEXT: %[[W:.*]] = xf.param "w"
// CHECK-NEXT: %[[D_C:.*]] = xf.linear %[[W]] * %[[X_C]]
// CHECK-NEXT: %[[D_0:.*]] = xf.linear %[[W]] * %[[X]]
// CHECK-NEXT: %[[Y_C:.*]] = xf.add %[[V_C]], %[[D_C]]
// CHECK-NEXT: %[[D_T:.*]] = xf.sub %[[Y_C]], %[[V]]
// CHECK-NEXT: patch.obligation nonzero_vector %[[X]] counts 0 "output controllability of outer weight matrix"
// CHECK-NEXT: %[[U:.*]], %[[VT:.*]] = patch.rank1 to %[[D_T]] from %[[D_0]] at %[[X]]
// CHECK-NEXT: %[[D:.*]] = patch.apply_rank1 %[[D_0]] + %[[U]], %[[VT]] at %[[X]]
// CHECK-NEXT: %[[Y:.*]] = xf.add %[[V]], %[[D]]
// CHECK-NEXT: patch.store "w" %[[U]], %[[VT]]
// CHECK-NEXT: xf.yield %[[Y_C]], %[[Y]]

// There is nothing to absorb, and so no dual block.
// CHECK-LABEL: xf.block @ends
// CHECK-NOT: @ends_dual
xf.block @ends(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = xf.normalize rms %x eps 1.000000e-06 : tensor<4xf32>
  xf.yield %n : tensor<4xf32>
}

// A divisor of the chain has an obligation of its own, after the site's.
xf.block @gated(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.activation sigmoid %x : tensor<4xf32>
  %g = xf.mul %d, %s : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %g : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// CHECK-LABEL: xf.block @gated_dual
// CHECK: %[[SIGMOID:.*]] = xf.activation sigmoid %arg1
// CHECK: %[[G_T:.*]] = xf.sub
// CHECK-NEXT: patch.obligation nonzero_elements %[[SIGMOID]] counts 1 "a known factor of the output chain"
// CHECK-NEXT: %[[D_T:.*]] = xf.div %[[G_T]], %[[SIGMOID]]
// CHECK: patch.rank1 to %[[D_T]]
