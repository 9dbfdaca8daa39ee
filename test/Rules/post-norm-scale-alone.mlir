// The paper's first update changes the scale alone and divides by every entry of the norm's output.
//
// RUN: %exits 0 ctxc check --try --update naive %s | FileCheck %s

// CHECK: block 'post_norm_scale_alone': controllable
// CHECK-NEXT: input {{ *}}fc{{ }}
// CHECK-NEXT: output {{ *}}post_norm{{ }}
// CHECK: post_norm {{.*}}no entry of its input is zero {{ *}}almost everywhere
// CHECK: block 'post_norm_scale_alone': exact
xf.block @post_norm_scale_alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  %e = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %mr = xf.param "post_norm" : tensor<4xf32>
  %r = xf.scale %e by %mr : tensor<4xf32>, tensor<4xf32>
  %y = xf.add %v, %r : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
