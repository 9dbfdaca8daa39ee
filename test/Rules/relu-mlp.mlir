// The hidden vector of a relu MLP is zero only where every unit is off. This condition is checked
// at run time, and the sample activations meet it.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'relu_mlp': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: fc2 {{.*}}its input is not zero {{ *}}not everywhere; checked at run time
// CHECK: block 'relu_mlp': exact
// CHECK: 0 harmful
xf.block @relu_mlp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation relu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
