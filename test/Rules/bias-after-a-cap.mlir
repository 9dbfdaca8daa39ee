// A soft cap, and a bias after it.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'bias_after_a_cap': controllable
// CHECK-NEXT: input {{ *}}w{{ }}
// CHECK-NEXT: output {{ *}}b{{ }}
// CHECK: block 'bias_after_a_cap': exact
xf.block @bias_after_a_cap(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  %t = xf.softcap %d at 30.0 : tensor<4xf32>
  %br = xf.param "b" : tensor<4xf32>
  %r = xf.bias %t + %br : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
