// A recurrence of numbers that are not negative only adds to what it gives without the context, and a
// relu can add as much: each is one-sided, and on the same side.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @only_adds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %Wg = xf.param "gate" : tensor<4x4xf32>
  %gl = xf.linear %Wg * %x : tensor<4x4xf32>, tensor<4xf32>
  %g = xf.activation sigmoid %gl : tensor<4xf32>
  %b = xf.activation relu %x : tensor<4xf32>
  %a = xf.scan %g, %b : tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %x : tensor<4x4xf32>, tensor<4xf32>
  %r = xf.activation relu %d : tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'only_adds': undecided
// CHECK: block 'only_adds': none found
