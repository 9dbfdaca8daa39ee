// RUN: ctxc-opt %s --patch-build-dual | FileCheck %s --check-prefixes=CHECK,LEAST
// RUN: ctxc-opt %s --patch-build-dual=update=stable | FileCheck %s --check-prefixes=CHECK,STABLE
// RUN: ctxc-opt %s --patch-build-dual=update=naive | FileCheck %s --check-prefix=NAIVE

// y = v + m ⊙ Norm(W v): the matrix is patched such that the norm's input is what the update
// chooses; then the scale is patched for the norm's output. The naive update patches the scale
// only.
xf.block @post(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %U = xf.param "up" : tensor<5x4xf32>
  %W = xf.param "down" : tensor<4x5xf32>
  %m = xf.param "norm" : tensor<4xbf16>
  %h = xf.linear %U * %v : tensor<5x4xf32>, tensor<4xf32>
  %s = xf.activation silu %h : tensor<5xf32>
  %d = xf.linear %W * %s : tensor<4x5xf32>, tensor<5xf32>
  %n = xf.normalize rms %d eps 1.000000e-06 : tensor<4xf32>
  %r = xf.scale %n by %m offset 1.000000e+00 : tensor<4xf32>, tensor<4xbf16>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// CHECK-LABEL: xf.block @post_dual
// CHECK: %[[M:.*]] = xf.param "norm"
// CHECK: xf.linear %{{.*}} : tensor<4x5xf32>, tensor<5xf32>
// CHECK-NEXT: %[[D:.*]] = xf.linear %{{.*}} * %[[S:.*]] : tensor<4x5xf32>, tensor<5xf32>
// CHECK-NEXT: xf.normalize rms
// CHECK: %[[G:.*]] = xf.sub
// LEAST-NEXT: %[[H:.*]] = patch.invert_rms_norm least to %[[G]] by %[[M]] from %[[D]] eps {{.*}} offset 1.000000e+00
// STABLE-NEXT: %[[H:.*]] = patch.invert_rms_norm stable to %[[G]] by %[[M]] from %[[D]]
// CHECK: %[[U:.*]], %[[V:.*]] = patch.rank1 to %[[H]] from %[[D]] at %[[S]]
// CHECK-NEXT: %[[DP:.*]] = patch.apply_rank1 %[[D]] + %[[U]], %[[V]] at %[[S]]
// CHECK-NEXT: %[[N:.*]] = xf.normalize rms %[[DP]]
// LEAST-NEXT: %[[DELTA:.*]] = patch.solve_scale least to %[[G]] by %[[M]] at %[[N]] offset 1.000000e+00 counts 2
// STABLE-NEXT: %[[DELTA:.*]] = patch.solve_scale stable to %[[G]] by %[[M]] at %[[N]] offset 1.000000e+00 counts 2
// CHECK-NEXT: %[[MP:.*]] = patch.apply_delta %[[M]] + %[[DELTA]] : tensor<4xbf16>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT: xf.scale %[[N]] by %[[MP]] offset 1.000000e+00
// CHECK: patch.store "up"
// CHECK-NEXT: patch.store "down" %[[U]], %[[V]]
// CHECK-NEXT: patch.store "norm" %[[DELTA]]

// NAIVE-LABEL: xf.block @post_dual
// NAIVE-NOT: patch.invert_rms_norm
// NAIVE: patch.solve_scale naive
// NAIVE: patch.store "up"
// NAIVE-NEXT: patch.store "norm"
