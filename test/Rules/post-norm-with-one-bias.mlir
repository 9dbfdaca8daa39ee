// DeepNorm, of whose first norm only the scale may be patched: that it keeps the MLP's internals is
// fragile, and two matrices keep them as well.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --objective paper %s 2>&1 | FileCheck --check-prefix=PAPER %s

// CHECK: block 'deepnorm': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'deepnorm': exact
// PAPER: warning: {{.*}}fragile in another program
// PAPER: input {{ *}}ln1.weight{{ }}
xf.block @deepnorm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %ax = xf.times %x by 2.0 : tensor<4xf32>
  %s1 = xf.add %ax, %a : tensor<4xf32>
  %n1 = xf.normalize layer %s1 eps 1.0e-5 : tensor<4xf32>
  %g1 = xf.param "ln1.weight" : tensor<4xf32>
  %m1 = xf.scale %n1 by %g1 : tensor<4xf32>, tensor<4xf32>
  %b1 = xf.param "ln1.bias" frozen : tensor<4xf32>
  %v = xf.bias %m1 + %b1 : tensor<4xf32>, tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %v : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %av = xf.times %v by 2.0 : tensor<4xf32>
  %s2 = xf.add %av, %d : tensor<4xf32>
  %n2 = xf.normalize layer %s2 eps 1.0e-5 : tensor<4xf32>
  %g2 = xf.param "ln2.weight" : tensor<4xf32>
  %m2 = xf.scale %n2 by %g2 : tensor<4xf32>, tensor<4xf32>
  %b2 = xf.param "ln2.bias" : tensor<4xf32>
  %y = xf.bias %m2 + %b2 : tensor<4xf32>, tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
