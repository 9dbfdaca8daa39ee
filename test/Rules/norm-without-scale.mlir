// Theorem 4: the reach of a final RMS norm without a scale is a ball.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @norm_without_scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wh = xf.param "fc1" : tensor<6x4xf32>
  %h = xf.linear %Wh * %v : tensor<6x4xf32>, tensor<4xf32>
  %s = xf.activation gelu %h : tensor<6xf32>
  %Wd = xf.param "fc2" : tensor<4x6xf32>
  %d = xf.linear %Wd * %s : tensor<4x6xf32>, tensor<6xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.normalize no patch moves the output by more than 2·√4 = 4.0
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %y = xf.add %v, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: note: a normalisation{{.*}}Theorem 4
// CHECK: note: the context reaches output 0 from here
// CHECK: note: way out: add a trainable scale after this norm
// CHECK: block 'norm_without_scale': rejected
// CHECK: block 'norm_without_scale': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
