// A trained number on the branch (ReZero) is a known factor: it is zero only for one value of the
// number, whatever the activations are.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'rezero': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'rezero': exact
xf.block @rezero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %r = xf.param "alpha" : tensor<1xf32>
  %e = xf.mul %d, %r : tensor<4xf32>, tensor<1xf32>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
