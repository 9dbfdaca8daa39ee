// RUN: ctxc-opt %s --ctxc-gpu-expand-attention --canonicalize --cse | FileCheck %s

// On GPUs, attention is written as linalg: products, scores, softmax and mixed values. A row's own
// slot lies behind the others, and sinks are in the sum alone.
// CHECK-LABEL: func.func @kernel(
// CHECK: %[[P:.*]] = linalg.generic {{.*}}kernel.product = #kernel.product<scores>
// CHECK: %[[SCORES:.*]] = linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<?x2x3x?xf32>, tensor<?xi32>)
// CHECK: arith.cmpi sgt
// CHECK: %[[OWN:.*]] = tensor.expand_shape
// CHECK: tensor.insert_slice %[[SCORES]] into
// CHECK: %[[ALL:.*]] = tensor.insert_slice %[[OWN]] into
// CHECK: linalg.generic {{.*}} ins(%[[ALL]]
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[SINKS:.*]] : tensor<?x2x3xf32>, tensor<?x2x3xf32>)
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: linalg.generic {{.*}}kernel.product = #kernel.product<mixed>
// CHECK-NOT: kernel.attention(
#slot = affine_map<(s, g, r, t) -> (t)>
func.func @kernel(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>,
                  %slots: tensor<?xi32>, %sinks: tensor<?x2x3xf32>, %own: tensor<?x2x3xf32>,
                  %value: tensor<?x2x4xf32>, %e: tensor<?x2x3x4xf32>) -> tensor<?x2x3x4xf32> {
  %no = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %y = kernel.attention(%q, %k, %v) others(%slots : tensor<?xi32>) at [#slot]
      sinks(%sinks : tensor<?x2x3xf32>) own(%own, %value : tensor<?x2x3xf32>, tensor<?x2x4xf32>)
      into %e {
  ^bb0(%x: f32, %at: i32):
    %seen = arith.cmpi sgt, %at, %zero : i32
    %score = arith.select %seen, %x, %no : f32
    kernel.attend %score
  } : (tensor<?x2x3x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>), tensor<?x2x3x4xf32>
      -> tensor<?x2x3x4xf32>
  return %y : tensor<?x2x3x4xf32>
}
