// RUN: ctxc-opt %s | ctxc-opt | FileCheck %s

// Every op of the patch dialect is printed as it was parsed.
xf.block @every_op(%x: tensor<8xf32>, %z: tensor<8xf32>) -> tensor<4xf32> {
  %W = xf.param "down" : tensor<4x8xbf16>
  %m = xf.param "norm" : tensor<4xbf16>
  // CHECK: patch.linears %{{[a-z0-9#_]+}} * (%{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}}) : tensor<4x8xbf16>, (tensor<8xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %a, %b = patch.linears %W * (%x, %z) : tensor<4x8xbf16>, (tensor<8xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %E = xf.param "experts" : tensor<3x8x4xbf16>
  %t = xf.top_k %x k 2 : tensor<8xf32>
  // CHECK: patch.expert_linears %{{[a-z0-9#_]+}}[%[[T:[a-z0-9#_]+]], %[[T]]] * (%{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}}) transposed : tensor<3x8x4xbf16>, (tensor<2xi32>, tensor<2xi32>), (tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %e, %f = patch.expert_linears %E[%t, %t] * (%x, %z) transposed : tensor<3x8x4xbf16>, (tensor<2xi32>, tensor<2xi32>), (tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  // CHECK: patch.rank1 to %{{[a-z0-9#_]+}} from %{{[a-z0-9#_]+}} at %{{[a-z0-9#_]+}} : tensor<4xf32>, tensor<8xf32>
  %u, %v = patch.rank1 to %a from %b at %x : tensor<4xf32>, tensor<8xf32>
  // CHECK: patch.apply_rank1 %{{[a-z0-9#_]+}} + %{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}} at %{{[a-z0-9#_]+}} : tensor<4xf32>, tensor<8xf32>
  %p = patch.apply_rank1 %b + %u, %v at %x : tensor<4xf32>, tensor<8xf32>
  // CHECK: patch.apply_delta %{{[a-z0-9#_]+}} + %{{[a-z0-9#_]+}} : tensor<4xbf16>, tensor<4xf32> -> tensor<4xf32>
  %d = patch.apply_delta %m + %a : tensor<4xbf16>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: patch.invert_rms_norm least to %{{[a-z0-9#_]+}} by %{{[a-z0-9#_]+}} from %{{[a-z0-9#_]+}} eps 6.250000e-02 offset 1.000000e+00 : tensor<4xf32>, tensor<4xbf16>
  %i = patch.invert_rms_norm least to %a by %m from %b eps 6.250000e-02 offset 1.000000e+00 : tensor<4xf32>, tensor<4xbf16>
  // CHECK: patch.solve_scale naive to %{{[a-z0-9#_]+}} by %{{[a-z0-9#_]+}} at %{{[a-z0-9#_]+}} counts 2 : tensor<4xf32>, tensor<4xbf16> -> tensor<4xf32>
  %s = patch.solve_scale naive to %a by %m at %i counts 2 : tensor<4xf32>, tensor<4xbf16> -> tensor<4xf32>
  // CHECK: patch.obligation nonzero_vector %{{[a-z0-9#_]+}} counts 1 "outer weight matrix" : tensor<8xf32>
  patch.obligation nonzero_vector %x counts 1 "outer weight matrix" : tensor<8xf32>
  // CHECK: patch.store "down" %{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}} : tensor<4xf32>, tensor<8xf32>
  patch.store "down" %u, %v : tensor<4xf32>, tensor<8xf32>
  // CHECK: patch.store "norm" %{{[a-z0-9#_]+}} : tensor<4xf32>
  patch.store "norm" %s : tensor<4xf32>
  // CHECK: patch.load "down" : tensor<4xf32>, tensor<8xf32>
  %l, %k = patch.load "down" : tensor<4xf32>, tensor<8xf32>
  xf.yield %p : tensor<4xf32>
}

// CHECK-LABEL: xf.block @experts
xf.block @experts(%x: tensor<6xf32>, %h: tensor<2x4xf32>) -> tensor<2x6xf32> {
  %s = xf.top_k %x k 2 : tensor<6xf32>
  // CHECK: patch.load "experts.*.down" : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2xi32>
  %u, %v, %p = patch.load "experts.*.down" : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2xi32>
  // CHECK: patch.apply_expert_rank1 %{{[a-z0-9#_]+}} + %{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}} for %{{[a-z0-9#_]+}} at %{{[a-z0-9#_]+}}[%{{[a-z0-9#_]+}}] : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xi32>
  %y = patch.apply_expert_rank1 %u + %u, %v for %p at %h[%s] : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xi32>
  // CHECK: patch.squared_norms %{{[a-z0-9#_]+}} : tensor<2x4xf32> -> tensor<2xf32>
  %n = patch.squared_norms %h : tensor<2x4xf32> -> tensor<2xf32>
  // CHECK: patch.obligation nonzero_vector %{{[a-z0-9#_]+}} for %{{[a-z0-9#_]+}} counts 0 "mixture" : tensor<2x4xf32>, tensor<2x6xf32>
  patch.obligation nonzero_vector %h for %u counts 0 "mixture" : tensor<2x4xf32>, tensor<2x6xf32>
  // CHECK: patch.same_selection %{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}} counts 1 "router" : tensor<2xi32>
  patch.same_selection %s, %p counts 1 "router" : tensor<2xi32>
  // CHECK: patch.store "experts.*.down" %{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}}, %{{[a-z0-9#_]+}} : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2xi32>
  patch.store "experts.*.down" %u, %v, %s : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2xi32>
  xf.yield %y : tensor<2x6xf32>
}
