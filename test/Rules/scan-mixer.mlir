// A gated recurrence instead of attention.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s

// CHECK: block 'scan_mixer': controllable
// CHECK-NEXT: input {{ *}}fc1{{ }}
// CHECK-NEXT: output {{ *}}fc2{{ }}
// CHECK: block 'scan_mixer': exact
xf.block @scan_mixer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %Wi = xf.param "in" : tensor<4x4xf32>
  %i = xf.linear %Wi * %x : tensor<4x4xf32>, tensor<4xf32>
  %f = xf.activation sigmoid %i : tensor<4xf32>
  %a = xf.scan %f, %i : tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
