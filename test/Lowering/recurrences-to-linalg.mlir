// Recurrences become kernel.scan, whose region has the arithmetic of one row and part.
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg | FileCheck %s

// What is carried comes before the rows, and leaves behind them; parts have at most 256 numbers.
// CHECK-LABEL: func.func private @scan(
// CHECK-SAME: %[[BEFORE:[a-z0-9]+]]: memref<640xf32> {kernel.arg = #kernel.arg<before>}
// CHECK-SAME: %[[AFTER:[a-z0-9]+]]: memref<640xf32> {kernel.arg = #kernel.arg<after>}
// CHECK-DAG: %[[FROM:.*]] = memref.expand_shape %[[BEFORE]] {{.*}} : memref<640xf32> into memref<4x160xf32>
// CHECK-DAG: %[[TO:.*]] = memref.expand_shape %[[AFTER]] {{.*}} : memref<640xf32> into memref<4x160xf32>
// CHECK: kernel.scan(%{{.*}}, %{{.*}} : memref<?x4x160xf32, {{.*}}>, memref<?x4x160xf32, {{.*}}>) at [#{{.*}}, #{{.*}}] from %[[FROM]] : memref<4x160xf32> to %[[TO]] : memref<4x160xf32> into %{{.*}} : memref<?x4x160xf32> {
// CHECK-NEXT: ^bb0(%[[H:[a-z0-9]+]]: memref<160xf32, {{.*}}>, %[[A:[a-z0-9]+]]: memref<160xf32, {{.*}}>, %[[B:[a-z0-9]+]]: memref<160xf32, {{.*}}>, %[[Y:[a-z0-9]+]]: memref<160xf32, {{.*}}>):
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[H]] :
// CHECK: linalg.generic {{.*}} ins(%[[H]] : {{.*}}) outs(%[[Y]] :
xf.block @scan(%a: tensor<640xf32>, %b: tensor<640xf32>) -> tensor<640xf32> {
  %h = xf.scan %a, %b run full : tensor<640xf32>
  xf.yield %h : tensor<640xf32>
}

// In the reduced run each row is a sequence of its own, which hands nothing on.
// CHECK-LABEL: func.func private @reduced(
// CHECK-NOT: #kernel.arg<after>
// CHECK: kernel.scan({{.*}}) at [{{.*}}] from %{{[a-z0-9_]+}} : memref<1x8xf32> into
xf.block @reduced(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %h = xf.scan %a, %b run reduced : tensor<8xf32>
  xf.yield %h : tensor<8xf32>
}

// Four heads of two groups. A head reads the row of its group, and its own rates, which are −exp(A) for all rows.
// CHECK-LABEL: func.func private @heads(
// CHECK-SAME: memref<4x8x5xf32> {kernel.arg = #kernel.arg<before>}
// CHECK: math.exp
// CHECK: arith.negf
// CHECK: kernel.scan(%{{.*}} : memref<?x2x8xf32, {{.*}}>, memref<?x2x8xf32, {{.*}}>, memref<?x4x5xf32, {{.*}}>, memref<?x4xf32, {{.*}}>, memref<4x8xf32, {{.*}}>, memref<?x4xf32, {{.*}}>) at [#[[GROUP:[a-z0-9]+]], #[[GROUP]], #[[HEAD:[a-z0-9]+]], #[[HEAD]], #{{.*}}, #[[HEAD]]] from
// CHECK-NEXT: ^bb0(%[[S:[a-z0-9]+]]: memref<8x5xf32, {{.*}}>, %[[Q:[a-z0-9]+]]: memref<8xf32, {{.*}}>, %[[K:[a-z0-9]+]]: memref<8xf32, {{.*}}>, %[[V:[a-z0-9]+]]: memref<5xf32, {{.*}}>, %[[D:[a-z0-9]+]]: memref<f32, {{.*}}>, %[[R:[a-z0-9]+]]: memref<8xf32, {{.*}}>, %[[BETA:[a-z0-9]+]]: memref<f32, {{.*}}>, %[[Y:[a-z0-9]+]]: memref<5xf32, {{.*}}>):
// The state decays, what it gives for the key is replaced, and the query reads it.
// CHECK: linalg.generic {{.*}} ins(%[[D]], %[[R]] : {{.*}}) outs(%[[S]] :
// CHECK: linalg.generic {{.*}} ins(%[[K]], %[[S]] : {{.*}}) outs(%[[Y]] :
// CHECK: linalg.generic {{.*}} ins(%[[V]], %[[BETA]] : {{.*}}) outs(%[[Y]] :
// CHECK: linalg.generic {{.*}} ins(%[[K]], %[[Y]] : {{.*}}) outs(%[[S]] :
// CHECK: linalg.generic {{.*}} ins(%[[Q]], %[[S]] : {{.*}}) outs(%[[Y]] :
xf.block @heads(%q: tensor<2x8xf32>, %v: tensor<4x5xf32>, %d: tensor<4xf32>) -> tensor<4x5xf32> {
  %A = xf.param "A" : tensor<4x8xf32>
  %y = xf.linear_attention %q, %q, %v decay %d rates %A : tensor<4x8xf32> delta %d : tensor<4xf32> run full : tensor<2x8xf32>, tensor<2x8xf32>, tensor<4x5xf32>, tensor<4xf32>
  xf.yield %y : tensor<4x5xf32>
}

// A mean carries two sums and an exponent for each number; all change in one loop.
// CHECK-LABEL: func.func private @mean(
// CHECK-SAME: memref<3x33xf32> {kernel.arg = #kernel.arg<before>}
// CHECK: kernel.scan(%{{.*}} : memref<?x1x33xf32, {{.*}}) at [{{.*}}] from %{{.*}} : memref<1x3x33xf32> to
// CHECK: ^bb0(%[[S:[a-z0-9]+]]: memref<3x33xf32, {{.*}}>,
// CHECK-COUNT-3: memref.subview %[[S]]
// CHECK: linalg.generic
// CHECK-COUNT-4: math.exp
// CHECK: linalg.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32, f32
xf.block @mean(%k: tensor<33xf32>, %v: tensor<33xf32>) -> tensor<33xf32> {
  %y = xf.decaying_mean %k, %v decay %k own %v run full : tensor<33xf32>
  xf.yield %y : tensor<33xf32>
}
