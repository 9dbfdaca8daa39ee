// A mixer after the MLP: no chain can be solved through it.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @mixing_after_the_mlp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %q = xf.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  %c = xf.attention %q, %q, %q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %b = xf.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %Wa = xf.param "o" : tensor<4x4xf32>
  %a = xf.linear %Wa * %b : tensor<4x4xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %w = xf.add %v, %d : tensor<4xf32>
  %Q = xf.reshape %w : tensor<4xf32> to tensor<1x4xf32>
  %C = xf.attention %Q, %Q, %Q scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %e = xf.reshape %C : tensor<1x4xf32> to tensor<4xf32>
  // CHECK: error: {{.*}}is undecided
  %y = xf.add %w, %e : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'mixing_after_the_mlp': undecided
// CHECK: block 'mixing_after_the_mlp': none found
// CHECK: came as near as {{.*e-[0-9]+$}}
