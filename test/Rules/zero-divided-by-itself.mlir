// (x + a) - x - a is zero but for roundings, and a norm without epsilon divides those by
// themselves: the result changes with the context.
//
// RUN: %exits 1 ctxc check %s 2>&1 | FileCheck %s

// CHECK-NOT: controllable
// CHECK: block 'zero_divided_by_itself': {{undecided|rejected}}
xf.block @zero_divided_by_itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %s = xf.add %x, %a : tensor<4xf32>
  %t = xf.sub %s, %x : tensor<4xf32>
  %z = xf.sub %t, %a : tensor<4xf32>
  %n = xf.normalize rms %z eps 0.0 : tensor<4xf32>
  %y = xf.add %x, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
