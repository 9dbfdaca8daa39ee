// RUN: ctxc-opt %s --split-input-file --xf-permute-parts | FileCheck %s

// Two slices in another order.
// CHECK-LABEL: xf.block @roll
// CHECK-NEXT: %[[P:.*]] = xf.permute %arg0 parts [1, 3] by [1, 0] : tensor<4xf32>
// CHECK-NEXT: xf.yield %[[P]]
xf.block @roll(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = xf.slice %x from 0 : tensor<4xf32> to tensor<1xf32>
  %b = xf.slice %x from 1 : tensor<4xf32> to tensor<3xf32>
  %y = xf.concat %b, %a : tensor<3xf32>, tensor<1xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

// Along another dimension.
// CHECK-LABEL: xf.block @along
// CHECK-NEXT: xf.permute %arg0 parts [2, 1, 3] by [1, 2, 0] along 1 : tensor<2x6xf32>
// CHECK-NEXT: xf.yield
xf.block @along(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %a = xf.slice %x from 0 along 1 : tensor<2x6xf32> to tensor<2x2xf32>
  %b = xf.slice %x from 2 along 1 : tensor<2x6xf32> to tensor<2x1xf32>
  %c = xf.slice %x from 3 along 1 : tensor<2x6xf32> to tensor<2x3xf32>
  %y = xf.concat %b, %c, %a along 1 : tensor<2x1xf32>, tensor<2x3xf32>, tensor<2x2xf32>
  xf.yield %y : tensor<2x6xf32>
}

// -----

// In their order again, the parts are the value. A slice that something else reads stays.
// CHECK-LABEL: xf.block @together
// CHECK-NEXT: %[[A:.*]] = xf.slice
// CHECK-NEXT: xf.yield %arg0, %[[A]]
xf.block @together(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<1xf32>) {
  %a = xf.slice %x from 0 : tensor<4xf32> to tensor<1xf32>
  %b = xf.slice %x from 1 : tensor<4xf32> to tensor<3xf32>
  %y = xf.concat %a, %b : tensor<1xf32>, tensor<3xf32>
  xf.yield %y, %a : tensor<4xf32>, tensor<1xf32>
}

// -----

// Slices of slices, and concatenations of concatenations.
// CHECK-LABEL: xf.block @nested
// CHECK-NEXT: xf.permute %arg0 parts [1, 1, 2, 2] by [2, 1, 3, 0] : tensor<6xf32>
// CHECK-NEXT: xf.yield
xf.block @nested(%x: tensor<6xf32>) -> tensor<6xf32> {
  %low = xf.slice %x from 0 : tensor<6xf32> to tensor<4xf32>
  %a = xf.slice %low from 1 : tensor<4xf32> to tensor<1xf32>
  %b = xf.slice %low from 2 : tensor<4xf32> to tensor<2xf32>
  %high = xf.slice %x from 4 : tensor<6xf32> to tensor<2xf32>
  %c = xf.slice %x from 0 : tensor<6xf32> to tensor<1xf32>
  %ba = xf.concat %b, %a : tensor<2xf32>, tensor<1xf32>
  %y = xf.concat %ba, %high, %c : tensor<3xf32>, tensor<2xf32>, tensor<1xf32>
  xf.yield %y : tensor<6xf32>
}

// -----

// Of a value that is put together itself.
// CHECK-LABEL: xf.block @ofParts
// CHECK-NEXT: %[[C:.*]] = xf.concat %arg0, %arg1
// CHECK-NEXT: xf.permute %[[C]] parts [1, 4] by [1, 0] : tensor<5xf32>
// CHECK-NEXT: xf.yield
xf.block @ofParts(%x: tensor<2xf32>, %z: tensor<3xf32>) -> tensor<5xf32> {
  %c = xf.concat %x, %z : tensor<2xf32>, tensor<3xf32>
  %a = xf.slice %c from 0 : tensor<5xf32> to tensor<1xf32>
  %b = xf.slice %c from 1 : tensor<5xf32> to tensor<4xf32>
  %y = xf.concat %b, %a : tensor<4xf32>, tensor<1xf32>
  xf.yield %y : tensor<5xf32>
}

// -----

// A permutation of a permutation.
// CHECK-LABEL: xf.block @twice
// CHECK-NEXT: %[[P:.*]] = xf.permute %arg0 parts [1, 3] by [1, 0]
// CHECK-NEXT: xf.permute %[[P]] parts [2, 2] by [1, 0]
// CHECK-NEXT: xf.yield
xf.block @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = xf.slice %x from 0 : tensor<4xf32> to tensor<1xf32>
  %b = xf.slice %x from 1 : tensor<4xf32> to tensor<3xf32>
  %p = xf.concat %b, %a : tensor<3xf32>, tensor<1xf32>
  %c = xf.slice %p from 0 : tensor<4xf32> to tensor<2xf32>
  %d = xf.slice %p from 2 : tensor<4xf32> to tensor<2xf32>
  %y = xf.concat %d, %c : tensor<2xf32>, tensor<2xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

// No permutation: an entry twice and another not at all,
// CHECK-LABEL: xf.block @repeats
// CHECK-NOT: xf.permute
// CHECK: xf.concat
xf.block @repeats(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = xf.slice %x from 0 : tensor<4xf32> to tensor<2xf32>
  %b = xf.slice %x from 1 : tensor<4xf32> to tensor<2xf32>
  %y = xf.concat %b, %a : tensor<2xf32>, tensor<2xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

// one part twice,
// CHECK-LABEL: xf.block @same
// CHECK-NOT: xf.permute
// CHECK: xf.concat
xf.block @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = xf.slice %x from 0 : tensor<4xf32> to tensor<2xf32>
  %y = xf.concat %a, %a : tensor<2xf32>, tensor<2xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

// fewer or more entries than the value has,
// CHECK-LABEL: xf.block @drops
// CHECK-NOT: xf.permute
// CHECK: xf.concat
// CHECK: xf.concat
xf.block @drops(%x: tensor<4xf32>) -> (tensor<3xf32>, tensor<5xf32>) {
  %a = xf.slice %x from 0 : tensor<4xf32> to tensor<1xf32>
  %b = xf.slice %x from 2 : tensor<4xf32> to tensor<2xf32>
  %y = xf.concat %b, %a : tensor<2xf32>, tensor<1xf32>
  %z = xf.concat %b, %y : tensor<2xf32>, tensor<3xf32>
  xf.yield %y, %z : tensor<3xf32>, tensor<5xf32>
}

// -----

// slices of two values,
// CHECK-LABEL: xf.block @mixed
// CHECK-NOT: xf.permute
// CHECK: xf.concat
xf.block @mixed(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %a = xf.slice %x from 2 : tensor<4xf32> to tensor<2xf32>
  %b = xf.slice %z from 0 : tensor<4xf32> to tensor<2xf32>
  %y = xf.concat %a, %b : tensor<2xf32>, tensor<2xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

// and slices along one dimension that are put together along another.
// CHECK-LABEL: xf.block @across
// CHECK-NOT: xf.permute
// CHECK: xf.concat
xf.block @across(%x: tensor<2x2xf32>) -> tensor<4x1xf32> {
  %a = xf.slice %x from 0 along 1 : tensor<2x2xf32> to tensor<2x1xf32>
  %b = xf.slice %x from 1 along 1 : tensor<2x2xf32> to tensor<2x1xf32>
  %y = xf.concat %b, %a : tensor<2x1xf32>, tensor<2x1xf32>
  xf.yield %y : tensor<4x1xf32>
}
