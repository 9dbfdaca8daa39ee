// The chain divides by a gate that is never zero. The gate's router is a path of the context to the
// chain, but needs no patch: the chain is solved with the gate of the reduced run.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'sigmoid_gate': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'sigmoid_gate': exact
xf.block @sigmoid_gate(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %Wq = xf.param "router" : tensor<4x4xf32>
  %q = xf.linear %Wq * %v : tensor<4x4xf32>, tensor<4xf32>
  %t = xf.activation sigmoid %q : tensor<4xf32>
  %e = xf.mul %t, %d : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
